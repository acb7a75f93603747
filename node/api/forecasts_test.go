package api

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestForecastsArrive(t *testing.T) {
	f := &fake{}
	one := 1
	r := ForecastRequest{Job: TrainRequest{Dataset: "cora"}, Nodes: []int{4, 8}, Bandwidth: 1e9, RoundTrip: 1e-3, Memory: 7, Replicas: &one}
	for _, network := range networks {
		c := serve(t, network, f)
		var told []ForecastRow
		got, err := c.Forecast(t.Context(), r, func(row ForecastRow) { told = append(told, row) })
		if err != nil || !reflect.DeepEqual(told, got.Rows) || len(told) != 2 || told[0].Nodes != 4 || got.Assumptions == nil {
			t.Errorf("%s: %+v, %+v, %v", network, told, got, err)
		}
		if !f.was(r) {
			t.Errorf("%s: the backend was never asked for %+v", network, r)
		}
	}
	f.err = NotFound("there is none")
	if _, err := serve(t, networks[0], f).Forecast(t.Context(), r, func(ForecastRow) {}); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Error(err)
	}
}

func TestForecastsThatNobodyAccepts(t *testing.T) {
	less := -1
	good := ForecastRequest{Job: TrainRequest{Dataset: "cora"}, Nodes: []int{1, maxForecastNodes}, Bandwidth: 1}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(r *ForecastRequest){
		"names no dataset": func(r *ForecastRequest) { r.Job.Dataset = "" },
		"one model":        func(r *ForecastRequest) { r.Job.Sweep = []Sweep{{"lr", []string{"1", "2"}}} },
		"no number":        func(r *ForecastRequest) { r.Nodes = nil },
		"too many":         func(r *ForecastRequest) { r.Nodes = make([]int, maxForecasts+1) },
		"0 nodes":          func(r *ForecastRequest) { r.Nodes = []int{4, 0} },
		"4097 nodes":       func(r *ForecastRequest) { r.Nodes = []int{maxForecastNodes + 1} },
		"and is NaN":       func(r *ForecastRequest) { r.Bandwidth = math.NaN() },
		"and is 0":         func(r *ForecastRequest) { r.Bandwidth = 0 },
		"a round trip":     func(r *ForecastRequest) { r.RoundTrip = -1 },
		"-1 copies":        func(r *ForecastRequest) { r.Replicas = &less },
	} {
		r := good
		change(&r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
