package evaluate

import (
	"testing"

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
	}
}
