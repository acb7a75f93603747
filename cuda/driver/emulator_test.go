//go:build cuda && emulator

package driver

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// gathering is the kernel that is run here, with its rows and columns.
const (
	gathering  = "gather_f32_f32"
	rows, cols = 20, 5
)

func gatherKernel(on *Thread) (*Kernel, error) {
	text, err := os.ReadFile("../kernels/gather.ptx")
	if err != nil {
		return nil, err
	}
	m, err := on.Load(string(text))
	if err != nil {
		return nil, err
	}
	return on.Kernel(m, gathering, 8, 8, 4, 4, 8, 8, 8, 4, 8)
}

// A kernel of ours, on a driver that runs it: two streams joined by an event, and
// the same as a chain.
func TestAKernelRuns(t *testing.T) {
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Do(func(on *Thread) error {
		k, err := gatherKernel(on)
		x, err1 := on.Alloc(4 * rows * cols)
		y, err2 := on.Alloc(4 * rows * cols)
		table, err3 := on.Alloc(4*rows + 24)
		p, err4 := on.AllocPinned(4 * rows * cols)
		q, err5 := on.AllocPinned(4*rows + 24)
		send, err6 := on.NewStream()
		work, err7 := on.NewStream()
		sent, err8 := on.NewEvent(false)
		if err := errors.Join(err, err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
			return err
		}
		var want []float32
		for i := range Numbers[float32](p) {
			Numbers[float32](p)[i] = float32(i)
		}
		// The table: address, stride and first vertex of the one part, then ids.
		Numbers[uint64](q)[0], Numbers[int64](q)[1], Numbers[uint32](q)[4] = x.Address(), cols, 0
		for i := range rows {
			id := (i*7 + 3) % rows
			Numbers[uint32](q)[6+i] = uint32(id)
			for c := range cols {
				want = append(want, float32(id*cols+c))
			}
		}
		l := Link{k, Shape{Grid: [3]int{(rows + 7) / 8, 1, 1}, Block: [3]int{256, 1, 1}, Stream: work}, []Argument{
			y.Argument(), Int64(cols), Int32(rows), Int32(cols), table.Slice(16, 20).Argument(), table.Slice(0, 8).Argument(),
			table.Slice(8, 16).Argument(), Int32(1), table.Slice(24, table.Len()).Argument(),
		}}
		err = errors.Join(on.Send(x, p, send), on.Send(table, q, send), on.Record(sent, send), on.After(work, sent),
			on.Launch(l.Kernel, l.Shape, l.Arguments...), on.Fetch(p, y, work), on.Finish(work))
		if err != nil {
			return err
		}
		if got := Numbers[float32](p); !slices.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
		g, err := on.NewChain([]Link{l})
		if err := errors.Join(err, on.Zero(y, work), on.Copy(x.Slice(0, 40), x.Slice(40, 80), work)); err != nil {
			return err
		}
		if err := errors.Join(on.LaunchChain(g, work), on.Fetch(p, y, work), on.Finish(work)); err != nil {
			return err
		}
		// Rows 0 and 1 of x are what 2 and 3 are.
		for i, v := range want {
			if v < 10 {
				want[i] = v + 10
			}
		}
		if got := Numbers[float32](p); !slices.Equal(got, want) {
			t.Errorf("as a chain: got %v\nwant %v", got, want)
		}
		return errors.Join(on.CloseChain(g), on.Free(x), on.Free(y), on.Free(table), on.FreePinned(p), on.FreePinned(q),
			on.CloseStream(send), on.CloseStream(work), on.CloseEvent(sent))
	})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Error(err)
	}
}

// A process whose GPU faulted can't open it again, and the error says why. The fault happens
// in a process of its own, since it would end the other tests.
func TestNoGPUAfterAFault(t *testing.T) {
	const faults = "DRIVER_TEST_FAULTS"
	if os.Getenv(faults) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoGPUAfterAFault$")
		c.Env = append(os.Environ(), faults+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Do(func(on *Thread) error {
		k, err := gatherKernel(on)
		s, err1 := on.NewStream()
		if err := errors.Join(err, err1); err != nil {
			return err
		}
		const nowhere = 1 << 16
		err = on.Launch(k, Shape{Grid: [3]int{1, 1, 1}, Block: [3]int{256, 1, 1}, Stream: s}, Int64(nowhere), Int64(cols), Int32(rows), Int32(cols),
			Int64(nowhere), Int64(nowhere), Int64(nowhere), Int32(1), Int64(nowhere))
		return errors.Join(err, on.Finish(s))
	})
	if !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(0); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "started anew") {
		t.Errorf("opened again: %v", err)
	}
}
