package workers

import "testing"

// panics panics in one of its chunks.
type panics struct{ chunk int }

func (p panics) Do(chunk, _ int) {
	if chunk == p.chunk {
		panic(p)
	}
}

// A chunk that panics ends the run, and not the process: who called it gets the panic, and the
// pool goes on.
func TestAChunkThatPanics(t *testing.T) {
	for _, size := range []int{1, 2, 4} {
		p := New(size)
		for chunk := range 64 {
			func() {
				defer func() {
					if got := recover(); got != (panics{chunk}) {
						t.Errorf("size %d, chunk %d: it panics with %v", size, chunk, got)
					}
				}()
				p.Run(64, panics{chunk})
			}()
			p.Run(64, panics{-1})
		}
		p.Close()
	}
}
