package epoch

import (
	"encoding/json"
	"reflect"
	"testing"
)

// What plans stored before this package was made reads as it did.
func TestStoredRecords(t *testing.T) {
	for stored, want := range map[string]Record{
		`{"epoch":2,"loss":1.5,"seconds":0.25,"phases":{"compute":0.125},"rows":{"local":40},"eval":{"seconds":0.5,"train":1,"val":0.75,"score":0.75,"loss":1},"generation":9,"weights":"ab"}`: {
			Epoch: 2, Loss: 1.5, Seconds: 0.25, Phases: Phases{Compute: 0.125}, Rows: Rows{Local: 40},
			Eval: &Eval{Seconds: 0.5, Train: new(1.0), Val: new(0.75), Score: 0.75, Loss: 1}, Generation: 9, Hash: "ab",
		},
		`{"epoch":3,"model":4,"loss":1,"seconds":2,"phases":{"sample":1,"gather":2,"compute":3,"reduce":4,"wait":5},"rows":{"local":6,"remote":7,"kept":5},"requests":{"feature":8,"topology":9,"activation":10,"gradient":11},` +
			`"bytes":{"feature":1,"topology":2,"model":3,"gradient":4,"activation":5,"shard":6,"control":7},"eval":{"seconds":1,"test":0.5,"score":0,"loss":0,"bytes":{"control":8}},` +
			`"generation":12,"weights":"cd","strategy":"grappa","why":"it sends less","slots":13,"behind":14,"super_epoch":15,"edges_seen":0.5}`: {
			Epoch: 3, Model: 4, Loss: 1, Seconds: 2, Phases: Phases{1, 2, 3, 4, 5}, Rows: Rows{Local: 6, Remote: 7, Kept: 5}, Requests: Requests{8, 9, 10, 11}, Bytes: Bytes{1, 2, 3, 4, 5, 6, 7},
			Eval: &Eval{Seconds: 1, Test: new(0.5), Bytes: Bytes{Control: 8}}, Generation: 12, Hash: "cd",
			Strategy: "grappa", Why: "it sends less", Slots: 13, Behind: 14, Super: 15, Seen: 0.5,
		},
		`{"epoch":1,"loss":0,"seconds":0,"generation":1,"weights":"","predicted":{"stages":2,"ways":3,"seconds":1}}`: {
			Epoch: 1, Generation: 1, Predicted: &Layout{Stages: 2, Ways: 3, Seconds: 1},
		},
	} {
		var got Record
		if err := json.Unmarshal([]byte(stored), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v (%v)", stored, got, err)
		}
		// It is stored again under the same names.
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var was, is map[string]any
		if json.Unmarshal([]byte(stored), &was) != nil || json.Unmarshal(again, &is) != nil || !within(was, is) || len(was) != len(is) {
			t.Errorf("%s is stored as %s", stored, again)
		}
	}
}

// within reports whether all that one object holds is in another.
func within(a, b map[string]any) bool {
	for name, of := range a {
		if part, nested := of.(map[string]any); nested {
			if other, is := b[name].(map[string]any); !is || !within(part, other) {
				return false
			}
		} else if !reflect.DeepEqual(of, b[name]) {
			return false
		}
	}
	return true
}

// An epoch is better by its score, then by its loss, if it was evaluated.
func TestBetter(t *testing.T) {
	of := func(score, loss float64) Record { return Record{Eval: &Eval{Val: &score, Score: score, Loss: loss}} }
	for i, c := range []struct {
		a, b Record
		want bool
	}{
		{of(0.5, 1), Record{}, true}, {Record{}, of(0, 1), false}, {Record{Eval: &Eval{Score: 1}}, Record{}, false},
		{of(0.5, 1), of(0.4, 0), true}, {of(0.5, 1), of(0.5, 2), true}, {of(0.5, 1), of(0.5, 1), false}, {of(0.4, 0), of(0.5, 1), false},
	} {
		if c.a.Better(c.b) != c.want {
			t.Errorf("%d: %+v and %+v", i, c.a.Eval, c.b.Eval)
		}
	}
}
