package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// A node forecasts a job on the mesh as it is within some percent of what the job then
// sends, from shards of which it holds only some; and on meshes that are not there.
func TestForecastsAreWhatJobsSend(t *testing.T) {
	nodetest.Loopback(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		r := tiny("g", 0)
		r.Vertices, r.Edges, r.Features = 3000, 15000, 16
		generated(t, c.Nodes[0], r)
		c.Wait("each node has its part", time.Minute, func() bool {
			d := c.Nodes[1].Dataset("g")
			return len(owned(d)) == 3 && copied(d, 0, c.Nodes...) && c.Nodes[1].Datasets()[0].Stage == "ready"
		})
		batch, epochs, hidden := 128, 2, 8
		job := api.TrainRequest{Dataset: "g", Model: "sage", Strategy: "centric", Batch: &batch, Fanout: []int{5, 5}, Epochs: &epochs, Hidden: &hidden}
		job.Set = []api.Setting{{Key: "centric.cache", Value: "off"}} // what is forecast
		id, err := c.Nodes[1].API().StartJob(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		ask := api.ForecastRequest{Job: job, Nodes: []int{1, 3, 12}, Bandwidth: 1e8, Memory: 1 << 40}
		var told []api.ForecastRow
		f, err := c.Nodes[1].API().Forecast(t.Context(), ask, func(row api.ForecastRow) { told = append(told, row) })
		if err != nil || len(f.Rows) != 3 || len(told) != 3 {
			t.Fatalf("%+v, %v", f, err)
		}
		j := waitState(c, c.Nodes[1], id, "done")
		measured, forecast := j.History[1].Bytes, f.Rows[1].Bytes
		if off := float64(forecast.Total())/float64(measured.Total()) - 1; off < -0.05 || off > 0.05 {
			t.Errorf("%+v is forecast, and %+v measured", forecast, measured)
		}
		for i, row := range f.Rows {
			if row.Nodes != ask.Nodes[i] || !row.Fits || row.Best != (row.Strategy == "centric" || row.Nodes == 1) || row.Seconds <= 0 {
				t.Errorf("%+v", row)
			}
		}
		pairs := ask
		pairs.Job.Task, pairs.Job.Strategy, pairs.Job.Set = "link", "leap", []api.Setting{{Key: "leap.cache", Value: "off"}}
		if id, err = c.Nodes[1].API().StartJob(t.Context(), pairs.Job); err != nil {
			t.Fatal(err)
		}
		pairs.Job.Strategy = "" // as a job would choose
		pairs.Job.Set, pairs.Nodes = nil, []int{3}
		if f, err = c.Nodes[1].API().Forecast(t.Context(), pairs, func(api.ForecastRow) {}); err != nil {
			t.Fatal(err)
		}
		j = waitState(c, c.Nodes[1], id, "done")
		exact := 0
		for _, row := range f.Rows {
			switch row.Strategy {
			case "leap":
				if off := float64(row.Bytes.Total())/float64(j.History[1].Bytes.Total()) - 1; off < -0.05 || off > 0.05 {
					t.Errorf("of pairs %+v is forecast, and %+v measured", row.Bytes, j.History[1].Bytes)
				}
				exact++
			case "centric":
				exact++
			case "grappa":
				if !row.Fits {
					t.Errorf("grappa learns links: %+v", row)
				}
			default:
				if row.Fits || !strings.Contains(row.Why, "learns no links") {
					t.Errorf("%s learns no links: %+v", row.Strategy, row)
				}
			}
		}
		if exact != 2 {
			t.Errorf("%+v", f.Rows)
		}
		for want, change := range map[string]func(r *api.ForecastRequest){
			"a preset has none: give --dataset": func(r *api.ForecastRequest) { r.Preset, r.Job.Dataset, r.Job.Task = "arxiv", "", "link" },
			"no dataset":                        func(r *api.ForecastRequest) { r.Job.Dataset = "none" },
			"there is no strategy":              func(r *api.ForecastRequest) { r.Job.Strategy = "luck" },
			"model":                             func(r *api.ForecastRequest) { r.Job.Model = "luck" },
		} {
			r := ask
			change(&r)
			if _, err := c.Nodes[0].API().Forecast(t.Context(), r, func(api.ForecastRow) {}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	})
}
