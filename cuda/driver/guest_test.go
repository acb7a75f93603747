//go:build cuda && !emulator

package driver

import (
	"errors"
	"testing"
)

// A guest works from any goroutine, beside Do.
func TestGuest(t *testing.T) {
	d := opened(t)
	g := d.Guest()
	var memory Memory
	for range 3 {
		done := make(chan error)
		go func() {
			err := g.Enter()
			defer g.Leave()
			if memory.Len() > 0 {
				err = errors.Join(err, g.Free(memory))
			}
			m, err2 := g.Alloc(64)
			memory = m
			done <- errors.Join(err, err2)
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		do(t, d, func(on *Thread) error { return on.Synchronize() })
	}
	if got := MemoryAt(memory.Address(), memory.Len()); got != memory {
		t.Errorf("%v is not %v", got, memory)
	}
	do(t, d, func(on *Thread) error { return on.Free(memory) })
}
