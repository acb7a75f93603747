package plan

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/epoch"
)

// The metrics of an epoch take bounded room in a plan.
func TestMetricsAreBounded(t *testing.T) {
	for name, refused := range map[string]bool{"rmse": false, strings.Repeat("x", 400): true} {
		for value, odd := range map[float64]bool{0.25: false, math.Inf(1): true} {
			e := Epoch{Epoch: 1, Eval: &epoch.Eval{Metrics: &epoch.Metrics{By: "rmse", Val: map[string]float64{name: value}}}}
			if err := checkMetrics(&e); errors.Is(err, ErrInvalid) != (refused || odd) {
				t.Errorf("%.10s is %g: %v", name, value, err)
			}
		}
	}
	if err := checkMetrics(&Epoch{Eval: &epoch.Eval{}}); err != nil {
		t.Error(err)
	}
}
