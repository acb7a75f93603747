package train_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// byModel are the epochs that were told of, each once, by model and in order.
type byModel map[[2]int]trained.Epoch

func (b byModel) hear(e trained.Epoch) { b[[2]int{e.Model, e.Epoch}] = e }

func (b byModel) all() (all []trained.Epoch) {
	for _, e := range b {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b trained.Epoch) int { return (a.Model-b.Model)<<20 + a.Epoch - b.Epoch })
	return all
}

// interrupted is a sweep in which one model stops early, one diverges, and two go on.
func interrupted() recipe.Recipe {
	r := traintest.Small("sage")
	r.Batch, r.Epochs = 60, 5
	return traintest.Swept(r, "lr=0.03 patience=1", "lr=0.003 hidden=5", "lr=1e30 optimizer=sgd", "lr=0.01")
}

// Wherever it is interrupted, a sweep goes on as if nothing had happened.
func TestAnInterruptedSweepGoesOn(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := interrupted()
	result, undisturbed := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	want := byModel{}
	for _, e := range undisturbed {
		want.hear(e)
	}
	random := rand.New(rand.NewPCG(1, 2))
	dir, reports, stops := t.TempDir(), byModel{}, 0
	var history []trained.Epoch
	for ; ; stops++ {
		if stops > 1000 {
			t.Fatal("it gets nowhere")
		}
		got, err := train.Run(endAfter(t, 1+random.IntN(30)), r, shards, train.Options{Strategies: strategies.All,
			Threads: 1, Dir: dir, Resume: true, Dataset: "d", Report: reports.hear, Announce: func(f train.Forecast) { history = f.History },
		})
		if err == nil {
			result.Models, got.Models = nil, nil
			if lasting(got.Best) != lasting(result.Best) || got.Early != result.Early {
				t.Errorf("it ends with %+v, and undisturbed with %+v", got, result)
			}
			break
		}
		if !errors.Is(err, traintest.ErrEnough) {
			t.Fatal(err)
		}
	}
	if got := traintest.Learnt(reports.all()); got != traintest.Learnt(want.all()) || stops < 4 {
		t.Errorf("after %d stops:\n%s\nand undisturbed\n%s", stops, got, traintest.Learnt(want.all()))
	}
	for _, e := range history {
		if of := want[[2]int{e.Model, e.Epoch}]; lasting(e) != lasting(of) {
			t.Errorf("the history has %s for %s", lasting(e), lasting(of))
		}
	}
}

// cancelBefore is a context that ends when a node asks for what another brings to a sum.
func cancelBefore(t *testing.T, m *traintest.Mesh, tag exchange.Tag) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if q.Service == peer.Offers && q.Epoch == tag.Epoch && q.Step == tag.Step && q.Part == tag.Index {
			cancel(traintest.ErrEnough)
		}
		return nil
	}
	return ctx
}

// Who stands further, within a step, is known by how many models have done it.
func TestWithinAStepTheFurthestHasFewestLeft(t *testing.T) {
	r := rates(traintest.Small("gcn"))
	tr := traintest.Started(t, r, traintest.Communities(t, 1500), train.Options{Threads: 1}).Run
	stand := func(models ...[2]int) [3]int {
		for k, at := range models {
			tr.Learners[k].At = trained.State{Epoch: at[0], Step: at[1]}
		}
		at := tr.Place()
		return [3]int{at.Epoch, at.Step, at.Left}
	}
	for want, got := range map[[3]int][3]int{
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
}
