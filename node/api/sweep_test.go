package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestModelsOfASweep(t *testing.T) {
	r := TrainRequest{
		Dataset: "a", Set: append(make([]Setting, 0, 9), Setting{"model.head", "linear"}), // there is room behind it
		Sweep: []Sweep{{"lr", []string{"0.10", "1e-2"}}, {"sage.aggregator", []string{"mean", "max"}}, {"model", []string{"sage", "gcn", "gat"}}},
	}
	list, err := r.Variants()
	if err != nil || len(list) != 12 {
		t.Fatalf("%d models, %v", len(list), err)
	}
	i := 0
	for _, lr := range []string{"0.10", "1e-2"} {
		for _, aggregator := range []string{"mean", "max"} {
			for _, model := range []string{"sage", "gcn", "gat"} {
				rate := map[string]float64{"0.10": 0.1, "1e-2": 0.01}[lr]
				want := TrainRequest{Dataset: "a", Model: model, Rate: &rate, Set: []Setting{{"model.head", "linear"}, {"sage.aggregator", aggregator}}}
				v := list[i]
				if !reflect.DeepEqual(v.Request, want) || v.Index != i {
					t.Errorf("model %d asks for %+v", i, v.Request)
				}
				if params := map[string]string{"lr": lr, "sage.aggregator": aggregator, "model": model}; !reflect.DeepEqual(v.Params, params) {
					t.Errorf("model %d has %v", i, v.Params)
				}
				if said := fmt.Sprintf("model %d of the sweep (lr=%s, sage.aggregator=%s, model=%s)", i, lr, aggregator, model); v.String() != said {
					t.Errorf("%s, not %s", v, said)
				}
				i++
			}
		}
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	if r.Rate != nil || r.Model != "" || len(r.Set) != 1 || len(r.Sweep) != 3 {
		t.Errorf("the request was changed: %+v", r)
	}
}

// Each flag gets the value that a flag of a job of its own would.
func TestFlagsOfASweep(t *testing.T) {
	i := func(x int) *int { return &x }
	f := func(x float64) *float64 { return &x }
	yes := true
	for key, want := range map[string]struct {
		value   string
		request TrainRequest
	}{
		"model": {"gat", TrainRequest{Model: "gat"}}, "norm": {"layer", TrainRequest{Norm: "layer"}}, "optimizer": {"sgd", TrainRequest{Optimizer: "sgd"}},
		"layers": {"3", TrainRequest{Layers: i(3)}}, "hidden": {"8", TrainRequest{Hidden: i(8)}}, "heads": {"2", TrainRequest{Heads: i(2)}},
		"patience": {"9", TrainRequest{Patience: i(9)}}, "dropout": {".5", TrainRequest{Dropout: f(0.5)}}, "lr": {"1e-3", TrainRequest{Rate: f(0.001)}},
		"weight-decay": {"0", TrainRequest{WeightDecay: f(0)}}, "residual": {"true", TrainRequest{Residual: &yes}},
	} {
		list, err := TrainRequest{Sweep: []Sweep{{key, []string{want.value, "1"}}}}.Variants()
		if err != nil || !reflect.DeepEqual(list[0].Request, want.request) {
			t.Errorf("%s: %+v, %v", key, list, err)
		}
		given := want.request
		given.Dataset, given.Sweep = "a", []Sweep{{key, []string{want.value, "1"}}}
		if err := given.Check(); err == nil || !strings.Contains(err.Error(), key+" is given as --"+key+" and by --sweep") {
			t.Errorf("%s given twice: %v", key, err)
		}
	}
	if len(SweptFlags()) != 11 {
		t.Errorf("%v", SweptFlags())
	}
}

func TestSweepsThatNoNodeIsAsked(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for says, sweep := range map[string][]Sweep{
		"names no key":                               {{"", []string{"1", "2"}}},
		"names lr twice":                             {{"lr", []string{"1", "2"}}, {"hidden", []string{"1", "2"}}, {"lr", []string{"3", "4"}}},
		"lr has one value at most":                   {{"lr", []string{"1"}}},
		"hidden has one value":                       {{"hidden", nil}},
		"lr has the value 1 twice":                   {{"lr", []string{"1", "2", "1"}}},
		"lr has an empty value":                      {{"lr", []string{"1", "", "2"}}},
		"norm has an empty value":                    {{"norm", []string{"layer", " "}}},
		"more than 64 models":                        {{"lr", many}},
		"the most for a job":                         {{"lr", many[1:9]}, {"hidden", many[1:9]}, {"dropout", []string{"0", "0.5"}}},
		"can't take batch":                           {{"batch", []string{"1", "2"}}},
		"can't take normalize-featu":                 {{"normalize-features", []string{"row", "none"}}},
		"can't take deterministic":                   {{"deterministic", []string{"true", "false"}}},
		"model.head is given by --s":                 {{"model.head", []string{"none", "linear"}}},
		"\"many\" is not a whole nu":                 {{"hidden", []string{"16", "many"}}},
		"--sweep dropout: \"x\" is ":                 {{"dropout", []string{"0", "x"}}},
		"\"maybe\" is not true or f":                 {{"residual", []string{"true", "maybe"}}},
		"model 1 of the sweep (lr=NaN): --lr is NaN": {{"lr", []string{"1", "NaN"}}},
		"(hidden=8, model=gnc): there is no model":   {{"hidden", []string{"8", "16"}}, {"model", []string{"gcn", "gnc"}}},
		"(train.factor=inf): --set train.factor is":  {{"train.factor", []string{"1", "inf"}}},
	} {
		r := TrainRequest{Dataset: "a", Set: []Setting{{"model.head", "none"}}, Sweep: sweep}
		err := r.Check()
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusBadRequest || !strings.Contains(e.Message, says) || strings.Contains(e.Message, "\n") {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	for _, key := range sameFlags {
		err := TrainRequest{Dataset: "a", Sweep: []Sweep{{key, []string{"1", "2"}}}}.Check()
		if err == nil || !strings.Contains(err.Error(), "start one job for each value") {
			t.Errorf("%s: %v", key, err)
		}
	}
	if w := post(checked(t, &fake{}), "/v1/jobs", `{"dataset":"a","sweep":[{"key":"lr","values":["0.1"]}]}`); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "one value") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// FuzzSweep: whatever is asked for is refused, or is a number of models that differ, each
// of which may be asked for alone.
func FuzzSweep(f *testing.F) {
	f.Add(`{"dataset":"a","sweep":[{"key":"lr","values":["0.1","0.01"]},{"key":"model","values":["gcn","gat"]}]}`)
	f.Add(`{"dataset":"a","lr":1,"sweep":[{"key":"lr","values":["0.1","0.01"]}]}`)
	f.Add(`{"dataset":"a","set":[{"key":"x","value":"1"}],"sweep":[{"key":"x","values":["1","2"]},{"key":"","values":[]}]}`)
	f.Add(`{"dataset":"a","sweep":[{"key":"dropout","values":["NaN","1e999"]},{"key":"residual","values":["t","F"]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		var r TrainRequest
		if json.Unmarshal([]byte(body), &r) != nil || len(r.Sweep) == 0 {
			return
		}
		if err := r.Check(); err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusBadRequest {
				t.Fatalf("%s: %v", body, err)
			}
			return
		}
		list, err := r.Variants()
		if err != nil || len(list) < 2 || len(list) > maxModels {
			t.Fatalf("%s: %d models, %v", body, len(list), err)
		}
		seen := map[string]bool{}
		for i, v := range list {
			if v.Index != i || len(v.Params) != len(r.Sweep) || len(v.Request.Sweep) != 0 || seen[v.said] {
				t.Fatalf("%s: %+v", body, v)
			}
			if err := v.Request.Check(); err != nil {
				t.Fatalf("%s: %v: %v", body, v, err)
			}
			seen[v.said] = true
		}
	})
}

// Each field of a request may be swept over, or is the same for all models.
func TestEachFlagIsSweptOrTheSame(t *testing.T) {
	for field := range reflect.TypeFor[TrainRequest]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		flag := strings.ReplaceAll(name, "_", "-")
		if _, swept := sweptFlags[flag]; flag != "set" && flag != "sweep" && swept == slices.Contains(sameFlags, flag) {
			t.Errorf("--%s is in both lists, or in neither", flag)
		}
	}
}
