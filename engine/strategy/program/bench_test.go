package program_test

import (
	"context"
	"testing"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/program"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// What a batch takes: drawn and gathered for a model of hopmesh's own (own), and where a
// program reads it (program), of which ids, labels and edges (numbers) are all that is
// copied. Rows are gathered where the program reads them.
func BenchmarkHanding(b *testing.B) {
	shards := traintest.Communities(b, 40_000)
	batches := func(model string, s strategy.Settings) (*train.Learner, func(step int) *slot.Slot) {
		r := recipe.DefaultRecipe(model)
		r.Model.Layers, r.Fanouts, r.Batch, r.Sharing = 3, []int{15, 10, 5}, 1024, s
		r.Model.Resolve()
		l := traintest.Started(b, r, shards, train.Options{Threads: 1, Strategies: train.Strategies{batched.Single, program.Strategy}, Desk: desk.New()})
		t := l.Run
		t.Batches.Shuffle(1)
		first := t.Batches.Slots[0]
		return l, func(step int) *slot.Slot {
			t.Batches.Set(first, step%t.Batches.Steps)
			if err := t.Method.Prepare(context.Background(), t.Batches.Workers[0], first, 1); err != nil {
				b.Fatal(err)
			}
			return first
		}
	}
	b.Run("own", func(b *testing.B) {
		_, prepare := batches("sage", strategy.Settings{})
		prepare(0)
		for b.Loop() {
			prepare(0)
		}
	})
	b.Run("program", func(b *testing.B) {
		_, prepare := batches(nn.Program, strategy.Given(program.Name))
		prepare(0)
		for b.Loop() {
			prepare(0)
		}
	})
	b.Run("numbers", func(b *testing.B) {
		_, prepare := batches(nn.Program, strategy.Given(program.Name))
		s := prepare(0)
		vertices, edges := program.WriteNumbers(s)
		for b.Loop() {
			program.WriteNumbers(s)
		}
		b.ReportMetric(float64(vertices), "vertices")
		b.ReportMetric(float64(edges), "edges")
	})
}
