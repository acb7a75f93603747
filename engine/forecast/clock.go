package forecast

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/cputime"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// Rates are how fast a machine and its link are, beside computing and sampling, which are
// measured on the graph.
type Rates struct {
	Bandwidth float64 // bytes a second that come to a node, without what packets need
	RoundTrip float64 // seconds of the smallest question
	// Byte and Question are the seconds of processor time that a byte and a question take,
	// at both ends together: a node sends about as much as it gets.
	Byte, Question float64
	// Cores is how many processors this process gets; 0: as many as it has threads.
	Cores float64
}

// processors returns how many there are.
func (r Rates) processors() float64 {
	if r.Cores > 0 {
		return r.Cores
	}
	return float64(runtime.GOMAXPROCS(0))
}

// Slower returns how much longer threads take that compute together than each would by
// itself: 1, if this process gets as many processors as it has threads.
func (r Rates) Slower() float64 { return max(1, float64(runtime.GOMAXPROCS(0))/r.processors()) }

// effort returns the seconds of processor time that each of some nodes has for what all of
// them send.
func (r Rates) effort(all *peer.Counts, nodes int) float64 {
	bytes, questions := uint64(0), uint64(0)
	for k := range peer.Kinds {
		bytes, questions = bytes+all.Bytes[k], questions+all.Requests[k]
	}
	return (float64(bytes)*r.Byte + float64(questions)*r.Question) / float64(nodes)
}

// agree returns the seconds in which nodes agree on an epoch: each asks all others, and nothing
// else goes on.
func (r Rates) agree(nodes int) float64 {
	if nodes == 1 {
		return 0
	}
	return r.RoundTrip + float64(nodes-1)*r.Question/r.processors()
}

// ahead returns how many threads prepare batches, and how many batches are in memory.
func ahead(steps, nodes int) (workers, slots int) {
	if steps == 1 {
		return 1, 1
	}
	slots, workers = fit.Slots(runtime.GOMAXPROCS(0), 1, nodes == 1)
	return workers, slots
}

// A clock times steps on this machine: on its cores, one step after the other.
type clock struct {
	job    *job
	device tensor.Device // that computes
	worker tensor.Device // of one thread, that prepares
	kept   tensor.Arena  // of weights
	work   tensor.Arena  // of a pass
	rows   tensor.Arena  // of features
	spare  tensor.Arena
	pass   *nn.Pass
	task   task.Task
	batch  sample.Batch
	sparse features.Rows
	labels []int32
	values []float32
	taken  uint64        // for steps, at most
	left   func() uint64 // that may be taken still
}

func newClock(ctx context.Context, j *job) (*clock, error) {
	c, err := newInputs()
	if err != nil {
		return nil, err
	}
	c.job, c.left = j, left
	c.task = task.New(j.Recipe.TaskSpec(&j.Graph.About))
	c.pass = j.model.NewPass(c.device, c.work)
	c.pass.Weights = c.kept.Alloc(c.device.Type(), 1, j.model.Size())
	c.pass.Gradients = c.kept.Alloc(c.device.Type(), 1, j.model.Size())
	c.pass.Train, c.pass.Done = true, ctx.Done()
	first, err := j.model.Initial(ctx, j.Recipe.Seed)
	if err != nil {
		c.close()
		return nil, err
	}
	c.device.Write(c.pass.Weights, first)
	c.device.Zero(c.pass.Gradients)
	if of, learned := c.task.(task.Learned); learned {
		of.Attach(j.model.AddedOf(c.pass.Weights), j.model.AddedOf(c.pass.Gradients))
	}
	return c, nil
}

// newInputs returns a clock that only reads features.
func newInputs() (*clock, error) {
	c := &clock{device: cpu.New(0), worker: cpu.New(1)}
	for _, a := range []struct {
		arena *tensor.Arena
		of    tensor.Device
	}{{&c.kept, c.device}, {&c.work, c.device}, {&c.rows, c.worker}, {&c.spare, c.worker}} {
		var err error
		if *a.arena, err = a.of.NewArena(0); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *clock) close() {
	for _, a := range []tensor.Arena{c.work, c.kept, c.rows, c.spare} {
		if a != nil {
			a.Close()
		}
	}
	c.device.Close()
	c.worker.Close()
}

// A timed is the seconds of a step's parts: what one thread prepares, and what all compute.
// Of the former, gather is for rows. used is the processor time of both.
type timed struct{ prepare, gather, compute, used float64 }

// fits returns an error if this process has no room to compute a step, beside what the
// clock has taken for the steps before.
func (c *clock) fits(z *sizes) error {
	needs, has := z.Slot+z.Of(budget.Pass)+z.Of(budget.Beside), c.left()
	has += min(c.taken, math.MaxUint64-has)
	if needs > has {
		return short(needs, has, "computes a step to time it")
	}
	c.taken = max(c.taken, needs)
	return nil
}

// left returns how much more this process may take.
func left() uint64 { return min(uint64(budget.Spare()), budget.Available()) }

// step times a step of a node: the mean of a few times, after one that takes memory. The
// fastest would not do: a process that may take a part of the processors' time is stopped
// now and then, and a short step runs in between.
func (c *clock) step(ctx context.Context, l *load, step int) (mean timed, err error) {
	const (
		times = 2
		all   = 200 * time.Millisecond // of all steps
	)
	n, begin, atLeast := 0, time.Time{}, all/time.Duration(len(c.job.steps))
	c.job.counter.dealt(c.job.steps[step]) // other steps were counted since
	var used float64
	for n < times || time.Since(begin) < atLeast {
		var t timed
		for _, g := range l.groups {
			if g.roots == 0 {
				continue
			}
			if err := c.group(ctx, l, &g, step, &t); err != nil {
				return mean, err
			}
		}
		if begin.IsZero() {
			begin, used = time.Now(), cputime.Process()
			continue
		}
		n++
		mean.compute, mean.prepare, mean.gather = mean.compute+t.compute, mean.prepare+t.prepare, mean.gather+t.gather
	}
	mean.used = cputime.Process() - used
	if mean.used <= 0 { // this system does not say
		mean.used = mean.prepare + mean.compute*float64(runtime.GOMAXPROCS(0))
	}
	by := 1 / float64(n)
	mean.compute, mean.prepare, mean.gather, mean.used = by*mean.compute, by*mean.prepare, by*mean.gather, by*mean.used
	return mean, nil
}

// group adds the times of one group.
func (c *clock) group(ctx context.Context, l *load, g *group, step int, t *timed) error {
	j, seeds, start := c.job, g.seeds, time.Now()
	if err := l.sample(ctx, j.counter.sampler, &c.batch, step, seeds); err != nil {
		return err
	}
	places := seeds
	for b := range c.batch.Blocks {
		c.batch.Blocks[b].Transpose()
		places = c.batch.Blocks[0].Vertices
	}
	if j.Graph.valued && j.model.Form().Weighting != sample.Ones {
		c.values = ones(c.batch.Blocks, c.values)
	}
	c.rows.Reset()
	c.spare.Reset()
	rows := time.Now()
	in := j.Graph.input(c, places)
	t.prepare += time.Since(start).Seconds()
	t.gather += time.Since(rows).Seconds()

	start = time.Now()
	c.work.Reset()
	if c.labels = append(c.labels[:0], g.words...); j.Graph.pairs == nil {
		c.labels = j.Graph.labels(c.labels, seeds)
	}
	z := c.pass.Forward(c.batch.Blocks, in)
	if z.None() {
		return context.Cause(ctx)
	}
	dz := c.work.Alloc(c.device.Type(), z.Rows, z.Cols)
	c.task.Loss(c.device, dz, z, c.labels, 1/float64(len(seeds)))
	c.pass.Backward(dz)
	t.compute += time.Since(start).Seconds()
	return nil
}

// queue is how many bytes wait, on average, in front of a link that always has something to
// carry. It is about a quarter of the buffer of the links on which forecasts were compared
// with jobs.
const queue = 512 << 10

// share returns for how much of the time a link carries what comes ahead, where nodes wait
// for little else: less where a step brings less than the queue holds. In front of an answer
// it carries what others have asked for: who asks has got all that it asked for before. So of
// two nodes with a worker each, which ask each other, nobody waits behind anybody.
func (v *Volume) share(nodes, workers int) float64 {
	asking := (nodes - 1) * workers // of one node
	return float64(v.Hidden) / float64(v.Hidden+queue) * float64(max(0, asking-1)) / float64(max(1, asking))
}

// A timing adds up the steps of an epoch that are looked at.
type timing struct {
	sum   Parts
	steps int
	busy  float64 // seconds for which all processors have work
	once  float64 // seconds that come once in a job
}

// add adds a step: the slowest node's work, and what the step sends.
func (t *timing) add(ctx context.Context, c *clock, l *load, step *Step, v *Volume, rates Rates) error {
	took, err := c.step(ctx, l, step.Index)
	if err != nil {
		return err
	}
	workers, _ := ahead(c.job.count, step.Nodes)
	cores := rates.processors()
	p := Parts{
		Compute: took.compute,
		Prepare: took.prepare / float64(workers),
		Hidden:  float64(v.Hidden) / rates.Bandwidth,
		Wait:    float64(v.Exposed)/rates.Bandwidth + float64(v.Rounds)*rates.RoundTrip + float64(v.Asked)*rates.Question/cores,
	}
	if v.Hidden > 0 {
		// Labels are asked for before rows, and either waits behind what the link carries.
		// Rows that others ask for are gathered, too, before they come.
		p.Hidden += 2*(rates.RoundTrip+queue/rates.Bandwidth*v.share(step.Nodes, workers)) + took.gather*l.share()
		took.used += took.gather * l.share()
	}
	if c.job.same { // it is prepared once
		p.Prepare, took.used = 0, took.compute*cores
	}
	t.steps++
	t.sum.Compute, t.sum.Prepare = t.sum.Compute+p.Compute, t.sum.Prepare+p.Prepare
	t.sum.Hidden, t.sum.Wait = t.sum.Hidden+p.Hidden, t.sum.Wait+p.Wait
	t.busy += (took.used + v.Made + rates.effort(&v.All, step.Nodes)) / cores
	return nil
}

// share returns the rows that a node asks others for as a share of those that it reads.
func (l *load) share() float64 {
	return float64(l.remote) / float64(max(1, l.local+l.remote))
}

// epoch returns the seconds of an epoch that is so many times the steps that were added.
// The first step is prepared while nothing is computed, and while the last one is computed
// nothing is prepared; in between both go on at once, and whatever waits for the network,
// processors do no more than they can.
func (t *timing) epoch(f float64) (Parts, float64) {
	by := 1 / float64(max(1, t.steps))
	prepare, compute := by*(t.sum.Prepare+t.sum.Hidden), by*(t.sum.Compute+t.sum.Wait)
	between := max(0, f*float64(t.steps)-1)
	total := max(prepare+between*max(prepare, compute)+compute, f*t.busy)
	return Parts{Compute: f * t.sum.Compute, Prepare: f * t.sum.Prepare, Hidden: f * t.sum.Hidden, Wait: f * t.sum.Wait, Once: t.once}, total
}
