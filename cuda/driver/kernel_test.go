//go:build cuda && !emulator

package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cuda/ptx"
)

const text = `.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n, .param .f32 x) { ret; }
.visible .entry fault() { ret; }
.visible .entry wide(.param .align 8 .b8 p[16]) { ret; }
.visible .entry unknown() { ret; }
`

var sizes = map[string][]int{"add": {8, 4, 4}, "fault": {}}

// kernel is one of the driver's for tests.
func kernel(t *testing.T, on *Thread, name string) *Kernel {
	t.Helper()
	m, err := on.Load(text)
	if err != nil {
		t.Error(err)
		return &Kernel{}
	}
	k, err := on.Kernel(m, name, sizes[name]...)
	if err != nil {
		t.Error(err)
		return &Kernel{}
	}
	return k
}

func TestKernelsThatDoNotFit(t *testing.T) {
	do(t, opened(t), func(on *Thread) error {
		m, err := on.Load(text)
		if err != nil {
			return err
		}
		for _, c := range []struct {
			name  string
			sizes []int
			says  string
		}{
			{"none", nil, "the module has no kernel none"},
			{"add", []int{8, 8, 4}, "kernel add takes parameters of [8 4 4] bytes and would be given [8 8 4]"},
			{"add", []int{8, 4}, "would be given [8 4]"},
			{"fault", []int{4}, "takes parameters of [] bytes"},
			{"wide", []int{16}, "pass what is over 8 by address"},
			{"unknown", nil, "kernel unknown: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"},
		} {
			_, err := on.Kernel(m, c.name, c.sizes...)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s %v: got %v", c.name, c.sizes, err)
			}
		}
		if _, err := on.Load("no text"); !errors.Is(err, ptx.ErrText) {
			t.Errorf("got %v", err)
		}
		if _, err := on.Load(".version 8.0"); err == nil || !strings.Contains(err.Error(), "cuModuleLoadData: CUDA_ERROR_INVALID_PTX (218)") {
			t.Errorf("got %v", err)
		}
		return on.Unload(m)
	})
}

// one is a grid of three threads.
func one(s Stream) Shape { return Shape{Grid: [3]int{3, 1, 1}, Block: [3]int{1, 1, 1}, Stream: s} }

func TestLaunch(t *testing.T) {
	do(t, opened(t), func(on *Thread) error {
		m, err := on.Alloc(16)
		p, err2 := on.AllocPinned(16)
		s, err3 := on.NewStream()
		k := kernel(t, on, "add")
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
		err = errors.Join(on.Zero(m, s), on.Launch(k, one(s), m.Argument(), Int32(3), Float32(1.5)), on.Fetch(p, m, s), on.Finish(s))
		if got := Numbers[float32](p); err != nil || [4]float32(got) != [4]float32{4.5, 4.5, 4.5, 0} {
			t.Errorf("got %v, %v", got, err)
		}
		if err := on.Launch(k, one(s), m.Argument(), Int32(3)); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), "takes 3 arguments and is given 2") {
			t.Errorf("got %v", err)
		}
		if err := on.Launch(k, one(s), m.Argument(), Int64(3), Float32(1)); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), "argument 1 has 8 bytes in place of 4") {
			t.Errorf("got %v", err)
		}
		big := one(s)
		big.Shared = 100 << 10
		if err := on.Launch(k, big, m.Argument(), Int32(3), Float32(1)); err == nil || !strings.Contains(err.Error(), "kernel add: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1)") {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(on.AllowShared(k, 100<<10), on.Launch(k, big, m.Argument(), Int32(3), Float32(1))); err != nil {
			t.Error(err)
		}
		if err := on.AllowShared(k, 1<<20); err == nil || !strings.Contains(err.Error(), "1048576 bytes of shared memory: cuFuncSetAttribute") {
			t.Errorf("got %v", err)
		}
		return errors.Join(on.Free(m), on.FreePinned(p), on.CloseStream(s))
	})
}

func TestAStepAllocatesNothing(t *testing.T) {
	d := opened(t)
	var m Memory
	var p Pinned
	var s Stream
	var k *Kernel
	var g *Chain
	var e, later Event
	do(t, d, func(on *Thread) (err error) {
		k = kernel(t, on, "add")
		var errs [6]error
		m, errs[0] = on.Alloc(64)
		p, errs[1] = on.AllocPinned(64)
		s, errs[2] = on.NewStream()
		e, errs[3] = on.NewEvent(false)
		later, errs[5] = on.NewEvent(false)
		g, errs[4] = on.NewChain([]Link{{k, one(s), []Argument{m.Argument(), Int32(1), Float32(1)}}})
		return errors.Join(errs[:]...)
	})
	step := func(on *Thread) error {
		for range 10 {
			if err := on.Launch(k, one(s), m.Argument(), Int32(16), Float32(1)); err != nil {
				return err
			}
		}
		if did, err := on.Happened(later); did || err != nil {
			return fmt.Errorf("an event that was not recorded happened: %v, %w", did, err)
		}
		for _, err := range [...]error{
			on.Send(m, p, s), on.Zero(m, s), on.Fill(m, 1, s), on.Fetch(p, m, s), on.Record(e, s), on.After(s, e), on.LaunchChain(g, s), on.Finish(s),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	if n := testing.AllocsPerRun(100, func() { err = d.Do(step) }); n != 0 || err != nil {
		t.Fatalf("%v allocations a step, %v", n, err)
	}
}
