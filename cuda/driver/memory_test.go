//go:build cuda && !emulator

package driver

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
)

func TestMemoryGoesThereAndBack(t *testing.T) {
	do(t, opened(t), func(on *Thread) error {
		free, total, err := on.Memory()
		if err != nil || total != 1<<30 {
			t.Fatalf("memory %d, %v", total, err)
		}
		m, err := on.Alloc(400)
		p, err2 := on.AllocPinned(404)
		s, err3 := on.NewStream()
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
		if now, _, err := on.Memory(); err != nil || now != free-400 || m.Len() != 400 || p.Len() != 404 {
			t.Errorf("%d of %d free, %v", now, free, err)
		}
		numbers := Numbers[float32](p)
		if len(numbers) != 101 || len(p.Bytes()) != 404 || len(Numbers[int32](p)) != 101 || unsafe.Pointer(&numbers[0]) != unsafe.Pointer(&p.Bytes()[0]) {
			t.Errorf("%d numbers", len(numbers))
		}
		for i := range numbers {
			numbers[i] = float32(i)
		}
		back, err := on.AllocPinned(400)
		if err != nil {
			return err
		}
		err = errors.Join(on.Send(m, p.Slice(4, 404), s), on.Fill(m.Slice(8, 16), 7, s), on.Zero(m.Slice(16, 20), s), on.Fetch(back, m, s), on.Finish(s))
		got := Numbers[float32](back)
		if err != nil || got[0] != 1 || got[1] != 2 || Numbers[int32](back)[2] != 7 || Numbers[int32](back)[3] != 7 || got[4] != 0 || !slices.Equal(got[5:], numbers[6:]) {
			t.Errorf("got %v, %v", got, err)
		}
		err = errors.Join(on.SendNow(m.Slice(0, 40), p.Slice(0, 40)), on.FetchNow(back, m))
		if err != nil || !slices.Equal(got[:10], numbers[:10]) {
			t.Errorf("at once: got %v, %v", got, err)
		}
		return errors.Join(on.Free(m), on.FreePinned(p), on.FreePinned(back), on.CloseStream(s))
	})
}

func TestWrongUseOfMemory(t *testing.T) {
	do(t, opened(t), func(on *Thread) error {
		m, err := on.Alloc(64)
		p, err2 := on.AllocPinned(64)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		_, none := on.Alloc(0)
		_, noPinned := on.AllocPinned(-1)
		_, tooMuch := on.Alloc(1 << 40)
		for i, c := range []struct {
			err  error
			says string
		}{
			{none, "0 bytes of memory"},
			{noPinned, "-1 bytes of pinned memory"},
			{on.Send(m, p.Slice(0, 60), Stream{}), "a copy of 60 bytes to 64"},
			{on.Fetch(p.Slice(0, 60), m, Stream{}), "a copy of 64 bytes to 60"},
			{on.SendNow(Memory{}, p), "a copy of 64 bytes to 0"},
			{on.FetchNow(p, m.Slice(1, 3)), "a copy of 2 bytes to 64"},
			{on.Copy(m, m.Slice(0, 1), Stream{}), "a copy of 1 bytes to 64"},
			{on.Fill(m.Slice(0, 6), 1, Stream{}), "6 bytes at"},
			{on.Fill(m.Slice(2, 6), 1, Stream{}), "4 bytes at"},
		} {
			if !errors.Is(c.err, ErrArgument) || !strings.Contains(c.err.Error(), c.says) {
				t.Errorf("%d: got %v", i, c.err)
			}
		}
		if tooMuch == nil || tooMuch.Error() != "1099511627776 bytes of the GPU's memory: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): words of the driver" {
			t.Errorf("got %v", tooMuch)
		}
		if err := errors.Join(on.Send(Memory{}, Pinned{}, Stream{}), on.Fetch(Pinned{}, Memory{}, Stream{}), on.Zero(Memory{}, Stream{}), on.Fill(Memory{}, 1, Stream{})); err != nil {
			t.Errorf("of nothing: %v", err)
		}
		for _, bounds := range [][2]int{{-1, 2}, {3, 2}, {0, 65}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("bytes %v of 64", bounds)
					}
				}()
				m.Slice(bounds[0], bounds[1])
			}()
		}
		return errors.Join(on.Free(m), on.FreePinned(p))
	})
}

// The driver for tests is too old to have this call.
func TestACallThatTheDriverDoesNotHave(t *testing.T) {
	do(t, opened(t), func(on *Thread) error {
		m, err := on.Alloc(64)
		if err != nil {
			return err
		}
		err = on.Copy(m.Slice(0, 32), m.Slice(32, 64), Stream{})
		var is *Error
		if !errors.As(err, &is) || is.Call != "cuMemcpyDtoDAsync" || is.Name() != "CUDA_ERROR_NOT_FOUND" {
			t.Errorf("got %v", err)
		}
		return on.Free(m)
	})
}

func TestEvents(t *testing.T) {
	do(t, opened(t), func(on *Thread) error {
		s, err := on.NewStream()
		from, err2 := on.NewEvent(true)
		to, err3 := on.NewEvent(true)
		plain, err4 := on.NewEvent(false)
		if err := errors.Join(err, err2, err3, err4); err != nil {
			return err
		}
		if did, err := on.Happened(from); did || err != nil {
			t.Errorf("before: %v, %v", did, err)
		}
		if err := errors.Join(on.Record(from, s), on.Record(to, s), on.After(s, to), on.Await(to)); err != nil {
			return err
		}
		if did, err := on.Happened(from); !did || err != nil {
			t.Errorf("after: %v, %v", did, err)
		}
		if d, err := on.Between(from, to); d != 1500*time.Microsecond || err != nil {
			t.Errorf("took %v, %v", d, err)
		}
		if _, err := on.Between(from, plain); err == nil || !strings.Contains(err.Error(), "cuEventElapsedTime: CUDA_ERROR_INVALID_HANDLE") {
			t.Errorf("without times: %v", err)
		}
		return errors.Join(on.CloseEvent(from), on.CloseEvent(to), on.CloseEvent(plain), on.CloseStream(s))
	})
}
