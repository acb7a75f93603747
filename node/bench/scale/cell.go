package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
)

// A lab measures cells. One goroutine uses it.
type lab struct {
	program string
	folder  string // of what is kept
	say     func(format string, args ...any)
}

// measure starts daemons for a cell on a copy of prepared data, and measures it.
func (b *lab) measure(ctx context.Context, c cell, bound uint64) (m Measured, err error) {
	from, memory := filepath.Join(b.folder, fmt.Sprintf("n%d", c.Nodes)), uint64(0)
	if c.Papers > 0 { // too large to be prepared without a bound
		from, memory = filepath.Join(b.folder, "papers"), bound
	}
	p, err := prepare(ctx, b.program, from, c.Nodes, c.graph(), memory)
	if err != nil {
		return m, err
	}
	if c.Kind == imported {
		m = p.Graphs[c.Job.Graph].Import
		m.Graph = p.Graphs[c.Job.Graph].Text
		return m, nil
	}
	m.Bound, m.Graph = bound, p.Graphs[c.Job.Graph].Text
	dir := filepath.Join(b.folder, "run")
	if err := os.RemoveAll(dir); err != nil {
		return m, fmt.Errorf("clear the last cell's daemons: %w", err)
	}
	if err := copyMesh(from, dir); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	allowed := bound
	if c.Trains > 0 {
		allowed = c.Trains
	}
	running, err := launch(ctx, b.program, dir, p.Ports, limit{memory: allowed, kind: c.Limit, real: uint64(overLimit * float64(bound))})
	if err != nil && ctx.Err() == nil {
		m.Failed = "the daemons did not start: " + line(err.Error())
		return m, nil
	}
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, running.stop()) }()
	if err := bench.Pause(ctx, settle); err != nil {
		return m, err
	}
	if m.Idle, err = reading(running); err != nil {
		return m, err
	}
	err = b.run(ctx, c, running, &m)
	return m, err
}

func reading(on *mesh) (list []uint64, err error) {
	for _, pid := range on.pids() {
		n, err := heldBy(pid)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// run does what a cell's kind asks for.
func (b *lab) run(ctx context.Context, c cell, on *mesh, m *Measured) error {
	if c.Kind == killed {
		return b.killed(ctx, c, on, m)
	}
	if err := b.job(ctx, c.Job.request(), on, m); err != nil || m.Refused+m.Failed != "" {
		return err
	}
	switch c.Kind {
	case after:
		if err := bench.Pause(ctx, minute); err != nil {
			return err
		}
		var err error
		m.Later, err = reading(on)
		return err
	case trip:
		return b.predict(ctx, on, api.PredictRequest{Format: ".npy"}, io.Discard, m)
	case partners:
		return b.partners(ctx, c, on, m)
	case repeat:
		for i := 1; i < hundred; i++ {
			if err := on.daemons[0].RemoveJob(ctx, m.Job); err != nil {
				return err
			}
			next := Measured{Bound: m.Bound}
			if err := b.job(ctx, c.Job.request(), on, &next); err != nil {
				return err
			}
			if next.Refused+next.Failed != "" {
				m.Failed = fmt.Sprintf("job %d: %s", i+1, next.Refused+next.Failed)
				return nil
			}
			m.Later, m.Job = next.Peak, next.Job
		}
	}
	return nil
}

// during does something that daemons may not survive, and notes what they held meanwhile.
// A mishap is how that ended, if not well; an error is that of the benchmark alone.
func (b *lab) during(ctx context.Context, on *mesh, bound uint64, do func(ctx context.Context) error) (peak []uint64, seconds float64, mishap string, err error) {
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	inner, cancel := context.WithTimeoutCause(inner, patience, fmt.Errorf("no end in %v", patience))
	defer cancel()
	on.anyEnds(inner, func(d *daemon) { end(d.gone()) })
	w := watch(inner, on.pids(), far(bound), func(why error) {
		end(why) // before the daemons' ends are seen
		on.kill()
	})
	begin := time.Now()
	err = do(inner)
	seconds = time.Since(begin).Seconds()
	peak = w.end()
	if ctx.Err() != nil {
		return peak, seconds, "", context.Cause(ctx)
	}
	if cause := context.Cause(inner); cause != nil {
		err = cause
		on.kill() // what they do goes on by itself
	}
	if err != nil {
		mishap = line(err.Error())
	}
	return peak, seconds, mishap, nil
}

// job runs one job. How the job itself ends is no error.
func (b *lab) job(ctx context.Context, r api.TrainRequest, on *mesh, m *Measured) (err error) {
	var j api.Job
	m.Peak, m.Seconds, m.Failed, err = b.during(ctx, on, m.Bound, func(ctx context.Context) (err error) {
		j, err = b.train(ctx, r, on.daemons[0], m)
		return err
	})
	if err != nil {
		return err
	}
	m.Job, m.Forecast = j.ID, on.forecasts()
	if m.Failed == "" && m.Refused == "" {
		m.Refused, m.Failed = ended(j)
	}
	m.last(j)
	return nil
}

// ended says how a job ended, if not well: refused before its first epoch, or otherwise.
func ended(j api.Job) (refused, failed string) {
	switch {
	case j.State == "done":
	case j.State == "failed" && len(j.History) == 0 && strings.Contains(j.Error, "memory"):
		refused = line(j.Error)
	default:
		failed = fmt.Sprintf("%s after %d epochs: %s", j.State, len(j.History), line(j.Error))
	}
	return refused, failed
}

// last notes what the last epoch of a job took.
func (m *Measured) last(j api.Job) {
	if n := len(j.History); n > 0 && j.History[n-1].Eval != nil {
		m.Trained, m.Evaluated = j.History[n-1].Seconds, j.History[n-1].Eval.Seconds
	}
}

// predict asks for predictions of the job that was trained.
func (b *lab) predict(ctx context.Context, on *mesh, ask api.PredictRequest, to io.Writer, m *Measured) (err error) {
	m.Later, m.Predicted, m.Failed, err = b.during(ctx, on, m.Bound, func(ctx context.Context) error {
		return on.daemons[0].Predict(ctx, m.Job, ask, to)
	})
	if m.Failed != "" {
		m.Failed = "predict: " + m.Failed
	}
	return err
}

// line puts a text on one line, and not on a long one.
func line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 400 {
		s = s[:400] + "..."
	}
	return s
}

// start starts a job and returns its id. A job that is refused at once is noted.
func (b *lab) start(ctx context.Context, r api.TrainRequest, on *daemon, m *Measured) (string, error) {
	id, err := on.StartJob(ctx, r)
	if e, ok := errors.AsType[*api.Error](err); ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusConflict) && strings.Contains(e.Message, "memory") {
		m.Refused = line(e.Message)
		return "", nil
	}
	return id.ID, err
}

// train starts a job and waits for its end.
func (b *lab) train(ctx context.Context, r api.TrainRequest, on *daemon, m *Measured) (api.Job, error) {
	id, err := b.start(ctx, r, on, m)
	if err != nil || m.Refused != "" {
		return api.Job{}, err
	}
	j, err := on.WatchJob(ctx, id, func(api.JobEvent) {})
	if err == nil {
		m.Fell = b.fellBack(ctx, on, id)
	}
	return j, err
}

// fellBack asks what a job gave up to fit, as `train show` tells.
func (b *lab) fellBack(ctx context.Context, on *daemon, id string) []string {
	text, err := exec.CommandContext(ctx, b.program, "train", "show", id, "--json", "--addr", on.addr).Output()
	if err != nil {
		return nil
	}
	var shown struct {
		Memory struct {
			Fell []string `json:"fell_back"`
		} `json:"memory"`
	}
	if json.Unmarshal(text, &shown) != nil {
		return nil
	}
	return shown.Memory.Fell
}
