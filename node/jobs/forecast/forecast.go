// Package forecast tells users what a job would take on meshes of other sizes: it reads the
// dataset on this node, borrows the shards that it lacks, measures this machine, and has
// engine/forecast count.
package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
	"github.com/hopmesh/hopmesh/node/ongoing"
	"github.com/hopmesh/hopmesh/node/pair"
	"github.com/hopmesh/hopmesh/node/wording"
)

// Plan is the part of the replicated plan that forecasts use.
type Plan interface {
	State() *plan.State
}

// Shards is the part of this node's shards that forecasts use.
type Shards interface {
	// Borrow fetches shards that this node does not hold into a folder.
	Borrow(ctx context.Context, dataset string, list []int, folder string) error
}

// Config configures a Forecaster. All fields are required.
type Config struct {
	Dir       string // where jobs have their folders
	Self      string
	Version   string
	Plan      Plan
	Shards    Shards
	ShardFile func(dataset string, shard int) string
	Log       *slog.Logger
}

// payload is the share of a link's rate that is left for what nodes send: packets of 1,452
// bytes have 42 bytes around them and about 35 within, and some are acknowledgements.
const payload = 0.93

// spaced is how much more processor time a byte takes, as a share, where packets come one
// by one: over a link that is much slower than two nodes of one machine are. Bytes took 7.6
// ns on links of 400 Mbit/s, and 3.4 ns without.
const spaced = 1.2

// A Forecaster answers one request at a time. Its methods may be called from any goroutine.
type Forecaster struct {
	cfg      Config
	turn     chan struct{} // of one: who has it measures this machine alone
	underWay ongoing.Group
}

// New makes a Forecaster.
func New(cfg Config) *Forecaster { return &Forecaster{cfg: cfg, turn: make(chan struct{}, 1)} }

// Run waits until ctx ends, cancels all requests and waits for them.
func (f *Forecaster) Run(ctx context.Context) error { return f.underWay.EndWith(ctx) }

// Forecast answers a request, and calls tell with each row as it comes.
func (f *Forecaster) Forecast(ctx context.Context, r api.ForecastRequest, tell func(api.ForecastRow)) (api.JobForecast, error) {
	ctx, done, err := f.underWay.Begin(ctx)
	if err != nil {
		return api.JobForecast{}, api.Unavailable("this node is stopping")
	}
	defer done()
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return api.JobForecast{}, api.Unavailable("the forecast was interrupted")
	}
	defer budget.Begin()()
	a, err := f.caught(ctx, r, tell)
	mapped.LogFault(f.cfg.Log, "a forecast", err)
	if _, said := errors.AsType[*api.Error](err); err == nil || said {
		return a, err
	}
	if ctx.Err() != nil {
		return a, api.Unavailable("the forecast was interrupted")
	}
	return a, api.Conflict("%s", wording.Text(err.Error()))
}

// caught is answer, with an error where the system gives no memory.
func (f *Forecaster) caught(ctx context.Context, r api.ForecastRequest, tell func(api.ForecastRow)) (a api.JobForecast, err error) {
	defer mapped.End(mapped.Guard())
	defer budget.Caught(&err)
	defer mapped.CaughtAny(&err)
	return f.answer(ctx, r, tell)
}

func (f *Forecaster) answer(ctx context.Context, r api.ForecastRequest, tell func(api.ForecastRow)) (a api.JobForecast, err error) {
	folder, err := os.MkdirTemp(f.cfg.Dir, "forecast.borrowed-*")
	if err != nil {
		return a, fmt.Errorf("make room for what other nodes have: %w", err)
	}
	defer func() {
		if err := os.RemoveAll(folder); err != nil {
			f.cfg.Log.Warn("could not remove what was borrowed to forecast with", "path", folder, "err", err)
		}
	}()
	asked, err := strategiesOf(r.Job.Strategy)
	if err != nil {
		return a, err
	}
	s, closeGraph, err := f.subject(ctx, &r, folder)
	if err != nil {
		return a, err
	}
	defer closeGraph()
	s.Dir = folder
	here, err := pair.Measure(ctx, folder, f.cfg.Version)
	if err != nil {
		return a, err
	}
	threads := float64(runtime.GOMAXPROCS(0))
	rates := forecast.Rates{
		RoundTrip: max(r.RoundTrip, here.RoundTrip), Question: here.Question, Cores: min(cmp.Or(r.Cores, threads), threads),
		Byte: here.Byte * (1 + spaced*max(0, 1-r.Bandwidth/here.Bandwidth)),
	}
	rates.Bandwidth = min(payload*r.Bandwidth, rates.Cores/rates.Byte)
	rows, err := forecast.Make(ctx, &s.Subject, asked, r.Nodes, rates, func(row forecast.Row) { tell(rowOf(&row)) })
	if err != nil {
		return a, err
	}
	for i := range rows {
		a.Rows = append(a.Rows, rowOf(&rows[i]))
	}
	choose(a.Rows)
	a.Assumptions = assumptions(&r, rates, s, asked)
	return a, nil
}

// A subject is what a request is about.
type subject struct {
	forecast.Subject
	replicas int
	shape    *forecast.Shape // nil: of a dataset
}

// subject returns what a request is about. Borrowed shards are in folder until closeGraph
// has been called.
func (f *Forecaster) subject(ctx context.Context, r *api.ForecastRequest, folder string) (s *subject, closeGraph func(), err error) {
	kind := task.Named(r.Job.Task)
	pairs := kind != nil && kind.Pairs
	if pairs && r.Preset != "" {
		return nil, nil, api.Invalid("forecasts count the pairs of a dataset, and a preset has none: give --dataset, or leave --task %s out to see about what its vertices take", kind.Name)
	}
	by := r.Job.Strategy
	if by == "" {
		by = strategy.Auto // settings of all strategies that it may choose
	}
	if r.Preset != "" {
		s, err = ofShape(r, by)
		return s, func() {}, err
	}
	state := f.cfg.Plan.State()
	d, ok := state.DatasetByName(r.Job.Dataset)
	if !ok {
		return nil, nil, api.NotFound("%s", api.NoDataset(r.Job.Dataset))
	}
	if d.Stage == plan.Importing {
		return nil, nil, api.Conflict("dataset %s is still being imported by node %s: ask when it is ready", d.Name, state.NameOf(d.Importer))
	}
	if by == strategy.Auto && (pairs || recipe.LearnsRows(&r.Job, d)) {
		by = leap.Name // as a job would
	}
	whole, _, err := recipe.Of(r.Job, by, nil, state, d)
	if err != nil {
		return nil, nil, err
	}
	shards, err := f.open(ctx, d, folder)
	if err != nil {
		return nil, nil, err
	}
	g, err := dataset.Open(shards, whole.Split, whole.Features)
	if err != nil {
		jobs.CloseShards(shards)
		return nil, nil, err
	}
	if pairs {
		if err := forecast.Link(ctx, g, &whole); err != nil {
			jobs.CloseShards(shards)
			return nil, nil, err
		}
	}
	s = &subject{replicas: d.Replicas}
	if r.Replicas != nil {
		s.replicas = *r.Replicas
	}
	s.Subject = forecast.Subject{Recipe: &whole, Graph: forecast.Of(g), Place: placing(d, s.replicas), Memory: r.Memory}
	return s, func() { jobs.CloseShards(shards) }, nil
}

// ofShape returns the subject of a request for a preset.
func ofShape(r *api.ForecastRequest, by string) (*subject, error) {
	shape, err := forecast.ShapeOf(r.Preset)
	if err != nil {
		return nil, api.Invalid("%v", err)
	}
	// The checks of a recipe want a dataset, and one on several nodes.
	d := plan.Dataset{Name: shape.Name, Nodes: []string{"0", "1"}, About: plan.About{
		Vertices: shape.Vertices, Edges: shape.Edges, Features: shape.Features, Classes: shape.Classes, Splits: []plan.SplitSizes{{Train: shape.Training}},
	}}
	for i := range forecast.ShapeShards {
		d.Shards = append(d.Shards, plan.Shard{Holders: []int{i % 2}})
	}
	r.Job.Dataset = shape.Name
	whole, _, err := recipe.Of(r.Job, by, nil, &plan.State{}, d)
	if err != nil {
		return nil, err
	}
	g, err := shape.Graph(whole.Seed)
	if err != nil {
		return nil, err
	}
	s := &subject{shape: &shape}
	if r.Replicas != nil {
		s.replicas = *r.Replicas
	}
	s.Subject = forecast.Subject{Recipe: &whole, Graph: g, Place: forecast.Even(forecast.ShapeShards, s.replicas), Memory: r.Memory}
	return s, nil
}

// open maps all shards of a dataset; those that are not here are borrowed into a folder.
func (f *Forecaster) open(ctx context.Context, d plan.Dataset, folder string) ([]*graph.Shard, error) {
	lacking := map[int]bool{}
	var list []int
	for i := range d.Shards {
		if !d.Holds(f.cfg.Self, i) {
			lacking[i] = true
			list = append(list, i)
		}
	}
	if err := f.cfg.Shards.Borrow(ctx, d.ID, list, folder); err != nil {
		return nil, err
	}
	return jobs.OpenShards(d, func(dataset string, shard int) string {
		if lacking[shard] {
			return filepath.Join(folder, graph.ShardFile(shard))
		}
		return f.cfg.ShardFile(dataset, shard)
	})
}

// strategiesOf returns the strategies to forecast.
func strategiesOf(asked string) (of []forecast.Strategy, err error) {
	if asked != "" && asked != strategy.Auto && !recipe.Strategies.Has(asked) {
		return nil, api.Invalid("there is no strategy %q: choose one of %s", asked, strings.Join(recipe.Strategies.Choices(), ", "))
	}
	for _, d := range recipe.Strategies {
		if d.Choose != nil || d.Elsewhere && d.Name != asked || asked != "" && asked != strategy.Auto && d.Name != asked && d.Name != strategy.Single {
			continue
		}
		check := d.Check
		if d.Classes || d.Elsewhere || !d.Embeddings || !d.Links {
			check = recipe.Strategies.Check // also of the task, the model, or learnt rows
		}
		of = append(of, forecast.Strategy{
			Name: d.Name, Deal: d.Deal, Asking: d.Asking, Check: check, Complete: d.Complete, Exact: d.Exact, Hooks: d.Forecast,
		})
	}
	return of, nil
}

// placing returns where a dataset's shards are on so many nodes: as they are now, if it is
// on so many, and else as the leader would place them.
func placing(d plan.Dataset, replicas int) forecast.Place {
	return func(nodes int) ([]int, [][]int) {
		now := d.Owners()
		if len(now) == nodes && replicas == d.Replicas {
			return places(d, now, d.HoldersOf)
		}
		moved := d
		moved.Stage, moved.Replicas, moved.Shards = plan.Placing, replicas, nil
		var members []plan.PlaceNode
		names := make([]string, nodes)
		for n := range names {
			names[n] = fmt.Sprintf("%016x", n)
			members = append(members, plan.PlaceNode{ID: names[n], Weight: 1, Serving: true, Stays: true})
		}
		moved.Nodes = names[:1]
		for _, s := range d.Shards {
			s.Holders, s.Wanted = []int{0}, nil
			moved.Shards = append(moved.Shards, s)
		}
		if c, changed := plan.Place(moved, members); changed {
			return places(d, names, func(shard int) (of []string) {
				for _, n := range c.Wanted[shard] {
					of = append(of, c.Nodes[n])
				}
				return of
			})
		}
		return places(d, names, func(int) []string { return names[:1] })
	}
}

// places returns the owner and the other holders of each shard, as indices of nodes.
func places(d plan.Dataset, nodes []string, holders func(shard int) []string) (owners []int, others [][]int) {
	at := map[string]int{}
	for i, id := range nodes {
		at[id] = i
	}
	for shard := range d.Shards {
		var of []int
		for _, id := range holders(shard) {
			if n, is := at[id]; is {
				of = append(of, n)
			}
		}
		owners, others = append(owners, of[0]), append(others, of[1:])
	}
	return owners, others
}
