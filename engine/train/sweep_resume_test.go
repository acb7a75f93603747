package train

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// byModel are the epochs that were told of, each once, by model and in order.
type byModel map[[2]int]Epoch

func (b byModel) hear(e Epoch) { b[[2]int{e.Model, e.Epoch}] = e }

func (b byModel) all() (all []Epoch) {
	for _, e := range b {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Epoch) int { return (a.Model-b.Model)<<20 + a.Epoch - b.Epoch })
	return all
}

// interrupted is a sweep in which one model stops early, one diverges, and two go on.
func interrupted() Recipe {
	r := small("sage")
	r.Batch, r.Epochs = 60, 5
	return swept(r, "lr=0.03 patience=1", "lr=0.003 hidden=5", "lr=1e30 optimizer=sgd", "lr=0.01")
}

// Wherever it is interrupted, a sweep goes on as if nothing had happened.
func TestAnInterruptedSweepGoesOn(t *testing.T) {
	shards := communities(t, 1500)
	r := interrupted()
	result, undisturbed := mustRun(t, r, shards, Options{Threads: 1})
	want := byModel{}
	for _, e := range undisturbed {
		want.hear(e)
	}
	random := rand.New(rand.NewPCG(1, 2))
	dir, told, stops := t.TempDir(), byModel{}, 0
	var history []Epoch
	for ; ; stops++ {
		if stops > 1000 {
			t.Fatal("it gets nowhere")
		}
		got, err := Run(endAfter(t, 1+random.IntN(30)), r, shards, Options{
			Threads: 1, Dir: dir, Resume: true, Dataset: "d", Report: told.hear, Announce: func(f Forecast) { history = f.History },
		})
		if err == nil {
			result.Models, got.Models = nil, nil
			if plain(got.Best) != plain(result.Best) || got.Early != result.Early {
				t.Errorf("it ends with %+v, and undisturbed with %+v", got, result)
			}
			break
		}
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
	}
	if got := learnt(told.all()); got != learnt(want.all()) || stops < 4 {
		t.Errorf("after %d stops:\n%s\nand undisturbed\n%s", stops, got, learnt(want.all()))
	}
	for _, e := range history {
		if of := want[[2]int{e.Model, e.Epoch}]; plain(e) != plain(of) {
			t.Errorf("the history has %s for %s", plain(e), plain(of))
		}
	}
}

// cancelBefore is a context that ends when a node asks for what another brings to a sum.
func cancelBefore(t *testing.T, m *mesh, tag exchange.Tag) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	m.net.Trouble = func(_ context.Context, _, _ int, q strategy.Query) error {
		if q.Service == strategy.Offers && q.Epoch == tag.Epoch && q.Step == tag.Step && q.Part == tag.Index {
			cancel(errEnough)
		}
		return nil
	}
	return ctx
}

// Nodes are interrupted in the middle of steps, some models of which are done: whoever is
// furthest is followed. Models of local updates go back to their last average.
func TestAnInterruptedSweepGoesOnOnThreeNodes(t *testing.T) {
	shards := communities(t, 1500)
	random := rand.New(rand.NewPCG(3, 4))
	for way, sharing := range map[string]strategy.Settings{"migrate": ways()["migrate"], "centric": ways()["centric"], "local": updating("off", 3)} {
		r := everywhere(interrupted(), func(of *Recipe) { of.Sharing = sharing })
		_, alone := newMesh(3, uneven(len(shards), 3)).mustRun(t, r, shards, Options{Threads: 1})
		want := byModel{}
		for _, e := range alone[0] {
			want.hear(e)
		}
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		told := byModel{}
		runs, apart, done := 0, 0, false
		for ; !done; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			m := newMesh(3, uneven(len(shards), 3))
			ctx := cancelAfter(t, m, 300+random.Int64N(900))
			if runs < 4 {
				ctx = cancelBefore(t, m, exchange.Tag{Epoch: uint32(1 + runs/2), Step: []uint32{5, 11}[runs%2], Index: 3})
			}
			_, epochs, err := m.run(ctx, r, shards, Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}, func(node int) string {
				return folders[(node+runs)%3]
			})
			if err != nil && !errors.Is(err, errEnough) {
				t.Fatal(way, err)
			}
			for _, of := range epochs {
				for _, e := range of {
					told.hear(e)
				}
			}
			done = err == nil
			for _, folder := range folders {
				c, err := openCheckpoint(filepath.Join(folder, CheckpointFile))
				if err != nil {
					continue // none yet
				}
				if a, b := c.models[1].State, c.models[3].State; a.Step != b.Step {
					apart++
				}
				if err := c.close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := learnt(told.all()); runs < 5 || got != learnt(want.all()) || apart < 4 {
			t.Errorf("%s: after %d runs, with %d checkpoints within steps,\n%s\nand undisturbed\n%s", way, runs, apart, got, learnt(want.all()))
		}
	}
}

// Who stands further, within a step, is known by how many models have done it.
func TestWithinAStepTheFurthestHasFewestLeft(t *testing.T) {
	r := rates(small("gcn"))
	tr := started(t, r, communities(t, 1500), Options{Threads: 1}).trainer
	stand := func(models ...[2]int) place {
		for k, at := range models {
			tr.learners[k].at = state{Epoch: at[0], Step: at[1]}
		}
		return tr.place()
	}
	for want, got := range map[place]place{
		{1, 0, 4}: stand([2]int{1, 0}, [2]int{1, 0}, [2]int{1, 0}, [2]int{1, 0}),
		{1, 4, 3}: stand([2]int{1, 5}, [2]int{1, 4}, [2]int{1, 4}, [2]int{1, 4}),
		{2, 3, 1}: stand([2]int{2, 4}, [2]int{3, 0}, [2]int{2, 4}, [2]int{2, 3}),
		{3, 0, 2}: stand([2]int{5, 0}, [2]int{3, 0}, [2]int{4, 0}, [2]int{3, 0}), // 5 is after the last
		{5, 0, 0}: stand([2]int{5, 0}, [2]int{5, 0}, [2]int{5, 0}, [2]int{5, 0}),
	} {
		if got != want {
			t.Errorf("they stand at %+v, and it is taken for %+v", want, got)
		}
	}
	last := greeting{Epoch: 1, Step: 4, Left: 1, Updates: 9}
	if other := (greeting{Epoch: 1, Step: 4, Left: 2, Updates: 9}); last.compare(&other) <= 0 {
		t.Errorf("%+v is not further than %+v", last, other)
	}
}
