package program_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/desk/desktest"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// A job goes on from what programs have kept, to the same end.
func TestItGoesOnFromWhatWasKept(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for _, nodes := range []int{1, 3} {
		for name, trouble := range map[string]func(w *world, stop func()) func(desktest.Place) error{
			"superseded": func(_ *world, stop func()) func(desktest.Place) error {
				return func(at desktest.Place) error {
					if at.Epoch == 2 && at.Step == 1 {
						stop()
					}
					return nil
				}
			},
			"left": func(_ *world, _ func()) func(desktest.Place) error {
				return func(at desktest.Place) error {
					if at.Epoch == 2 && at.Step == 1 {
						return errLeaves
					}
					return nil
				}
			},
		} {
			t.Run(fmt.Sprint(name, nodes), func(t *testing.T) {
				r := jobOf([]int{3, 3})
				want := newWorld(t, nodes, r, shards)
				for _, p := range want.programs {
					p.Every = 2
				}
				want.whole()

				w := newWorld(t, nodes, r, shards)
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				var ended []chan error
				for node, p := range w.programs {
					w.dirs[node] = t.TempDir()
					p.Every = 2
					if node == nodes-1 {
						p.Before = trouble(w, func() { stop(errors.New("another generation begins")) })
					}
					ended = append(ended, w.attach(node))
				}
				if err := errors.Join(w.run(ctx)...); err == nil {
					t.Fatal("nothing has happened")
				}
				last := w.programs[nodes-1]
				if name == "left" {
					if err := <-ended[nodes-1]; !errors.Is(err, errLeaves) {
						t.Fatal(err)
					}
					fresh := &desktest.Program{Rate: last.Rate, Every: 2}
					w.programs[nodes-1] = fresh
					ended[nodes-1] = w.attach(nodes - 1)
				} else {
					last.Before = nil
				}
				if err := errors.Join(w.run(t.Context())...); err != nil {
					t.Fatal(err)
				}
				w.finish(ended)
				for node, p := range w.programs {
					if !slices.Equal(p.Weights, want.programs[0].Weights) {
						t.Errorf("node %d comes to other weights", node)
					}
					ready := p.Readies[len(p.Readies)-1]
					if ready.State == nil || ready.Epoch == 1 && ready.Step == 0 {
						t.Errorf("node %d goes on from %+v", node, ready)
					}
				}
				if w.programs[0].Restarts != 1 && nodes > 1 {
					t.Errorf("the first program has heard again %d times", w.programs[0].Restarts)
				}
				if got, want := w.epochs[0][len(w.epochs[0])-1].Hash, want.epochs[0][2].Hash; got != want {
					t.Errorf("the sums have digest %s, and undisturbed %s", got, want)
				}
			})
		}
	}
}

var errLeaves = errors.New("the program leaves")

// Without anything kept, a job begins anew.
func TestNothingKept(t *testing.T) {
	w := newWorld(t, 1, jobOf([]int{3, 3}), traintest.Communities(t, 600))
	w.dirs[0] = t.TempDir()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	w.programs[0].Before = func(at desktest.Place) error {
		if at.Epoch == 2 {
			stop(errors.New("another generation begins"))
		}
		return nil
	}
	ended := w.attach(0)
	if errs := w.run(ctx); errs[0] == nil {
		t.Fatal("nothing has happened")
	}
	w.programs[0].Before = nil
	w.change = func(_ int, o *train.Options) { o.Known = 1 }
	if errs := w.run(t.Context()); errs[0] != nil {
		t.Fatal(errs[0])
	}
	w.finish([]chan error{ended})
	if got := w.programs[0].Readies[1]; got.Epoch != 1 || got.Step != 0 || got.State != nil {
		t.Errorf("it goes on from %+v", got)
	}
	if len(w.epochs[0]) != 4 || w.epochs[0][0].Hash != w.epochs[0][1].Hash {
		t.Errorf("%d epochs", len(w.epochs[0]))
	}
}

// What programs keep in the first epoch counts, though no epoch has ended and no checkpoint
// is due.
func TestKeptBeforeAnEpochHasEnded(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		w := newWorld(t, nodes, jobOf([]int{3, 3}), traintest.Communities(t, 900))
		w.change = func(_ int, o *train.Options) { o.Verify = func(context.Context, bool) error { return nil } }
		var ended []chan error
		for node, p := range w.programs {
			w.dirs[node], p.Every = t.TempDir(), 1
			if node == nodes-1 {
				p.Before = func(at desktest.Place) error {
					if at.Epoch == 1 && at.Step == 2 {
						return errLeaves
					}
					return nil
				}
			}
			ended = append(ended, w.attach(node))
		}
		if err := errors.Join(w.run(t.Context())...); !errors.Is(err, desk.ErrLeft) {
			t.Fatal(err)
		}
		if err := <-ended[nodes-1]; !errors.Is(err, errLeaves) {
			t.Errorf("the program that leaves ended by %v", err)
		}
		w.programs[nodes-1] = &desktest.Program{Rate: w.programs[0].Rate, Every: 1}
		ended[nodes-1] = w.attach(nodes - 1)
		if err := errors.Join(w.run(t.Context())...); err != nil {
			t.Fatal(err)
		}
		w.finish(ended)
		got := w.programs[nodes-1].Readies[0]
		if got.Epoch != 1 || got.Step == 0 || got.State == nil || got.Node != fmt.Sprintf("n%d", nodes-1) {
			t.Errorf("on %d nodes it goes on from %+v", nodes, got)
		}
	}
}

// A state that is kept after the last step of an epoch is that of the next one's beginning.
func TestKeptAtTheEndOfAnEpoch(t *testing.T) {
	w := newWorld(t, 1, jobOf([]int{3, 3}), traintest.Communities(t, 600))
	w.dirs[0] = t.TempDir()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	p := w.programs[0]
	p.Last = func(int) desk.Scores {
		if err := p.Keep(); err != nil {
			t.Error(err)
		}
		return desk.Scores{}
	}
	p.Before = func(at desktest.Place) error {
		if at.Epoch == 3 && at.Step == 1 {
			stop(errors.New("another generation begins"))
		}
		return nil
	}
	ended := w.attach(0)
	if errs := w.run(ctx); errs[0] == nil {
		t.Fatal("nothing has happened")
	}
	p.Before = nil
	if errs := w.run(t.Context()); errs[0] != nil {
		t.Fatal(errs[0])
	}
	w.finish([]chan error{ended})
	if got := p.Readies[1]; got.Epoch != 3 || got.Step != 0 || got.State == nil {
		t.Errorf("it goes on from %+v", got)
	}
}

func TestStop(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		w := newWorld(t, nodes, jobOf([]int{3, 3}), traintest.Communities(t, 600))
		for _, p := range w.programs {
			p.StopAfter = 2
		}
		w.whole()
		if n := len(w.epochs[0]); n != 2 {
			t.Errorf("on %d nodes it stops after %d epochs", nodes, n)
		}
	}
	w := newWorld(t, 2, jobOf([]int{3, 3}), traintest.Communities(t, 600))
	w.programs[1].StopAfter = 1
	ended := []chan error{w.attach(0), w.attach(1)}
	err := errors.Join(w.run(t.Context())...)
	if err == nil || !strings.Contains(err.Error(), "the program of node n0 asks for the next batch where that of node n1 asks to stop") {
		t.Error(err)
	}
	for _, e := range ended {
		if err := <-e; err == nil || !strings.Contains(err.Error(), "asks to stop") {
			t.Errorf("a program hears %v", err)
		}
	}
}

// A run that is to end does not wait for its program.
func TestAProgramThatDoesNotAsk(t *testing.T) {
	w := newWorld(t, 1, jobOf([]int{3, 3}), traintest.Communities(t, 600))
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	reached := make(chan struct{})
	hang := make(chan struct{})
	defer close(hang)
	w.programs[0].Before = func(at desktest.Place) error {
		if at.Epoch == 1 && at.Step == 1 {
			close(reached)
			<-hang
		}
		return nil
	}
	w.attach(0)
	go func() {
		<-reached
		stop(errors.New("it is to end"))
	}()
	ended := make(chan []error, 1)
	go func() { ended <- w.run(ctx) }()
	select {
	case errs := <-ended:
		if errs[0] == nil {
			t.Error("it has ended well")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the run waits for its program")
	}
}
