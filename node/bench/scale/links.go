package scale

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/hopmesh/hopmesh/engine/cputime"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
)

// This file is the part links: partners that are found within a bound, and learnt rows of which a
// daemon has room for a part only.

// links is the name of the part.
const links = "links"

// The bars of the part, beside overBound.
const overProducts = 2.0 // the search for partners over the products alone

// What its cells train and may use. Neither bound depends on what is measured.
const (
	perVertex     = 10        // partners that are found
	partnersTrain = 256 * mib // of the daemon while it trains: evaluations hold the embeddings of all vertices
	partnersRoom  = 64 * mib  // of the daemon while it finds partners
	rowsRoom      = 512 * mib // of each of four daemons whose table is larger
	rowsWidth     = 256       // of a learnt row
	rowsKilled    = 1         // the daemon that is killed
)

// linkGraphs are the graphs of the part.
func linkGraphs(scale float64) []graphSpec {
	return []graphSpec{
		{"links", made(100_000, 500_000, 16, 4, scale), 0},
		{"bare", made(200_000, 1_000_000, 0, 8, scale), 0},
	}
}

func linkCells(scale float64) []cell {
	return []cell{
		{Kind: partners, Nodes: 1, Job: linking("dot", 256), Trains: partnersTrain, Bound: partnersRoom, Scale: scale},
		{Kind: partners, Nodes: 1, Job: linking("mlp", 16), Trains: partnersTrain, Bound: partnersRoom, Scale: scale},
		{Kind: killed, Nodes: 4, Job: learning(scale), Bound: rowsRoom, Scale: scale},
	}
}

// linking is the job whose model finds partners.
func linking(decoder string, width int) job {
	return job{
		Graph: "links", Strategy: "single", Task: "link", Model: "gcn", Layers: 2, Hidden: 32, Batch: 1024, Fanout: []int{5, 5}, Epochs: 1,
		Set: []string{"link.decoder=" + decoder, fmt.Sprintf("link.width=%d", width), "link.ranks=0"},
	}
}

// learning is the job that learns rows. An epoch has steps enough to be killed within one, on small
// graphs too.
func learning(scale float64) job {
	return job{
		Graph: "bare", Strategy: "leap", Model: "sage", Layers: 2, Hidden: 64, Batch: max(64, int(256*scale)), Fanout: []int{4, 3}, Epochs: 2, Every: 1,
		Set: []string{fmt.Sprintf("train.embeddings=%d", rowsWidth), "train.embeddings_at=owners"},
	}
}

// tableBytes is what a table of learnt rows takes, with the two moments that Adam keeps of each.
func tableBytes(vertices uint64) uint64 { return 3 * 4 * rowsWidth * vertices }

// partners has the daemon, which has trained, start again with less memory and find the best partners
// of all vertices. The products alone follow.
func (b *lab) partners(ctx context.Context, c cell, on *mesh, m *Measured) error {
	if err := on.restart(ctx, 0, syscall.SIGTERM, c.Bound); err != nil {
		return err
	}
	if err := on.daemons[0].ready(ctx); err != nil {
		if ctx.Err() != nil {
			return err
		}
		m.Failed = line(err.Error())
		return nil
	}
	pid := on.daemons[0].cmd.Process.Pid
	before, err := bench.CPUTime(pid)
	if err != nil {
		return err
	}
	var lines counter
	ask := api.PredictRequest{Format: ".csv", PairOptions: api.PairOptions{Top: perVertex}}
	if err := b.predict(ctx, on, ask, &lines, m); err != nil || m.Failed != "" {
		return err
	}
	after, err := bench.CPUTime(pid)
	if err != nil {
		return err
	}
	m.Worked = (after - before).Seconds()
	if want := perVertex*int(c.vertices()) + 1; lines.n != want {
		m.Failed = fmt.Sprintf("predict: %d lines in place of %d", lines.n, want)
		return nil
	}
	m.Products = products(ctx, strings.Contains(strings.Join(c.Job.Set, " "), "=mlp"), int(c.vertices()), c.Job.width())
	return ctx.Err()
}

// counter counts lines.
type counter struct{ n, bytes int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += bytes.Count(p, []byte("\n"))
	c.bytes += len(p)
	return len(p), nil
}

// vertices is how many the cell's graph has.
func (c cell) vertices() uint64 { return c.graph().request.Vertices }

// width is that of the embeddings of a job of links.
func (j job) width() (n int) {
	for _, s := range j.Set {
		_, _ = fmt.Sscanf(s, "link.width=%d", &n) // the others have none
	}
	return n
}

// products returns how many seconds of processors the multiplications take that comparing all vertices
// needs, by the matrix products of this program on all processors: those of all embeddings with all or, by
// a perceptron, for each vertex those of all embeddings with the weights of the first layer. Some blocks
// stand for all of them, as fast as they once were.
func products(ctx context.Context, perceptron bool, vertices, width int) float64 {
	const most, rounds, atOnce = 4096, 5, 1 << 28
	d := cpu.New(0)
	defer d.Close()
	matrix := func(rows, columns int) tensor.Matrix {
		x := make([]float32, rows*columns)
		for i := range x {
			x[i] = float32(i%7) - 3
		}
		return tensor.OverF32(rows, columns, x)
	}
	some := min(most, vertices)
	a, shape, others := matrix(some, width), tensor.NT, some
	if perceptron {
		shape, others = tensor.NN, width
	}
	b, to := matrix(others, width), matrix(some, others)
	best, times := 0.0, max(1, atOnce/(some*others*width))
	for i := range rounds + 1 { // the first takes memory
		begin := cputime.Process()
		for range times {
			if ctx.Err() != nil {
				return 0
			}
			d.MatMul(to, a, b, shape, false, nil)
		}
		if took := cputime.Process() - begin; i == 1 || i > 1 && took < best {
			best = took
		}
	}
	best /= float64(times)
	share := float64(vertices) / float64(some)
	if perceptron {
		return best * share * float64(vertices)
	}
	return best * share * share
}

var errThere = errors.New("the moment has come")

// killed trains rows that no daemon could hold, ends a daemon by SIGKILL within the second epoch, starts
// it again, and has the job go on, be evaluated and exported.
func (b *lab) killed(ctx context.Context, c cell, on *mesh, m *Measured) (err error) {
	first := on.daemons[0]
	var at api.JobProgress
	m.Peak, m.Seconds, m.Failed, err = b.during(ctx, on, m.Bound, func(ctx context.Context) error {
		at, err = b.halfway(ctx, c.Job.request(), first, m)
		return err
	})
	m.Forecast = on.forecasts()
	if err != nil || m.Refused+m.Failed != "" {
		return err
	}
	if err := on.restart(ctx, rowsKilled, syscall.SIGKILL, c.Bound); err != nil {
		return err
	}
	m.Events = fmt.Sprintf("%s was killed in step %d of %d of epoch %d", on.daemons[rowsKilled].name, at.Step, at.Steps, at.Epoch)
	m.Later, m.Predicted, m.Failed, err = b.during(ctx, on, m.Bound, func(ctx context.Context) error { return b.goOn(ctx, c, on, m) })
	return err
}

// halfway starts a job and waits until it is halfway through its second epoch.
func (b *lab) halfway(ctx context.Context, r api.TrainRequest, on *daemon, m *Measured) (at api.JobProgress, err error) {
	id, err := b.start(ctx, r, on, m)
	if err != nil || m.Refused != "" {
		return at, err
	}
	m.Job = id
	inner, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	j, err := on.WatchJob(inner, id, func(e api.JobEvent) {
		if p := e.Progress; p != nil && p.Epoch == *r.Epochs && 2*p.Step >= p.Steps && context.Cause(inner) == nil {
			at = *p
			enough(errThere)
		}
	})
	if errors.Is(context.Cause(inner), errThere) {
		j, err = on.Job(ctx, id)
		m.last(j)
		return at, err
	}
	if err != nil {
		return at, err
	}
	refused, failed := ended(j)
	if m.Refused = refused; refused != "" {
		return at, nil
	}
	return at, errors.New(cmp.Or(failed, "the job was done before a daemon was killed"))
}

// goOn waits until a job is done, which is resumed once if it fails, and reads its model.
func (b *lab) goOn(ctx context.Context, c cell, on *mesh, m *Measured) error {
	if err := on.daemons[rowsKilled].ready(ctx); err != nil {
		return err
	}
	first := on.daemons[0]
	j, err := over(ctx, first, m.Job)
	if err != nil {
		return err
	}
	if j.State != "done" {
		m.Events += fmt.Sprintf("; the job was %s (%s) and was resumed", j.State, line(j.Error))
		if err := first.ResumeJob(ctx, m.Job, api.ResumeRequest{}); err != nil {
			return err
		}
		if j, err = over(ctx, first, m.Job); err != nil {
			return err
		}
	}
	if j.State != "done" || len(j.History) != c.Job.Epochs {
		return fmt.Errorf("%s after %d epochs: %s", j.State, len(j.History), j.Error)
	}
	m.last(j)
	e, err := first.Evaluate(ctx, m.Job, api.EvaluateRequest{})
	if err != nil {
		return fmt.Errorf("evaluate: %w", err)
	}
	var model counter
	if err := first.ExportJob(ctx, m.Job, api.ExportRequest{}, &model); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if rows := 4 * rowsWidth * c.vertices(); uint64(model.bytes) < rows {
		return fmt.Errorf("export: %d bytes, and the rows alone are %d", model.bytes, rows)
	}
	m.Events += fmt.Sprintf("; then it went on, was evaluated (%.0f s) and exported (%s)", e.Seconds, size(uint64(model.bytes)))
	return nil
}

// over waits until a job has ended. A daemon that can't say so, as while the leader is gone, is asked
// again.
func over(ctx context.Context, on *daemon, id string) (api.Job, error) {
	for {
		j, err := on.Job(ctx, id)
		if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
			return j, err
		}
		if err == nil && (j.State == "done" || j.State == "failed" || j.State == "stopped") {
			return j, nil
		}
		if err := bench.Pause(ctx, 4*every); err != nil {
			return j, fmt.Errorf("wait for the job's end: %w", err)
		}
	}
}

// linkLines are the lines of a cell of the part.
func linkLines(c cell, m Measured) (lines []Line) {
	trained := m
	if m.Later != nil { // it was trained
		trained.Failed = ""
	}
	epoch := fmt.Sprintf("trained (an epoch %.0f s) and evaluated (%.0f s)", m.Trained, m.Evaluated)
	if c.Kind == killed {
		n := tableBytes(c.vertices())
		lines = append(lines, Line{
			Bar:      "a bound below the rows with their moments",
			Measured: fmt.Sprintf("%s for each of four daemons, and %s of rows and moments", size(m.Bound), size(n)), Verdict: verdict(m.Bound < n),
		})
		lines = append(lines, judgeStep(trained, epoch, m.Peak, m.Seconds), judgeStep(m, "killed, went on, evaluated and exported", m.Later, m.Predicted))
		lines[2].Remark = strings.Trim(m.Events+"; "+lines[2].Remark, "; ")
		return lines
	}
	trained.Bound = c.Trains
	n := c.vertices()
	lines = append(lines, judgeStep(trained, epoch, m.Peak, m.Seconds), judgeStep(m, "found "+fmt.Sprint(perVertex)+" partners of each vertex", m.Later, m.Predicted))
	lines[1].Remark = strings.Trim(fmt.Sprintf("%s of scores, %s of embeddings, %s of partners; %s",
		size(4*n*n), size(4*n*uint64(c.Job.width())), size(8*perVertex*n), lines[1].Remark), "; ")
	if m.Products > 0 {
		lines = append(lines, Line{
			Bar:      fmt.Sprintf("at most %.1fx the processor time of the products alone", overProducts),
			Measured: fmt.Sprintf("%.1f s of processors beside %.1f s, %.2fx", m.Worked, m.Products, m.Worked/m.Products),
			Verdict:  verdict(m.Worked <= overProducts*m.Products),
		})
	}
	return lines
}

// linkNotes say what the part measures.
func linkNotes() []string {
	return []string{
		fmt.Sprintf("in the part links, bounds are fixed; a daemon that finds partners has trained the model before, within %s, and starts anew for it", size(partnersTrain)),
		fmt.Sprintf("products alone are the multiplications of all embeddings with all, by this program's own matrix product on all processors (the fastest block of up to 4096 rows, times their number), in processor time, which other work on the machine changes least; by mlp, those of all embeddings with the weights of the first layer for each vertex. The search writes up to %d lines a vertex as CSV, too", perVertex),
	}
}
