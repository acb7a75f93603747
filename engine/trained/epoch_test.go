package trained_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// busy is an epoch of several nodes in which everything was sent.
func busy() trained.Epoch {
	e := trained.Epoch{Rate: 0.0012345678901234567, Steps: 12345, Edges: 1_234_567_890_123}
	for k := range e.Sent.Bytes {
		e.Sent.Bytes[k], e.Sent.Requests[k] = 123_456_789_012+uint64(k), 1_234_567+uint64(k)
	}
	scores := evaluate.Scores{Count: 123_456, Loss: 0.12345678901234567, Accuracy: 0.98765432109876543, MacroF1: 0.87654321098765432}
	e.Scores = &evaluate.Result{Train: scores, Val: scores, Test: scores, Sent: e.Sent}
	e.Record = epoch.Record{
		Epoch: 9999, Loss: 0.12345678901234567, Seconds: 1.2345678901234567, Hash: strings.Repeat("0123456789abcdef", 4),
		Phases: epoch.Phases{Sample: 1.2345678901234567, Gather: 2.3456789012345678, Compute: 3.4567890123456789, Reduce: 4.5678901234567891, Wait: 5.6789012345678912},
		Rows:   epoch.Rows{Local: 1_234_567_890, Remote: 234_567_890}, Strategy: "centric", Why: strings.Repeat("w", 190), Slots: 50,
	}
	e.Requests, e.Bytes = e.Sent.Record()
	e.Rank(recipe.MacroF1)
	return e
}

// A checkpoint lists the last ten thousand epochs in its head, which has 16 MiB.
func TestAllEpochsFitInACheckpoint(t *testing.T) {
	const epochs, head, rest = 10_000, 16 << 20, 1 << 20
	text, err := json.Marshal(busy())
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(string(text)) // as metadata has it
	if err != nil {
		t.Fatal(err)
	}
	if len(quoted)*epochs > head-rest {
		t.Errorf("an epoch takes %d bytes, so %d take %d of %d: %s", len(quoted), epochs, len(quoted)*epochs, head, text)
	}
}

func TestAnEpochIsReadAsItWas(t *testing.T) {
	for name, want := range map[string]trained.Epoch{"busy": busy(), "alone": {Record: epoch.Record{Epoch: 1, Loss: 0.5, Hash: "ab"}, Steps: 3}} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got trained.Epoch
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		got.Rank(recipe.MacroF1)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v was read as %+v", name, want, got)
		}
	}
}
