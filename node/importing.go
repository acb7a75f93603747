package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shards"
)

var (
	errStopping = errors.New("this node is stopping, so what it was doing was given up; of an import, nothing is left")
	errRemoved  = errors.New("the dataset was removed while it was being imported")
)

// imports are those under way. They end before the member does, so that they can
// still say goodbye to the leader.
type imports struct {
	mu     sync.Mutex
	closed bool
	cancel map[*context.CancelCauseFunc]struct{}
	wg     sync.WaitGroup
}

// begin returns a context that ends with the member; done is to be called when the
// import has ended, with all it started.
func (i *imports) begin(ctx context.Context) (during context.Context, done func(), err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, nil, errStopping
	}
	during, cancel := context.WithCancelCause(ctx)
	if i.cancel == nil {
		i.cancel = map[*context.CancelCauseFunc]struct{}{}
	}
	i.cancel[&cancel] = struct{}{}
	i.wg.Add(1)
	return during, func() {
		cancel(nil)
		i.mu.Lock()
		delete(i.cancel, &cancel)
		i.mu.Unlock()
		i.wg.Done()
	}, nil
}

// endWith waits until ctx ends, stops all imports and waits for them.
func (i *imports) endWith(ctx context.Context) error {
	<-ctx.Done()
	i.mu.Lock()
	i.closed = true
	for cancel := range i.cancel {
		(*cancel)(errStopping)
	}
	i.mu.Unlock()
	i.wg.Wait()
	return nil
}

// ImportDataset reads a source and cuts it into shards, on this node, and returns
// when they are where the plan wants them. If ctx ends before that, or anything
// fails, nothing is left.
func (b backend) ImportDataset(ctx context.Context, r api.ImportRequest, tell func(api.DatasetEvent)) (api.Dataset, error) {
	return b.bringIn(ctx, r.Name, r.DatasetOptions, tell, func(ctx context.Context, j *job) (graph.Source, error) {
		return read.Open(ctx, r.Source, read.Options{Format: r.Format, Memory: j.memory, Report: j.progress})
	})
}

// GenerateDataset is ImportDataset of a graph that is made up.
func (b backend) GenerateDataset(ctx context.Context, r api.GenerateRequest, tell func(api.DatasetEvent)) (api.Dataset, error) {
	return b.bringIn(ctx, r.Name, r.DatasetOptions, tell, func(context.Context, *job) (graph.Source, error) {
		if r.Vertices > math.MaxUint32 {
			return nil, fmt.Errorf("%d vertices are more than the %d that a graph may have", r.Vertices, graph.MaxVertices)
		}
		o := generate.Options{
			Kind: r.Kind, Vertices: uint32(r.Vertices), Edges: r.Edges, Features: r.Features, Classes: r.Classes,
			Communities: r.Communities, Seed: r.Seed, Preset: r.Preset, Scale: r.Scale,
		}
		if r.Inside != nil {
			o.Inside = *r.Inside
		}
		if r.Homophily != nil {
			o.Homophily = *r.Homophily
		}
		return generate.New(o)
	})
}

// A job is one import.
type job struct {
	*member
	id, name string
	replicas int
	memory   uint64
	options  api.DatasetOptions

	telling sync.Mutex
	tell    func(api.DatasetEvent)
}

func (j *job) say(e api.DatasetEvent) {
	j.telling.Lock()
	defer j.telling.Unlock()
	j.tell(e)
}

func (j *job) progress(p graph.Progress) {
	j.say(api.DatasetEvent{Progress: &api.Progress{Stage: p.Stage, Done: p.Done, Total: p.Total, Unit: p.Unit}})
}

func (b backend) bringIn(ctx context.Context, name string, o api.DatasetOptions, tell func(api.DatasetEvent),
	open func(context.Context, *job) (graph.Source, error)) (api.Dataset, error) {
	m, err := b.in()
	if err != nil {
		return api.Dataset{}, err
	}
	j, err := m.newJob(name, o, tell)
	if err != nil {
		return api.Dataset{}, err
	}
	ctx, done, err := m.imports.begin(ctx)
	if err != nil {
		return api.Dataset{}, api.Unavailable("%v", err)
	}
	defer done()
	d, err := j.run(ctx, open)
	if err == nil {
		return apiDataset(m.plan.State(), d), nil
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause // says more than what it led to
	}
	if _, ok := errors.AsType[*api.Error](err); ok {
		return api.Dataset{}, err
	}
	if errors.Is(err, errRemoved) {
		return api.Dataset{}, api.Conflict("%v", err)
	}
	return api.Dataset{}, apiError(err)
}

// newJob checks what can be told before anything is read.
func (m *member) newJob(name string, o api.DatasetOptions, tell func(api.DatasetEvent)) (*job, error) {
	if err := plan.CheckDatasetName(name); err != nil {
		return nil, api.Invalid("%v", err)
	}
	j := &job{member: m, name: name, replicas: 1, memory: cmp.Or(o.Memory, m.opts.Memory), options: o, tell: tell}
	if o.Replicas != nil {
		j.replicas = *o.Replicas
	}
	if j.replicas < 0 || j.replicas > plan.MaxReplicas {
		return nil, api.Invalid("a shard has 0 to %d copies beside its owner's, and not %d", plan.MaxReplicas, j.replicas)
	}
	if _, taken := m.plan.State().DatasetByName(name); taken {
		return nil, apiError(m.taken(name))
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	j.id = hex.EncodeToString(id[:])
	return j, nil
}

// run leaves the dataset whole or absent.
func (j *job) run(ctx context.Context, open func(context.Context, *job) (graph.Source, error)) (d plan.Dataset, err error) {
	src, err := open(ctx, j)
	if err != nil {
		return d, j.blame(ctx, err)
	}
	defer func() { _ = src.Close() }()
	o := build.Options{
		Shards: j.options.Shards, Partitioner: j.options.Partitioner, DType: graph.DType(j.options.DType), Memory: j.memory,
		Undirected: j.options.Undirected, Seed: j.options.Seed, Report: j.progress,
	}
	f, err := build.Plan(src, o)
	if err != nil {
		return d, j.blame(ctx, err)
	}
	for _, note := range src.Notes() {
		j.say(api.DatasetEvent{Note: note})
	}
	j.say(api.DatasetEvent{Forecast: &api.Forecast{
		Vertices: f.Vertices, Edges: f.Edges, Partitioner: f.Partitioner, Shards: f.Shards, ShardBytes: f.ShardBytes,
		PeakMemory: f.PeakMemory, Scratch: f.Scratch, CutAtMost: f.CutAtMost, Replicas: j.replicas,
	}})
	stage, err := j.keeper.Begin(j.id)
	if err != nil {
		return d, err
	}
	defer func() {
		if err != nil {
			j.abort(ctx)
		}
		if closeErr := stage.Close(); closeErr != nil {
			j.log.Warn("an import left something behind", "dataset", j.name, "err", closeErr)
		}
	}()
	if err := j.order(ctx, opReserveDataset, reserveOrder{ID: j.id, Name: j.name, Replicas: j.replicas}); err != nil {
		return d, err
	}
	ctx, watched := j.watch(ctx)
	defer watched()
	o.Dir, o.Scratch = stage.Dir, stage.Scratch
	manifest, err := build.Run(ctx, src, o)
	if err != nil {
		return d, j.blame(ctx, err)
	}
	return j.publish(ctx, stage, manifest)
}

// blame says that what is wrong is the source or what was asked for, unless it was
// only interrupted.
func (j *job) blame(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return api.Invalid("%v", err)
}

// order has the leader do something, and waits until this node has read it.
func (m *member) order(ctx context.Context, op string, in any) error {
	var index uint64
	if err := m.atLeader(ctx, op, in, &index); err != nil {
		return err
	}
	return m.readUpTo(ctx, index)
}

// readUpTo waits until this node has read so much of the plan.
func (m *member) readUpTo(ctx context.Context, index uint64) error {
	for {
		changed := m.plan.Changed()
		if m.plan.State().Index >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch ends the import when its dataset is gone from the plan, which has it.
func (j *job) watch(ctx context.Context) (during context.Context, done func()) {
	during, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			changed := j.plan.Changed()
			if _, in := j.plan.State().Datasets[j.id]; !in {
				cancel(errRemoved)
			}
			select {
			case <-changed:
			case <-during.Done():
				return
			}
		}
	})
	return during, func() {
		cancel(nil)
		wg.Wait()
	}
}

// publish tells the mesh of the shards and waits until they are where they belong.
func (j *job) publish(ctx context.Context, stage *shards.Stage, m *graph.Manifest) (plan.Dataset, error) {
	if err := stage.Publish(); err != nil {
		return plan.Dataset{}, err
	}
	if err := j.order(ctx, opDefineDataset, defined(j.id, m)); err != nil {
		return plan.Dataset{}, err
	}
	var last api.Progress
	for {
		changed := j.plan.Changed()
		d, in := j.plan.State().Datasets[j.id]
		if !in {
			return d, errRemoved
		}
		if p := placed(d, j.member.id.ID()); p != last && p.Total > 0 {
			last = p
			j.say(api.DatasetEvent{Progress: &p})
		}
		if d.Stage == plan.Ready && ctx.Err() == nil {
			return d, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return d, context.Cause(ctx)
		}
	}
}

// defined is what the plan is told of a manifest.
func defined(id string, m *graph.Manifest) plan.DefineDataset {
	c := plan.DefineDataset{ID: id, About: plan.About{
		Vertices: m.Vertices, Edges: m.Edges, Features: m.Features, Classes: m.Classes, Weighted: m.Weighted, Sparse: m.Sparse,
		DType: string(m.DType), Partitioner: m.Partitioner, Seed: m.Seed, EdgeCut: m.EdgeCut,
		Balance: m.Balance, BalanceEdges: m.BalanceEdges, BalanceTraining: m.BalanceTraining,
	}}
	for _, s := range m.Splits {
		c.About.Splits = append(c.About.Splits, plan.SplitSizes{Train: s.Train, Val: s.Val, Test: s.Test})
	}
	for _, s := range m.Shards {
		c.Shards = append(c.Shards, plan.ShardAbout{Vertices: s.Vertices, Edges: s.Edges, Halo: s.Halo, Bytes: s.Bytes, SHA256: s.SHA256})
	}
	return c
}

// placed counts the bytes that had, or have, to go from the importer to others.
func placed(d plan.Dataset, importer string) api.Progress {
	p := api.Progress{Stage: "placing shards", Unit: "bytes"}
	for i, s := range d.Shards {
		for _, id := range d.WantedOf(i) {
			if id == importer {
				continue
			}
			p.Total += s.Bytes
			if d.Holds(id, i) {
				p.Done += s.Bytes
			}
		}
	}
	return p
}

// abortTimeout bounds how long an import that has failed waits for a leader to
// tell. After it, tidy and the leader itself see to what was reserved.
const abortTimeout = 3 * time.Second

// abort takes the dataset out of the plan. ctx may have ended already.
func (j *job) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if err := j.order(ctx, opAbortDataset, j.id); err != nil {
		j.forsaken.add(j.id)
		j.log.Warn("could not tell the leader that an import has ended; it is told later", "dataset", j.name, "err", err)
	}
}
