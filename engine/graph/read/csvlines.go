package read

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// chunkSize is how much is read at a time.
const chunkSize = 1 << 20

// lineReader reads a file of lines, packed or not. A goroutine reads ahead; the one who
// opened it must close it, which waits for that goroutine.
type lineReader struct {
	called string
	most   int // bytes a line may have
	cur    []byte
	last   bool   // nothing follows cur
	line   uint64 // of the first byte of cur, from 1
	file   *os.File
	read   atomic.Uint64 // bytes of the file
	full   chan chunk
	free   chan []byte
	cancel context.CancelFunc
	done   sync.WaitGroup
	tell   func(uint64)
}

// A chunk holds whole lines. The last one comes with io.EOF, or with what went
// wrong, and its bytes need not end with a line's end.
type chunk struct {
	bytes []byte
	err   error
}

var (
	errLongLine = errors.New("line too long")
	errUTF16    = errors.New("text in UTF-16")
)

func openLines(ctx context.Context, path string, most int, tell func(uint64)) (*lineReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &lineReader{called: filepath.Base(path), most: most, line: 1, file: f, full: make(chan chunk, 1), free: make(chan []byte, 3), cancel: cancel, tell: tell}
	for range cap(l.free) {
		l.free <- nil
	}
	l.done.Go(func() { l.readAhead(ctx, strings.HasSuffix(strings.ToLower(path), ".gz")) })
	return l, nil
}

func (l *lineReader) close() {
	l.cancel()
	l.done.Wait()
	l.file.Close()
}

// fill puts the next lines behind what is left in cur, which moves. It returns
// io.EOF when there are none.
func (l *lineReader) fill(ctx context.Context) error {
	if l.last {
		return io.EOF
	}
	var c chunk
	select {
	case c = <-l.full:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.tell != nil {
		l.tell(l.read.Load())
	}
	l.last = errors.Is(c.err, io.EOF)
	if c.err != nil && !l.last {
		return l.explain(c.err)
	}
	if len(l.cur) > 0 {
		if len(l.cur) > l.most {
			return l.explain(errLongLine)
		}
		l.cur = append(l.cur, c.bytes...) // behind it lay what c.bytes begins with
		l.free <- c.bytes[:0]             // cur's own goes back when it is released
	} else {
		l.cur = c.bytes
	}
	if len(l.cur) == 0 {
		return io.EOF
	}
	return nil
}

// release gives the memory of cur, which has been read, back to the reader ahead.
func (l *lineReader) release(whole []byte) {
	l.cur = nil
	select {
	case l.free <- whole[:0]:
	default:
	}
}

func (l *lineReader) explain(err error) error {
	switch {
	case errors.Is(err, errLongLine):
		return fmt.Errorf("%s, line %d: the line is longer than %d bytes: check that it is a table of text with an end to each line and each quote", l.called, l.line, l.most)
	case errors.Is(err, errUTF16):
		return fmt.Errorf("%s is text in UTF-16: save it as UTF-8", l.called)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s ends in the middle of its compressed data: copy it again", l.called)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), strings.HasPrefix(err.Error(), "flate:"):
		return fmt.Errorf("%s is no sound gzip file (%w): pack it or copy it again", l.called, err)
	}
	return fmt.Errorf("read %s: %w", l.called, err)
}

// Read counts what is read of the file itself.
func (l *lineReader) Read(b []byte) (int, error) {
	n, err := l.file.Read(b)
	l.read.Add(uint64(n))
	return n, err
}

func (l *lineReader) readAhead(ctx context.Context, packed bool) {
	var r io.Reader = l
	var err error
	if packed {
		if r, err = gzip.NewReader(l); errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	var rest []byte
	for first := true; err == nil; first = false {
		var buf []byte
		select {
		case buf = <-l.free:
		case <-ctx.Done():
			return
		}
		buf = append(buf[:0], rest...)
		end := 0
		for err == nil && end == 0 {
			was := len(buf) // rest holds no line's end
			buf, err = readMore(r, buf)
			if at := bytes.LastIndexByte(buf[was:], '\n'); at >= 0 {
				end = was + at + 1
			} else if err == nil && len(buf) > l.most {
				err = errLongLine
			}
		}
		if first {
			if bytes.HasPrefix(buf, []byte{0xff, 0xfe}) || bytes.HasPrefix(buf, []byte{0xfe, 0xff}) {
				err = errUTF16
			}
			if bytes.HasPrefix(buf, []byte("\xef\xbb\xbf")) {
				buf, end = buf[3:], max(end-3, 0)
			}
		}
		if err == nil {
			rest = buf[end:] // nobody writes there before it is copied
			buf = buf[:end]
		}
		select {
		case l.full <- chunk{buf, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
	select {
	case l.full <- chunk{nil, err}:
	case <-ctx.Done():
	}
}

// readMore reads a chunk behind buf. It returns io.EOF with the last one.
func readMore(r io.Reader, buf []byte) ([]byte, error) {
	was := len(buf)
	if cap(buf)-was < chunkSize {
		buf = append(make([]byte, 0, max(was+chunkSize+4096, 2*was)), buf...)
	}
	n := 0
	for n < chunkSize {
		got, err := r.Read(buf[was+n : was+chunkSize])
		n += got
		if err != nil {
			return buf[:was+n], err
		}
	}
	return buf[:was+n], nil
}
