package control

import (
	"maps"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/node/api"
)

// epochOf converts the record of an epoch to what the API shows.
func epochOf(e plan.Epoch) api.JobEpoch {
	a := api.JobEpoch{
		Epoch: e.Epoch, Model: e.Model, Loss: e.Loss, Seconds: e.Seconds, Phases: e.Phases, Rows: e.Rows, Requests: e.Requests, Bytes: e.Bytes,
		Generation: e.Generation, Weights: e.Hash, Strategy: e.Strategy, Why: e.Why,
		Slots: e.Slots, Behind: e.Behind, Predicted: e.Predicted, Super: e.Super, Seen: e.Seen, Figures: e.Figures,
	}
	if v := e.Eval; v != nil {
		a.TrainAccuracy, a.ValAccuracy, a.TestAccuracy = v.Train, v.Val, v.Test
		a.Metrics, a.Metric = metricsOf(v)
		a.Eval = &api.JobEval{Seconds: v.Seconds, Bytes: v.Bytes}
	}
	return a
}

// metricsOf returns the metrics of an evaluation, and which of them ranks epochs where there is no
// accuracy. Of classes the record has the accuracy by itself.
func metricsOf(e *epoch.Eval) (all *api.JobMetrics, by string) {
	m := e.Metrics
	if e.Train == nil && e.Val == nil && e.Test == nil {
		if m == nil {
			return nil, ""
		}
		return &api.JobMetrics{Train: m.Train, Val: m.Val, Test: m.Test}, m.By
	}
	if m == nil {
		m = &epoch.Metrics{}
	}
	with := func(accuracy *float64, others map[string]float64) map[string]float64 {
		if accuracy == nil {
			return nil
		}
		one := map[string]float64{task.Accuracy: *accuracy}
		maps.Copy(one, others)
		return one
	}
	return &api.JobMetrics{Train: with(e.Train, m.Train), Val: with(e.Val, m.Val), Test: with(e.Test, m.Test)}, ""
}

// togetherOf returns an epoch of one model of a sweep with the time, rows and bytes of
// all models. Work that the models share, such as sampling, is counted with the first
// model that trained in the epoch.
func togetherOf(j plan.Job, e plan.Epoch) api.JobEpoch {
	number, own := e.Epoch, e.Model
	for model := range j.Bests {
		if model == own {
			continue
		}
		if other, trained := j.EpochAt(number, model); trained {
			e.AddCost(&other)
		}
	}
	return epochOf(e)
}

// ahead returns the epoch of the model with the best score in the first of these epochs.
func ahead(history []plan.Epoch) plan.Epoch {
	first := history[0]
	for _, e := range history[1:] {
		if e.Epoch != first.Epoch {
			break
		}
		evaluated := e.Eval.Ranks()
		if evaluated && e.Better(first) || !evaluated && e.Loss < first.Loss {
			first = e
		}
	}
	return first
}
