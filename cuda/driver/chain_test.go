//go:build cuda && !emulator

package driver

import (
	"errors"
	"testing"
)

// A chain does what its launches would, with what they were given last.
func TestChain(t *testing.T) {
	do(t, opened(t), func(on *Thread) error {
		m, err := on.Alloc(4)
		p, err2 := on.AllocPinned(4)
		s, err3 := on.NewStream()
		k := kernel(t, on, "add")
		if err := errors.Join(err, err2, err3, on.Zero(m, s)); err != nil {
			return err
		}
		link := func(x float32) Link {
			return Link{Kernel: k, Shape: one(s), Arguments: []Argument{m.Argument(), Int32(1), Float32(x)}}
		}
		c, err := on.NewChain([]Link{link(1), link(10)})
		if err != nil {
			return err
		}
		sum := func(want float32) {
			t.Helper()
			if err := errors.Join(on.LaunchChain(c, s), on.Fetch(p, m, s), on.Finish(s)); err != nil || Numbers[float32](p)[0] != want {
				t.Errorf("got %v, %v, want %v", Numbers[float32](p), err, want)
			}
		}
		sum(33) // a launch adds three times
		if err := errors.Join(on.SetLink(c, 1, new(link(100))), on.SetLink(c, 0, new(link(1)))); err != nil {
			return err
		}
		sum(33 + 303)
		wrong := link(1)
		wrong.Arguments = wrong.Arguments[:2]
		if err := on.SetLink(c, 0, &wrong); !errors.Is(err, ErrArgument) {
			t.Errorf("got %v", err)
		}
		if _, err := on.NewChain([]Link{link(1), wrong}); !errors.Is(err, ErrArgument) {
			t.Errorf("got %v", err)
		}
		l := link(5)
		n := testing.AllocsPerRun(10, func() {
			l.Arguments[2].bits++
			err = errors.Join(err, on.SetLink(c, 1, &l))
			err = errors.Join(err, on.LaunchChain(c, s))
		})
		if n != 0 || err != nil {
			t.Errorf("%v allocations, %v", n, err)
		}
		return errors.Join(on.Finish(s), on.CloseChain(c), on.Free(m), on.FreePinned(p), on.CloseStream(s))
	})
}
