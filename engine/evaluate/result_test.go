package evaluate

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/task"
)

// A record has the score that ranks epochs, and no accuracy where there are no vertices.
func TestRecordOfAResult(t *testing.T) {
	r := Result{Seconds: 3, Val: Scores{Count: 9, Accuracy: 0.5, MacroF1: 0.25, AUC: 0.75, Loss: 2}, Test: Scores{Count: 1}}
	r.Sent.Bytes[peer.Shard] = 36
	for metric, want := range map[string]float64{task.Accuracy: 0.5, task.MacroF1: 0.25, task.ROCAUC: 0.75} {
		e := r.Record(metric)
		if e.Score != want || e.Seconds != 3 || e.Loss != 2 || e.Train != nil || *e.Val != 0.5 || *e.Test != 0 || e.Bytes.Shard != 36 || e.Bytes.Total() != 36 {
			t.Errorf("%s: %+v", metric, e)
		}
		if metric == task.Accuracy {
			if e.Metrics != nil {
				t.Errorf("%+v beside the accuracy", e.Metrics)
			}
		} else if m := e.Metrics; m == nil || m.By != metric || len(m.Train) != 0 || len(m.Val) != 1 || m.Val[metric] != want || len(m.Test) != 1 {
			t.Errorf("%s: %+v", metric, m)
		}
	}
	// Outputs of training vertices are not ranked.
	r.Train = Scores{Count: 2, MacroF1: 0.125}
	if plain, ranked := r.Record(task.MacroF1).Metrics, r.Record(task.ROCAUC).Metrics; plain.Train[task.MacroF1] != 0.125 || ranked.Train != nil {
		t.Errorf("training vertices have %v and %v", plain.Train, ranked.Train)
	}
}

// Records of ranked pairs fit into plans, which keep 400 bytes of an epoch's metrics. Others keep
// all digits, and epochs are compared by all in any case.
func TestRecordsOfRanksAreShort(t *testing.T) {
	const x = 0.00012345678901234567
	all := func(names ...string) map[string]float64 {
		m := map[string]float64{}
		for _, name := range names {
			m[name] = x
		}
		return m
	}
	few := []string{task.ROCAUC, task.AveragePrecision}
	many := slices.Concat(few, task.OfRanks)
	r := Result{Metrics: &epoch.Metrics{Train: all(few...), Val: all(many...), Test: all(many...)}}
	e := r.Record(task.AveragePrecision)
	text, err := json.Marshal(e.Metrics)
	if err != nil || len(text) > 400 || e.Score != x || len(e.Metrics.Val) != 6 {
		t.Errorf("%d bytes: %s, score %g, %v", len(text), text, e.Score, err)
	}
	if e.Metrics.Train[task.ROCAUC] != 0.000123 || e.Metrics.Val[task.MRR] != 0.000123 || r.Metrics.Val[task.MRR] != x {
		t.Errorf("%+v of %+v", e.Metrics, r.Metrics)
	}
	// Hits of one's own fit, too, the highest and most that there may be.
	many = task.PairMetrics(&link.Spec{Hits: []int{link.MostRanks - 2, link.MostRanks - 1, link.MostRanks}})
	if len(many) != 3+link.MostHits {
		t.Errorf("%d metrics", len(many))
	}
	r.Metrics.Val, r.Metrics.Test = all(many...), all(many...)
	e = r.Record("hits_at_1048576")
	if text, err = json.Marshal(e.Metrics); err != nil || len(text) > 400 || e.Score != x {
		t.Errorf("%d bytes: %s, score %g, %v", len(text), text, e.Score, err)
	}
	r.Metrics.Val, r.Metrics.Test = all(few...), all(few...)
	if e := r.Record(task.ROCAUC); e.Metrics.Val[task.ROCAUC] != x || e.Metrics.Train[task.ROCAUC] != x {
		t.Errorf("without ranks: %+v", e.Metrics)
	}
}
