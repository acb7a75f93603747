package data

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/triples"
	"github.com/hopmesh/hopmesh/engine/graph/read/typed"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/ongoing"
	"github.com/hopmesh/hopmesh/node/shards"
)

var errRemoved = errors.New("the dataset was removed while it was being imported")

// importer makes datasets of graphs, on this node.
type importer struct {
	dir    string // of all datasets
	self   string
	memory uint64 // bytes that an import may use unless it says otherwise; 0: no bound
	plan   Plan
	orders *orders
	keeper *shards.Keeper
	log    *slog.Logger

	answers func(id string) bool
	tell    func(ctx context.Context, node string, message, into []byte) ([]byte, error)

	underWay ongoing.Group // imports; they can still reach the leader when they end
	forsaken forsaken
}

// Import reads a source and cuts it into shards, on this node, and returns when the shards are
// where the plan wants them. If ctx ends before that, or anything fails, nothing is left.
func (d *Datasets) Import(ctx context.Context, r api.ImportRequest, tell func(api.DatasetEvent)) (api.Dataset, error) {
	return d.importer.bringIn(ctx, r.Name, r.DatasetOptions, tell, func(ctx context.Context, u *undertaking) (graph.Source, error) {
		o := read.Options{Format: r.Format, Task: r.Task, LabelColumns: r.LabelColumns, EdgeFeatures: r.EdgeFeatures, TypeColumn: r.TypeColumn, RelationColumn: r.RelationColumn, Memory: u.memory, Report: u.progress, Note: func(note string) { u.say(api.DatasetEvent{Note: note}) }, Admit: u.admit}
		if len(r.Sources) == 0 {
			return read.Open(ctx, r.Source, o)
		}
		parts, err := d.parts(r.Sources)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			u.spread = u.spread || p.Ask != nil
		}
		return read.OpenParts(ctx, parts, o)
	})
}

// Generate is Import of a generated graph.
func (d *Datasets) Generate(ctx context.Context, r api.GenerateRequest, tell func(api.DatasetEvent)) (api.Dataset, error) {
	return d.importer.bringIn(ctx, r.Name, r.DatasetOptions, tell, func(_ context.Context, u *undertaking) (graph.Source, error) {
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
		u.generate = &o
		return generate.New(o)
	})
}

// undertaking is one import.
type undertaking struct {
	of       *importer
	id, name string
	replicas int
	memory   uint64
	options  api.DatasetOptions
	spread   bool              // its sources are on several nodes
	generate *generate.Options // nil: it has sources

	telling sync.Mutex
	tell    func(api.DatasetEvent)
}

func (u *undertaking) say(e api.DatasetEvent) {
	u.telling.Lock()
	defer u.telling.Unlock()
	u.tell(e)
}

func (u *undertaking) progress(p graph.Progress) {
	u.say(api.DatasetEvent{Progress: &api.Progress{Stage: p.Stage, Done: p.Done, Total: p.Total, Unit: p.Unit}})
}

func (i *importer) bringIn(ctx context.Context, name string, o api.DatasetOptions, tell func(api.DatasetEvent),
	open func(context.Context, *undertaking) (graph.Source, error)) (api.Dataset, error) {
	u, err := i.undertake(name, o, tell)
	if err != nil {
		return api.Dataset{}, err
	}
	ctx, done, err := i.underWay.Begin(ctx)
	if err != nil {
		return api.Dataset{}, api.Unavailable("%v", err)
	}
	defer done()
	defer budget.Begin()()
	d, err := u.run(ctx, open)
	if err == nil {
		a := described(i.plan.State(), d)
		a.Folder = folder(i.dir, i.self, d)
		return a, nil
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause // more telling than the error that it caused
	}
	if _, ok := errors.AsType[*api.Error](err); ok {
		return api.Dataset{}, err
	}
	if errors.Is(err, errRemoved) {
		return api.Dataset{}, api.Conflict("%v", err)
	}
	return api.Dataset{}, lead.APIError(err)
}

// bound returns what an import may use: what was asked for, within the node's own bound.
func (i *importer) bound(asked uint64) uint64 {
	if asked == 0 || i.memory > 0 && asked > i.memory {
		return i.memory
	}
	return asked
}

// undertake checks what can be checked before anything is read.
func (i *importer) undertake(name string, o api.DatasetOptions, tell func(api.DatasetEvent)) (*undertaking, error) {
	if err := plan.CheckDatasetName(name); err != nil {
		return nil, api.Invalid("%v", err)
	}
	u := &undertaking{of: i, name: name, replicas: 1, memory: i.bound(o.Memory), options: o, tell: tell}
	if o.Replicas != nil {
		u.replicas = *o.Replicas
	}
	if u.replicas < 0 || u.replicas > plan.MaxReplicas {
		return nil, api.Invalid("a shard has 0 to %d copies beside its owner's, and not %d", plan.MaxReplicas, u.replicas)
	}
	if _, taken := i.plan.State().DatasetByName(name); taken {
		return nil, lead.APIError(i.orders.taken(name))
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	u.id = hex.EncodeToString(id[:])
	return u, nil
}

// run imports the dataset. It leaves it complete or absent.
func (u *undertaking) run(ctx context.Context, open func(context.Context, *undertaking) (graph.Source, error)) (d plan.Dataset, err error) {
	src, err := open(ctx, u)
	if err != nil {
		return d, u.blame(ctx, err)
	}
	defer func() { _ = src.Close() }()
	if t, ok := src.(interface{ Mirror() error }); ok && u.options.Undirected {
		if err := t.Mirror(); err != nil { // edges back have relations of their own
			return d, u.blame(ctx, err)
		}
		u.options.Undirected = false
	}
	if src.Meta().Types.Triples() && u.options.Undirected {
		return d, api.Invalid("triples are read in both directions, each with relations of its own: leave --undirected out")
	}
	types, err := src.Meta().Types.Text()
	if err != nil {
		return d, u.blame(ctx, err)
	}
	if err := u.may(plan.About{Types: types, Triples: src.Meta().Types.Triples(), Targets: string(src.Meta().Targets), EdgeFeatures: src.Meta().EdgeFeatures}); err != nil {
		return d, err
	}
	o := build.Options{
		Shards: u.options.Shards, Partitioner: u.options.Partitioner, DType: graph.DType(u.options.DType), Memory: u.memory,
		Undirected: u.options.Undirected, Seed: u.options.Seed, Report: u.progress,
	}
	f, err := build.Plan(src, o)
	if err != nil {
		return d, u.blame(ctx, err)
	}
	for _, note := range src.Notes() {
		u.say(api.DatasetEvent{Note: note})
	}
	u.say(api.DatasetEvent{Forecast: &api.Forecast{
		Vertices: f.Vertices, Edges: f.Edges, Partitioner: f.Partitioner, Shards: f.Shards, ShardBytes: f.ShardBytes,
		PeakMemory: f.PeakMemory, Scratch: f.Scratch, CutAtMost: f.CutAtMost, Replicas: u.replicas,
	}})
	w, many := u.makers(src, f)
	stage, err := u.of.keeper.Begin(u.id)
	if err != nil {
		return d, err
	}
	defer func() {
		if err != nil {
			u.abort(ctx)
		}
		if closeErr := stage.Close(); closeErr != nil {
			u.of.log.Warn("an import left something behind", "dataset", u.name, "err", closeErr)
		}
	}()
	if err := lead.Commit(ctx, u.of.orders.reserve, reservation{ID: u.id, Name: u.name, Replicas: u.replicas}); err != nil {
		return d, err
	}
	ctx, watched := u.watch(ctx)
	defer watched()
	o.Dir, o.Scratch = stage.Dir, stage.Scratch
	manifest, err := u.make(ctx, src, o, stage, w, many)
	if many {
		// From here on the plan decides about the shards.
		defer w.Drop(context.WithoutCancel(ctx))
	}
	if err != nil {
		return d, err
	}
	return u.publish(ctx, manifest, src.Meta().ClassNames, w)
}

// may returns an error if a member of the mesh does not know what a dataset is to have: a leader of a
// version before would drop it.
func (u *undertaking) may(about plan.About) error {
	if err := u.of.plan.State().May(plan.DefineDataset{ID: u.id, About: about}); err != nil {
		return api.Conflict("dataset %s can't be made here: %v", u.name, err)
	}
	return nil
}

// admit refuses formats of datasets that not all members know, before anything is read.
func (u *undertaking) admit(format string) error {
	if format == typed.Format || format == triples.Format {
		return u.may(plan.About{Types: format, Triples: format == triples.Format}) // whatever they are
	}
	return nil
}

// blame returns an error that says that the source or the request is wrong, unless it says so
// already or the import was only interrupted.
func (u *undertaking) blame(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	if refusal, is := errors.AsType[*api.Error](err); is {
		return refusal
	}
	return api.Invalid("%v", err)
}

// watch cancels the import when its dataset disappears from the plan.
func (u *undertaking) watch(ctx context.Context) (during context.Context, done func()) {
	during, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			changed := u.of.plan.Changed()
			if _, in := u.of.plan.State().Datasets[u.id]; !in {
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

// publish adds the shards to the plan and waits until they are where they belong.
func (u *undertaking) publish(ctx context.Context, m *graph.Manifest, classes []string, w build.Makers) (plan.Dataset, error) {
	c := defined(u.id, m)
	var err error
	if c.About.Types, err = m.Types.Text(); err != nil {
		return plan.Dataset{}, err
	}
	c.About.ClassNames, c.About.Triples = classes, m.Types.Triples()
	c.Makers, c.MadeBy = w.Nodes, w.Owners
	// A member may have come since.
	if err := u.may(c.About); err != nil {
		return plan.Dataset{}, err
	}
	if err := lead.Commit(ctx, u.of.orders.define, c); err != nil {
		return plan.Dataset{}, err
	}
	var last api.Progress
	for {
		changed := u.of.plan.Changed()
		d, in := u.of.plan.State().Datasets[u.id]
		if !in {
			return d, errRemoved
		}
		if p := placed(d, u.of.self); p != last && p.Total > 0 {
			last = p
			u.say(api.DatasetEvent{Progress: &p})
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

// defined converts a manifest to what the plan records.
func defined(id string, m *graph.Manifest) plan.DefineDataset {
	c := plan.DefineDataset{ID: id, About: plan.About{
		Vertices: m.Vertices, Edges: m.Edges, Features: m.Features, Classes: m.Classes, Targets: string(m.Targets), Weighted: m.Weighted, EdgeFeatures: m.EdgeFeatures, Sparse: m.Sparse,
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

// abortTimeout bounds how long an import that has failed waits for a leader. After it,
// tidy and the leader itself remove what was reserved.
const abortTimeout = 3 * time.Second

// abort takes the dataset out of the plan. ctx may have ended already.
func (u *undertaking) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if err := lead.Commit(ctx, u.of.orders.abort, u.id); err != nil {
		u.of.forsaken.add(u.id)
		u.of.log.Warn("could not report to the leader that an import has ended; trying again later", "dataset", u.name, "err", err)
	}
}

// tidy removes datasets from the plan that this node has begun to import and is not
// importing any more, for instance because it was restarted or there was no leader.
func (i *importer) tidy(ctx context.Context) error {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		for id, d := range i.plan.State().Datasets {
			order := i.orders.giveUp
			if i.forsaken.has(id) {
				order = i.orders.abort
			} else if d.Stage != plan.Importing || d.Importer != i.self || i.keeper.Importing(id) {
				continue
			}
			if i.plan.Leader() == "" {
				break
			}
			if _, err := order.Do(ctx, id); err != nil && ctx.Err() == nil {
				i.log.Debug("give up an import", "dataset", d.Name, "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

const tidyEvery = 5 * time.Second

// forsaken is the ids of datasets whose imports ended while there was no leader. It only
// grows.
type forsaken struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (f *forsaken) add(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil {
		f.ids = map[string]bool{}
	}
	f.ids[id] = true
}

func (f *forsaken) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids[id]
}
