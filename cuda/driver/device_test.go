//go:build cuda && !emulator

package driver

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestEverythingHappensOnOneThread(t *testing.T) {
	d := opened(t)
	threads := map[int]int{}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				err := d.Do(func(on *Thread) error {
					threads[syscall.Gettid()]++ // no lock: one at a time
					runtime.Gosched()
					m, err := on.Alloc(64)
					return errors.Join(err, on.Free(m))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if len(threads) != 1 || threads[syscall.Gettid()] != 0 {
		t.Fatalf("threads %v, and this is %d", threads, syscall.Gettid())
	}
	other := opened(t)
	do(t, other, func(*Thread) error {
		if threads[syscall.Gettid()] != 0 {
			t.Error("two devices share a thread")
		}
		return nil
	})
}

func TestDoReturnsWhatTheFunctionDid(t *testing.T) {
	d := opened(t)
	wrong := errors.New("wrong")
	if err := d.Do(func(*Thread) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if p := recover(); p != "panicked" {
				t.Errorf("recovered %v", p)
			}
		}()
		_ = d.Do(func(*Thread) error { panic("panicked") })
	}()
	do(t, d, func(*Thread) error { return nil })
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Do(func(*Thread) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAFunctionThatEndsItsGoroutineHangsNobody(t *testing.T) {
	d := opened(t)
	if err := d.Do(func(*Thread) error { runtime.Goexit(); return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := d.Do(func(*Thread) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("after it: %v", err)
	}
}

func TestOpenOfADeviceThatIsNotThere(t *testing.T) {
	for _, ordinal := range []int{-1, 2} {
		if _, err := Open(ordinal); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_INVALID_DEVICE") {
			t.Errorf("GPU %d: %v", ordinal, err)
		}
	}
}

// lose is for tests that lose a device. The driver for tests can open another.
func lose(t *testing.T) {
	t.Cleanup(func() { fault.err = nil })
}

func TestALostDeviceIsRecognised(t *testing.T) {
	lose(t)
	d := opened(t)
	faulty := func(on *Thread) error {
		k := kernel(t, on, "fault")
		s, err := on.NewStream()
		if err != nil {
			return err
		}
		if err := on.Launch(k, Shape{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Stream: s}); err != nil {
			return err
		}
		return on.Finish(s)
	}
	err := d.Do(faulty)
	const says = "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): words of the driver"
	var is *Error
	if !errors.Is(err, ErrLost) || !errors.As(err, &is) || err.Error() != says {
		t.Fatalf("got %v", err)
	}
	ran := false
	if err := d.Do(func(*Thread) error { ran = true; return nil }); !errors.Is(err, ErrLost) || err.Error() != says || ran {
		t.Errorf("after it: %v, ran %v", err, ran)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(0); !errors.Is(err, ErrLost) || err.Error() != "open GPU 0: a GPU failed before, and this program has to be started anew to use one again: "+says {
		t.Errorf("opened again: %v", err)
	}
}

func TestALostDeviceIsToldEvenIfTheFunctionHidesIt(t *testing.T) {
	lose(t)
	d := opened(t)
	err := d.Do(func(on *Thread) error {
		if err := on.Launch(kernel(t, on, "fault"), Shape{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}}); err != nil {
			return err
		}
		if on.Synchronize() == nil {
			t.Error("no fault")
		}
		return errors.New("something else")
	})
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "something else") {
		t.Errorf("got %v", err)
	}
}

func TestNamesOfErrors(t *testing.T) {
	for code, says := range map[int]string{
		2:     "cuX: CUDA_ERROR_OUT_OF_MEMORY (2): words of the driver",
		721:   "cuX: A_NEWER_NAME (721): words of the driver",
		12345: "cuX: CUDA error 12345 (12345)",
	} {
		if got := (&Error{"cuX", code}).Error(); got != says {
			t.Errorf("got %q", got)
		}
	}
}

func TestWhichErrorsLoseADevice(t *testing.T) {
	for code, is := range map[int]bool{1: false, 2: false, 218: false, 500: false, 600: false, 700: true, 716: true, 719: true, 214: true, 721: true, 999: true} {
		if got := errors.Is(&Error{"cuX", code}, ErrLost); got != is {
			t.Errorf("%d: %v", code, got)
		}
	}
}
