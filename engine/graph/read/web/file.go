package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A File is a file on a server. Its methods may be called from any goroutine; Close waits
// for what is being fetched.
type File struct {
	name    string // for sentences
	from    fetcher
	size    int64
	version string
	spool   *os.File // a copy of all, if the server sends no parts

	during  context.Context // of all that is asked
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	blocks map[int64]*block
	clock  uint64
	most   int // blocks to ask for at a time
	keep   int // blocks to keep
}

// What is kept of a file: at most kept blocks.
const (
	blockBytes = 256 << 10
	kept       = 128
	mostAhead  = 16
)

// maxSize bounds what a server may say of a file's size, so that offsets beyond its end are
// still numbers.
const maxSize = 1 << 56

// A block is a part of the file. Who is to read it waits until it is ready.
type block struct {
	ready chan struct{}
	data  []byte
	err   error

	used uint64 // when it was last read
	read bool
	run  int   // how many blocks were asked for with it
	end  int64 // the first block behind these
}

// pauses are how long to wait before each repetition, if the last one brought nothing.
var pauses = []time.Duration{0, 250 * time.Millisecond, time.Second, 3 * time.Second, 8 * time.Second}

// stalled is how long a connection may bring nothing.
const stalled = time.Minute

// Open opens the file at an address. ctx must last until the file is closed.
func Open(ctx context.Context, address string) (*File, error) {
	from, err := fetcherOf(address)
	if err != nil {
		return nil, err
	}
	f := &File{name: Base(address), from: from, blocks: map[int64]*block{}, most: mostAhead, keep: kept}
	f.during, f.cancel = context.WithCancel(ctx)
	if err := f.begin(); err != nil {
		f.cancel()
		return nil, err
	}
	return f, nil
}

// begin asks for the first block, and so learns how large the file is.
func (f *File) begin() error {
	var first []byte
	var whole bool
	err := f.persist(func() (bool, error) {
		a, err := f.from.fetch(f.during, 0, blockBytes, "")
		if err != nil {
			return false, err
		}
		defer a.body.Close()
		if f.size, f.version, whole = a.total, a.version, a.whole; whole {
			return false, nil
		}
		if f.size > maxSize {
			return false, finally("the server says that %s has %d bytes, which no file has: check the address", f.name, f.size)
		}
		first = make([]byte, min(blockBytes, f.size))
		if _, err := io.ReadFull(watched(f.during, a.body), first); err != nil {
			first = nil // it will be asked for again, from where it ended
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case whole:
		return f.copyWhole()
	case first != nil:
		b := &block{ready: make(chan struct{}), data: first, run: 1, end: 1}
		close(b.ready)
		f.blocks[0] = b
	}
	return nil
}

// Size returns how many bytes the file has.
func (f *File) Size() int64 { return f.size }

// Close ends all that is being fetched.
func (f *File) Close() error {
	f.mu.Lock()
	f.cancel()
	f.mu.Unlock()
	f.running.Wait()
	if f.spool != nil {
		return f.spool.Close()
	}
	return nil
}

// ReadAt is io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	if f.spool != nil {
		return f.spool.ReadAt(p, off)
	}
	if off < 0 {
		return 0, fmt.Errorf("read %s from byte %d on", f.name, off)
	}
	for n < len(p) {
		if off >= f.size {
			return n, io.EOF
		}
		data, err := f.block(off / blockBytes)
		if err != nil {
			return n, err
		}
		got := copy(p[n:], data[off%blockBytes:])
		n, off = n+got, off+int64(got)
	}
	return n, nil
}

// block returns the i-th block, and asks for those behind it if the file is being read in
// order.
func (f *File) block(i int64) ([]byte, error) {
	f.mu.Lock()
	if f.during.Err() != nil {
		f.mu.Unlock()
		return nil, context.Cause(f.during)
	}
	f.clock++
	before := f.blocks[i-1]
	inOrder := before != nil && before.read
	b := f.blocks[i]
	if b == nil {
		n := 1
		if inOrder {
			n = 2 * before.run
		}
		b = f.ask(i, n)
	}
	b.used, b.read = f.clock, true
	if inOrder && f.blocks[b.end] == nil && b.end*blockBytes < f.size && b.end-i <= int64(b.run+1)/2 {
		f.ask(b.end, 2*b.run)
	}
	f.mu.Unlock()
	select {
	case <-b.ready:
		return b.data, b.err
	case <-f.during.Done():
		return nil, context.Cause(f.during)
	}
}

// ask begins to fetch at most n blocks from one that is not here. It is called with mu held.
func (f *File) ask(first int64, n int) *block {
	n = max(1, min(n, f.most))
	last := (f.size - 1) / blockBytes
	var run []*block
	for i := first; i <= last && len(run) < n && f.blocks[i] == nil; i++ {
		b := &block{ready: make(chan struct{}), used: f.clock}
		f.blocks[i] = b
		run = append(run, b)
	}
	for _, b := range run {
		b.run, b.end = len(run), first+int64(len(run))
	}
	f.forget()
	f.running.Go(func() { f.fetch(first, run) })
	return run[0]
}

// forget gives up the blocks that were not read for longest. If one of them was fetched in
// vain, less is fetched ahead from then on.
func (f *File) forget() {
	for len(f.blocks) > f.keep {
		oldest := int64(-1)
		for i, b := range f.blocks {
			select {
			case <-b.ready:
				if oldest < 0 || b.used < f.blocks[oldest].used {
					oldest = i
				}
			default: // somebody may wait for it
			}
		}
		if oldest < 0 {
			return
		}
		if !f.blocks[oldest].read {
			f.most = max(1, f.most/2)
		}
		delete(f.blocks, oldest)
	}
}

// fetch fills blocks that follow one another.
func (f *File) fetch(first int64, run []*block) {
	at := first * blockBytes
	end := min(at+int64(len(run))*blockBytes, f.size)
	next := 0 // the block that is being filled
	var filled int
	err := f.persist(func() (bool, error) {
		from := at
		a, err := f.from.fetch(f.during, at, end, f.version)
		if err != nil {
			return false, err
		}
		defer a.body.Close()
		if a.whole && a.version == f.version {
			return false, errors.New("the server sends parts of the file no more")
		}
		if a.whole || a.total != f.size || a.version != f.version {
			return false, f.changed()
		}
		body := watched(f.during, a.body)
		for ; next < len(run); next++ {
			b := run[next]
			if b.data == nil {
				b.data = make([]byte, min(blockBytes, end-at))
			}
			n, err := io.ReadFull(body, b.data[filled:])
			filled, at = filled+n, at+int64(n)
			if err != nil {
				return at > from, err
			}
			filled = 0
			close(b.ready)
		}
		return true, nil
	})
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := next; k < len(run); k++ {
		run[k].data, run[k].err = nil, err
		delete(f.blocks, first+int64(k))
		close(run[k].ready)
	}
}

func (f *File) changed() error {
	return finally("%s was changed while it was read: import it again when nothing writes to it", f.name)
}

func (f *File) persist(try func() (progress bool, err error)) error {
	return persist(f.during, f.name, try)
}

// persist repeats what fails, unless it would fail again or has brought nothing too often.
func persist(ctx context.Context, name string, try func() (progress bool, err error)) error {
	for failed := 0; ; {
		progress, err := try()
		if err == nil || isFinal(err) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if progress {
			failed = 0
		}
		if failed == len(pauses) {
			return fmt.Errorf("%s can't be read (%w): check the network and the server, and import again", name, plain(err))
		}
		select {
		case <-time.After(pauses[failed]):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		failed++
	}
}

// watched returns a reader that fails when nothing comes for long. Closing body must make
// its reads fail.
func watched(ctx context.Context, body io.ReadCloser) io.Reader {
	return &watch{body: body, ctx: ctx}
}

type watch struct {
	ctx  context.Context
	body io.ReadCloser
}

func (w *watch) Read(p []byte) (int, error) {
	timer := time.AfterFunc(stalled, func() { w.body.Close() })
	defer timer.Stop()
	n, err := w.body.Read(p)
	if errors.Is(err, io.EOF) && n > 0 {
		err = nil // the next read says so again
	}
	return n, err
}
