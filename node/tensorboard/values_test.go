package tensorboard

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// The metrics of a task are curves, each beside those of the other parts of the split.
func TestMetricsOfATask(t *testing.T) {
	val := 0.5
	r := recipe.DefaultRecipe("sage")
	for _, c := range []struct {
		of   epoch.Eval
		want []value
	}{
		{epoch.Eval{Metrics: &epoch.Metrics{By: "rmse", Train: map[string]float64{"rmse": 0.25, "r2": -2}, Val: map[string]float64{"mae": 0.125}}}, []value{{"r2/train", -2}, {"rmse/train", 0.25}, {"mae/val", 0.125}}},
		{epoch.Eval{Val: &val, Metrics: &epoch.Metrics{By: "macro_f1", Val: map[string]float64{"macro_f1": 0.75}}}, []value{{"accuracy/val", 0.5}, {"macro_f1/val", 0.75}}},
	} {
		e := plan.Epoch{Epoch: 1, Loss: 2, Generation: 3}
		without := valuesOf(&e, &r)
		e.Eval = &c.of
		got := slices.DeleteFunc(valuesOf(&e, &r), func(v value) bool { return slices.Contains(without, v) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}
