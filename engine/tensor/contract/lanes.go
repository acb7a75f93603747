package contract

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Lanes checks a device whose memory is not the host's: what a lane copies and computes
// must be visible to another that waits for its mark, and stay unchanged until that one's
// own mark has passed. It repeats this many times in the same memory.
func Lanes(t *testing.T, d tensor.Foreign) {
	const slots, steps, rows, cols = 2, 12, 70, 33
	l, err := d.Lane()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sum, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	defer sum.Close()
	total := sum.Alloc(tensor.F32, rows, cols)
	d.Zero(total)
	var ends []func() // of slots
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	type slot struct {
		host, there  tensor.Matrix
		filled, done tensor.Mark
	}
	var ring [slots]slot
	for i := range ring {
		host, err := l.HostArena(4 * rows * cols)
		there, err1 := l.NewArena(4 * rows * cols)
		filled, err2 := l.NewMark()
		done, err3 := d.NewMark()
		if err := errors.Join(err, err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, host.Close, there.Close, filled.Close, done.Close)
		ring[i] = slot{host.Alloc(tensor.F32, rows, cols), there.Alloc(tensor.F32, rows, cols), filled, done}
	}
	// The lane is a goroutine ahead of the steps: slots circulate between both.
	ready, free := make(chan *slot, slots), make(chan *slot, slots)
	for i := range ring {
		free <- &ring[i]
	}
	go func() {
		defer close(ready)
		for step := range steps {
			s := <-free
			l.After(s.done)
			// What was copied there before is visible, as the step has been computed.
			if err := l.Err(); err != nil {
				return
			}
			for i := range s.host.F32() {
				s.host.F32()[i] = float32(step*1000 + i)
			}
			l.Bring(s.there, s.host)
			l.Combine(s.there, 2, s.there, 0, tensor.Matrix{})
			l.Mark(s.filled)
			ready <- s
		}
	}()
	for s := range ready {
		d.After(s.filled)
		d.Combine(total, 1, total, 1, s.there)
		d.Mark(s.done)
		free <- s
	}
	want, got := make([]float32, rows*cols), make([]float32, rows*cols)
	for step := range steps {
		for i := range want {
			want[i] += 2 * float32(step*1000+i)
		}
	}
	d.Read32(got, total)
	if err := errors.Join(d.Err(), l.Err()); err != nil || !slices.Equal(got, want) {
		t.Errorf("the sum of what was brought is wrong: %v, %s", err, firstOff(got, want))
	}
}

func firstOff(got, want []float32) string {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Sprintf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
	return "no element is off"
}
