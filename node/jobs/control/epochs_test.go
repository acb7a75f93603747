package control

import (
	"reflect"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/node/api"
)

// fill sets each number that v holds, at any depth, to x.
func fill(v reflect.Value, x int) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, x)
		}
	case reflect.Uint64:
		v.SetUint(uint64(x))
	case reflect.Float64:
		v.SetFloat(float64(x))
	}
}

// The accuracy stands among the metrics, and beside another one that ranks epochs.
func TestMetricsOfARecord(t *testing.T) {
	val, others := 0.5, &epoch.Metrics{By: "macro_f1", Val: map[string]float64{"macro_f1": 0.25}}
	for _, c := range []struct {
		of   epoch.Eval
		want *api.JobMetrics
		by   string
	}{
		{epoch.Eval{}, nil, ""},
		{epoch.Eval{Val: &val}, &api.JobMetrics{Val: map[string]float64{"accuracy": 0.5}}, ""},
		{epoch.Eval{Val: &val, Metrics: others}, &api.JobMetrics{Val: map[string]float64{"accuracy": 0.5, "macro_f1": 0.25}}, ""},
		{epoch.Eval{Metrics: others}, &api.JobMetrics{Val: others.Val}, "macro_f1"},
	} {
		if got, by := metricsOf(&c.of); !reflect.DeepEqual(got, c.want) || by != c.by {
			t.Errorf("%+v by %q, want %+v by %q", got, by, c.want, c.by)
		}
	}
	if len(others.Val) != 1 {
		t.Error("the record has changed")
	}
}

// Whatever an epoch takes is added up over the models that trained in it, by each count
// there is; what was learnt is one model's.
func TestWhatAnEpochTookOfAllModels(t *testing.T) {
	took := func(model, x int) plan.Epoch {
		e := plan.Epoch{Eval: new(epoch.Eval)}
		fill(reflect.ValueOf(&e).Elem(), x)
		fill(reflect.ValueOf(e.Eval).Elem(), x)
		e.Figures = []epoch.Figure{{Name: "steps apart", Value: float64(x)}}
		e.Epoch, e.Model, e.Hash = 2, model, string(rune('a'+model))
		return e
	}
	unjudged := took(3, 1000)
	unjudged.Eval = nil
	before := took(0, 7)
	before.Epoch = 1
	j := plan.Job{Bests: make([]int, 5), BestModel: 1, History: []plan.Epoch{before, took(0, 1), took(1, 10), took(2, 100), unjudged}}
	got := togetherOf(j, j.History[2])
	var want api.JobEpoch
	fill(reflect.ValueOf(&want).Elem(), 1111)
	want.Eval = new(api.JobEval)
	fill(reflect.ValueOf(want.Eval).Elem(), 111)
	want.Epoch, want.Model, want.Weights, want.Loss, want.Generation = 2, 1, "b", 10, 10
	want.Figures = []api.JobFigure{{Name: "steps apart", Value: 10}}
	want.Seen = 10 // all see the same: a share is not added up
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %+v\nwant %+v, %+v", got, got.Eval, want, want.Eval)
	}
	if alone := togetherOf(plan.Job{History: j.History[:1]}, before); !reflect.DeepEqual(alone, epochOf(before)) {
		t.Errorf("of one model %+v", alone)
	}
}
