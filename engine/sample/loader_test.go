package sample

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A slot is what a loader's test fills.
type slot struct {
	step int
	used atomic.Bool // by a worker or by whom it was handed to
}

func newSlots(n int) []*slot {
	var slots []*slot
	for range n {
		slots = append(slots, &slot{})
	}
	return slots
}

// through takes all steps of an epoch.
func through(t *testing.T, l *Loader[slot], steps int) {
	t.Helper()
	for want := range steps {
		s, err := l.Next(t.Context())
		if err != nil || s.step != want {
			t.Fatalf("step %d: %v, %v", want, s, err)
		}
		s.used.Store(false)
		l.Release(s)
	}
	for range 2 {
		if s, err := l.Next(t.Context()); !errors.Is(err, io.EOF) || s != nil {
			t.Fatalf("after the last step: %v, %v", s, err)
		}
	}
}

func TestLoaderKeepsTheOrder(t *testing.T) {
	for _, slots := range []int{1, 2, 5} {
		for _, workers := range []int{1, 2, 7} {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 1))
				var takes []time.Duration
				for range 100 {
					takes = append(takes, time.Duration(r.IntN(1000))*time.Millisecond)
				}
				var running, most atomic.Int64
				l := NewLoader(newSlots(slots), workers, func(_ context.Context, s *slot, step int) error {
					if s.used.Swap(true) {
						return errors.New("the slot is in use")
					}
					most.Store(max(most.Load(), running.Add(1)))
					time.Sleep(takes[step])
					running.Add(-1)
					s.step = step
					return nil
				})
				for _, steps := range []int{100, 0, 1, 3, 100} {
					l.Begin(t.Context(), steps)
					through(t, l, steps)
				}
				l.End()
				if most.Load() > int64(min(slots, workers)) {
					t.Errorf("%d were filled at a time", most.Load())
				}
			})
		}
	}
}

// TestLoaderIsAhead measures in virtual time how much is prepared, and when.
func TestLoaderIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var filled atomic.Int64
		l := NewLoader(newSlots(4), 2, func(_ context.Context, s *slot, step int) error {
			time.Sleep(time.Second)
			filled.Add(1)
			s.step = step
			return nil
		})
		l.Begin(t.Context(), 20)
		defer l.End()
		if next := l.Following(); next != nil {
			t.Fatalf("%+v is filled before anything is", next)
		}
		s, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		if filled.Load() != 4 {
			t.Errorf("%d are filled while the first is in use, and not that and three", filled.Load())
		}
		for range 2 {
			if next := l.Following(); next == nil || next.step != 1 {
				t.Fatalf("the following slot is %+v, and not that of step 1", next)
			}
		}
		l.Release(s)
		// Two workers fill two slots a second, whoever takes a second for two keeps up.
		start := time.Now()
		for want := 1; want < 20; want++ {
			s, err := l.Next(t.Context())
			if err != nil || s.step != want {
				t.Fatal(s, err)
			}
			time.Sleep(time.Second / 2)
			l.Release(s)
		}
		if next := l.Following(); next != nil {
			t.Errorf("%+v follows the last step", next)
		}
		if took := time.Since(start); took > 11*time.Second {
			t.Errorf("took %v for half a second each", took)
		}
	})
}

// TestTheFirstFailureCounts has later steps fail sooner than earlier ones.
func TestTheFirstFailureCounts(t *testing.T) {
	for _, failing := range [][]int{{0}, {7}, {7, 8, 9, 10}, {19}} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLoader(newSlots(6), 4, func(_ context.Context, s *slot, step int) error {
				time.Sleep(time.Duration(20-step) * time.Second)
				s.step = step
				if slices.Contains(failing, step) {
					return fmt.Errorf("step %d failed", step)
				}
				return nil
			})
			for range 2 { // and can be begun again
				l.Begin(t.Context(), 20)
				for want := range failing[0] {
					s, err := l.Next(t.Context())
					if err != nil || s.step != want {
						t.Fatalf("step %d: %v", want, err)
					}
					l.Release(s)
				}
				for range 2 {
					if _, err := l.Next(t.Context()); err == nil || err.Error() != fmt.Sprintf("step %d failed", failing[0]) {
						t.Fatal(err)
					}
				}
			}
			l.End()
		})
	}
}

func TestNothingBeginsAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := 0
		l := NewLoader(newSlots(3), 1, func(context.Context, *slot, int) error {
			begun++
			return errors.New("failed")
		})
		l.Begin(t.Context(), 20)
		synctest.Wait()
		if begun != 1 {
			t.Errorf("%d steps were begun", begun)
		}
		l.End()
	})
	l := NewLoader(newSlots(3), 1, func(context.Context, *slot, int) error { return nil })
	l.limit.Store(20)
	for _, c := range [][2]int64{{30, 20}, {9, 10}, {4, 5}, {7, 5}, {0, 1}} {
		if l.stopAfter(c[0]); l.limit.Load() != c[1] {
			t.Errorf("after step %d failed, steps below %d may begin and not below %d", c[0], l.limit.Load(), c[1])
		}
	}
}

// TestLoaderEndsAtAnyPoint ends epochs after each number of steps, in each way.
// synctest.Test fails if a goroutine is left.
func TestLoaderEndsAtAnyPoint(t *testing.T) {
	gone := errors.New("the epoch is superseded")
	for at := range 12 {
		for _, way := range []string{"epoch", "next", "end", "begin"} {
			for _, hold := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					l := NewLoader(newSlots(3), 2, func(ctx context.Context, s *slot, step int) error {
						select {
						case <-time.After(time.Second):
						case <-ctx.Done():
							return context.Cause(ctx)
						}
						s.step = step
						return nil
					})
					ctx, cancel := context.WithCancelCause(t.Context())
					l.Begin(ctx, 12)
					var held []*slot
					for want := range at {
						s, err := l.Next(t.Context())
						if err != nil || s.step != want {
							t.Fatal(s, err)
						}
						if hold && len(held) < 2 {
							held = append(held, s)
						} else {
							l.Release(s)
						}
					}
					switch way {
					case "epoch":
						cancel(gone)
						synctest.Wait()
						for range 12 { // what is filled already may still come
							if _, err := l.Next(t.Context()); err != nil {
								if !errors.Is(err, gone) && !errors.Is(err, io.EOF) {
									t.Error(err)
								}
								break
							}
						}
						l.End()
					case "next":
						now, stop := context.WithCancelCause(t.Context())
						stop(gone)
						if _, err := l.Next(now); err != nil && !errors.Is(err, gone) {
							t.Error(err)
						}
						l.End()
					case "end":
						l.End()
						l.End()
						if _, err := l.Next(t.Context()); err == nil {
							t.Error("a slot came after the end")
						}
						for _, s := range held {
							l.Release(s)
						}
					}
					l.Begin(t.Context(), 5)
					for want := range 5 {
						s, err := l.Next(t.Context())
						if err != nil || s.step != want {
							t.Fatal(want, s, err)
						}
						l.Release(s)
					}
					l.End()
					cancel(nil)
				})
			}
		}
	}
}

// TestNextWaitsNoLongerThanAsked has a wait end by its own context, and go on.
func TestNextWaitsNoLongerThanAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLoader(newSlots(2), 1, func(_ context.Context, s *slot, step int) error {
			time.Sleep(10 * time.Second)
			s.step = step
			return nil
		})
		l.Begin(t.Context(), 1)
		defer l.End()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if s, err := l.Next(t.Context()); err != nil || s.step != 0 {
			t.Error(err)
		}
	})
}

func TestALoaderIsUsedAsItShould(t *testing.T) {
	fill := func(context.Context, *slot, int) error { return nil }
	for name, do := range map[string]func(){
		"no slots":   func() { NewLoader(nil, 1, fill) },
		"no workers": func() { NewLoader(newSlots(1), 0, fill) },
		"released before it was handed out": func() {
			l := NewLoader(newSlots(1), 1, fill)
			l.Begin(t.Context(), 0)
			defer l.End()
			l.Release(l.slots[0])
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error(name)
				}
			}()
			do()
		}()
	}
}

func TestLoadingAllocatesNothing(t *testing.T) {
	l := NewLoader(newSlots(3), 2, func(_ context.Context, s *slot, step int) error {
		s.step = step
		return nil
	})
	const steps = 2000
	l.Begin(t.Context(), steps)
	defer l.End()
	taken := 0
	var before, after runtime.MemStats
	step := func() {
		s, err := l.Next(t.Context())
		if err != nil || s.step != taken {
			t.Fatal(err)
		}
		taken++
		l.Release(s)
	}
	for range steps / 4 {
		step()
	}
	runtime.ReadMemStats(&before)
	for range steps / 2 {
		step()
	}
	runtime.ReadMemStats(&after)
	// The runtime makes room for who waits, now and then, and keeps it.
	if n := after.Mallocs - before.Mallocs; n > steps/50 {
		t.Errorf("%d allocations in %d steps", n, steps/2)
	}
}
