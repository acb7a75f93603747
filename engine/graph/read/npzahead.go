package read

import (
	"io"
	"sync"
)

// ahead unpacks in a goroutine of its own while what came before is used. Close
// waits for it.
type ahead struct {
	from io.ReadCloser
	full chan aheadBlock
	free chan []byte
	stop chan struct{}
	done sync.WaitGroup
	cur  []byte
	whom []byte // what cur is of
	err  error
}

type aheadBlock struct {
	bytes []byte
	err   error
}

func newAhead(r io.ReadCloser) *ahead {
	const blocks, size = 3, 128 << 10
	a := &ahead{from: r, full: make(chan aheadBlock, blocks), free: make(chan []byte, blocks), stop: make(chan struct{})}
	for range blocks {
		a.free <- make([]byte, size)
	}
	a.done.Go(a.run)
	return a
}

func (a *ahead) run() {
	for {
		var b []byte
		select {
		case b = <-a.free:
		case <-a.stop:
			return
		}
		n, err := readUp(a.from, b)
		a.full <- aheadBlock{b[:n], err} // there is room for all blocks
		if err != nil {
			return
		}
	}
}

// readUp fills b, or says why not.
func readUp(r io.Reader, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		got, err := r.Read(b[n:])
		n += got
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (a *ahead) Read(b []byte) (int, error) {
	for len(a.cur) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		if a.whom != nil {
			a.free <- a.whom[:cap(a.whom)]
			a.whom = nil
		}
		block := <-a.full
		a.cur, a.whom, a.err = block.bytes, block.bytes, block.err
	}
	n := copy(b, a.cur)
	a.cur = a.cur[n:]
	return n, nil
}

func (a *ahead) Close() error {
	close(a.stop)
	a.done.Wait()
	return a.from.Close()
}
