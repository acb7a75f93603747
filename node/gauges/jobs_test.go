package gauges

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// collector shows one plan.
type collector struct {
	Jobs
	state *plan.State
}

func (c collector) Collect(out chan<- prometheus.Metric) { c.Jobs.Collect(out, c.state) }

func of(jobs ...plan.Job) collector {
	s := &plan.State{Jobs: map[string]plan.Job{}}
	for i, j := range jobs {
		j.Number = uint64(i + 1)
		if j.ID == "" {
			j.ID = fmt.Sprintf("j%d", j.Number)
		}
		s.Jobs[j.ID] = j
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return collector{New(desc), s}
}

// read returns what Prometheus would read.
func (c collector) read(t *testing.T) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func eval(val, test float64) *epoch.Eval {
	return &epoch.Eval{Val: &val, Test: &test, Score: val, Bytes: epoch.Bytes{Feature: 1}}
}

// Of a sweep the lowest loss and the better model count, and the costs of all add up.
func TestSweep(t *testing.T) {
	c := of(plan.Job{State: plan.Running, DatasetName: "cora", Strategy: "leap", Epochs: 9, History: []plan.Epoch{
		{Epoch: 1, Loss: 3, Eval: eval(0.1, 0.2)},
		{Epoch: 2, Model: 0, Loss: 2, Seconds: 1, Bytes: epoch.Bytes{Feature: 5, Gradient: 7}, Eval: eval(0.25, 0.75)},
		{Epoch: 2, Model: 1, Loss: 1, Seconds: 1, Bytes: epoch.Bytes{Feature: 6}, Eval: eval(0.5, 0.4)},
		{Epoch: 2, Model: 2, Loss: 4, Seconds: 1, Bytes: epoch.Bytes{Feature: 3}, Eval: eval(0.375, 0.625)},
	}})
	want := `# HELP job_accuracy Its accuracy when it was last evaluated, as a share of 1, of a sweep that of the model that is best on validation.
# TYPE job_accuracy gauge
job_accuracy{job="j1",split="test"} 0.4
job_accuracy{job="j1",split="val"} 0.5
# HELP job_epoch Whole epochs of the job.
# TYPE job_epoch gauge
job_epoch{job="j1"} 2
# HELP job_epoch_bytes What all its nodes sent each other in the last whole epoch, evaluation included.
# TYPE job_epoch_bytes gauge
job_epoch_bytes{job="j1",kind="activation"} 0
job_epoch_bytes{job="j1",kind="control"} 0
job_epoch_bytes{job="j1",kind="feature"} 17
job_epoch_bytes{job="j1",kind="gradient"} 7
job_epoch_bytes{job="j1",kind="model"} 0
job_epoch_bytes{job="j1",kind="shard"} 0
job_epoch_bytes{job="j1",kind="topology"} 0
# HELP job_epoch_seconds What training took in the last whole epoch, without evaluation.
# TYPE job_epoch_seconds gauge
job_epoch_seconds{job="j1"} 3
# HELP job_epochs How many epochs it has at most.
# TYPE job_epochs gauge
job_epochs{job="j1"} 9
# HELP job_info 1 for each job that runs, and the last few that have ended.
# TYPE job_info gauge
job_info{dataset="cora",job="j1",state="running",strategy="leap"} 1
# HELP job_loss Its loss in the last whole epoch, of a sweep the lowest.
# TYPE job_loss gauge
job_loss{job="j1"} 1
`
	if got := c.read(t); got != want {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
}

// Whatever a mesh has had, the number of series is bounded, and running jobs come first.
func TestBounded(t *testing.T) {
	many := func(n int, state plan.JobState) []plan.Job {
		list := make([]plan.Job, n)
		for i := range list {
			list[i].State = state
		}
		return list
	}
	for name, c := range map[string]struct {
		jobs        []plan.Job
		first, last string
		want        int
	}{
		"none":          {nil, "", "", 0},
		"queued":        {many(3, plan.Queued), "", "", 0},
		"ended":         {many(100, plan.Failed), "j100", "j96", lastEnded},
		"both":          {append(many(100, plan.Done), many(2, plan.Running)...), "j101", "j96", 2 + lastEnded},
		"too many":      {append(many(100, plan.Running), many(9, plan.Stopped)...), "j1", "j20", mostJobs},
		"nearly enough": {append(many(18, plan.Running), many(9, plan.Stopped)...), "j1", "j26", mostJobs},
	} {
		t.Run(name, func(t *testing.T) {
			got := chosen(of(c.jobs...).state)
			if len(got) != c.want {
				t.Fatalf("%d jobs, want %d", len(got), c.want)
			}
			if c.want > 0 && (got[0].ID != c.first || got[len(got)-1].ID != c.last) {
				t.Errorf("%s to %s, want %s to %s", got[0].ID, got[len(got)-1].ID, c.first, c.last)
			}
		})
	}
}

// Names come from outside: metrics stay readable, whatever they hold.
func TestLabels(t *testing.T) {
	for name, want := range map[string]string{
		"cora":                   "cora",
		`a"b\c`:                  `a"b\c`,
		"two\nlines\x1b[31m":     "two\ufffdlines\ufffd[31m",
		"\xff\xfe":               "\ufffd",
		strings.Repeat("ä", 64):  strings.Repeat("ä", 64),
		strings.Repeat("ä", 65):  strings.Repeat("ä", 63) + "…",
		strings.Repeat("x", 1e6): strings.Repeat("x", 63) + "…",
	} {
		if got := label(name); got != want {
			t.Errorf("%.20q becomes %q, want %q", name, got, want)
		}
	}
	// Ids that look alike then are shown once, and the rest is readable.
	c := of(plan.Job{ID: "a\x01", State: plan.Running, DatasetName: "\xff\n\"}"}, plan.Job{ID: "a\x02", State: plan.Running})
	if text := c.read(t); strings.Count(text, "\njob_info{") != 1 || !strings.Contains(text, `dataset="��\"}"`) {
		t.Errorf("want one job:\n%s", text)
	}
}
