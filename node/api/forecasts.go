package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/epoch"
)

// A ForecastRequest asks what a job would take on meshes of other sizes.
type ForecastRequest struct {
	Job TrainRequest `json:"job"` // its strategy alone, or "" for all
	// Preset names a graph that is known by its shape, in place of the job's dataset.
	Preset string `json:"preset,omitempty"`
	Nodes  []int  `json:"nodes"`
	// Bandwidth is the link's, in bytes a second to each node, and RoundTrip the seconds of
	// the smallest question; 0: as this machine answers itself.
	Bandwidth float64 `json:"bandwidth"`
	RoundTrip float64 `json:"round_trip,omitempty"`
	// Cores is how many processors the asked node gets, where a control group gives it fewer
	// than it has threads; 0: as many.
	Cores    float64 `json:"cores,omitempty"`
	Memory   uint64  `json:"memory,omitempty"`   // bytes of a node; 0: not bounded
	Replicas *int    `json:"replicas,omitempty"` // copies of a shard beside the owner's; none: the dataset's
}

// A JobForecast is the answer to it.
type JobForecast struct {
	Rows        []ForecastRow `json:"rows"`
	Assumptions []string      `json:"assumptions"` // sentences without a full stop
}

// A ForecastRow is the forecast of one strategy on some nodes, for an epoch that is not
// the first.
type ForecastRow struct {
	Strategy string        `json:"strategy"`
	Nodes    int           `json:"nodes"`
	Steps    int           `json:"steps"`
	Bytes    epoch.Bytes   `json:"bytes"` // of an epoch, of all nodes together
	Once     epoch.Bytes   `json:"once"`  // once in a job
	Memory   uint64        `json:"memory"`
	Sharded  bool          `json:"sharded"` // nodes ask each other for neighbours
	Seconds  float64       `json:"seconds"`
	Parts    ForecastParts `json:"parts"`
	Fits     bool          `json:"fits"`
	Why      string        `json:"why"`   // it does not fit, or can't be forecast
	Exact    bool          `json:"exact"` // it computes what one machine does
	Best     bool          `json:"best"`  // the fastest of those that are exact and fit on as many nodes
}

// ForecastParts are the seconds of an epoch on the slowest node. Preparing batches and
// hidden transfers run beside the rest.
type ForecastParts struct {
	Compute float64 `json:"compute"`
	Prepare float64 `json:"prepare"`
	Hidden  float64 `json:"hidden"`
	Wait    float64 `json:"wait"`
	Once    float64 `json:"once"` // once in a job, in no epoch's time
}

// A ForecastEvent is one line of the answer to a request. Exactly one field is set, or
// none in a keep-alive line. A line with End or Error is the last.
type ForecastEvent struct {
	Row   *ForecastRow `json:"row,omitempty"`
	End   *JobForecast `json:"end,omitempty"`
	Error *ErrorBody   `json:"error,omitempty"`
}

func (ForecastEvent) lasting() bool                    { return false }
func (ForecastEvent) failed(b ErrorBody) ForecastEvent { return ForecastEvent{Error: &b} }
func (e ForecastEvent) ends() (bool, *ErrorBody)       { return e.End != nil, e.Error }
func (e ForecastEvent) tells() bool                    { return e.Row != nil }

// maxForecast is how many nodes a forecast may have, and how many numbers of them.
const (
	maxForecastNodes = 4096
	maxForecasts     = 32
)

// ForecastPresets lists the graphs that can be forecast by their shape.
func ForecastPresets() []string {
	return []string{"arxiv", "reddit", "products", "papers100m", "mag240m-papers"}
}

// Check returns an error if no node would accept the request.
func (r ForecastRequest) Check() error {
	job := r.Job
	if r.Preset != "" && job.Dataset == "" {
		job.Dataset = r.Preset
	}
	if err := job.Check(); err != nil {
		return err
	}
	switch {
	case r.Preset != "" && r.Job.Dataset != "":
		return Invalid("a forecast is of a dataset or of a preset: leave --dataset or --preset out")
	case r.Preset != "" && !slices.Contains(ForecastPresets(), r.Preset):
		return Invalid("there is no preset %q: choose one of %s", r.Preset, strings.Join(ForecastPresets(), ", "))
	case r.Job.From != "":
		return Invalid("a forecast is of a model from its beginning: leave --from out")
	case len(r.Job.Sweep) > 0:
		return Invalid("a forecast is of one model: leave --sweep out")
	case len(r.Nodes) == 0:
		return Invalid("the request names no number of nodes: give --nodes 4,16,64")
	case len(r.Nodes) > maxForecasts:
		return Invalid("%d numbers of nodes are too many: give %d at most", len(r.Nodes), maxForecasts)
	case !finite(r.Bandwidth) || r.Bandwidth <= 0:
		return Invalid("the rate of a link must be above 0 bytes a second, and is %g: give --rate 10gbit", r.Bandwidth)
	case !finite(r.Cores) || r.Cores < 0:
		return Invalid("a node can't have %g processors: leave cores out", r.Cores)
	case !finite(r.RoundTrip) || r.RoundTrip < 0 || r.RoundTrip > 60:
		return Invalid("a round trip must take 0 to 60 seconds, and takes %g: give --round-trip 1ms", r.RoundTrip)
	case r.Replicas != nil && *r.Replicas < 0:
		return Invalid("%d copies are too few: give --replicas 0 or more", *r.Replicas)
	}
	for _, n := range r.Nodes {
		if n < 1 || n > maxForecastNodes {
			return Invalid("%d nodes can't be forecast: give 1 to %d", n, maxForecastNodes)
		}
	}
	return nil
}

// Forecast forecasts a job on meshes of other sizes, and calls tell in this goroutine with
// each row as it comes.
func (c *Client) Forecast(ctx context.Context, r ForecastRequest, tell func(ForecastRow)) (JobForecast, error) {
	const hint = "ask again"
	last, err := operate(ctx, c, http.MethodPost, "/v1/forecasts", r, hint, func(e ForecastEvent) {
		if e.Row != nil {
			tell(*e.Row)
		}
	})
	if err != nil {
		return JobForecast{}, err
	}
	return *last.End, nil
}
