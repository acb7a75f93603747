package build

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/shardtable"
	"github.com/hopmesh/hopmesh/engine/graph/build/wire"
	"github.com/hopmesh/hopmesh/engine/partition"
)

// Makers are the nodes that make a dataset together.
type Makers struct {
	ID     string // of the dataset
	Nodes  []string
	Owners []int // the node that makes each shard, as an index into Nodes
	// Spec makes each node read a share of the source; nil: the source is read here.
	Spec json.RawMessage
	Ask  func(ctx context.Context, node string, message, into []byte) ([]byte, error)
	Name func(node string) string
}

// Shared reports whether a graph can be made by several nodes together.
func Shared(src graph.Source) bool {
	m := src.Meta()
	return !m.Sparse && m.Types == nil && m.EdgeFeatures == 0 && m.Features <= pieceBytes/4
}

// A conductor makes a dataset on several nodes.
type conductor struct {
	Makers
	b      *builder
	job    job
	part   []uint16
	report *reporter
	kept   kept
}

// Conduct is Run by several nodes, and the shards are the same. Those of a node are in its
// stage when it returns: Publish puts them in place, and Drop, which must be called in any
// case, removes the rest.
func Conduct(ctx context.Context, src graph.Source, o Options, with Makers) (m *graph.Manifest, err error) {
	start := time.Now()
	if o, err = o.settle(src); err != nil {
		return nil, err
	}
	o.Nodes = len(with.Nodes)
	p, peak, err := newPlan(src, o)
	if err != nil {
		return nil, err
	}
	if len(with.Owners) != p.shards {
		return nil, fmt.Errorf("%d shards have %d owners", p.shards, len(with.Owners))
	}
	if src.Meta().Weighted {
		with.Spec = nil // the weights of equal edges are added up in the order of the source
	}
	defer narrow(o.Memory)()
	c := &conductor{Makers: with, b: newBuilder(src, o, p)}
	c.report = c.b.report
	if o.Memory > peak {
		c.kept.room = (o.Memory - peak) / 2
	}
	c.plan(src, o, p)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	var pinging sync.WaitGroup
	defer pinging.Wait()
	defer stop(nil)
	for node := range with.Nodes {
		pinging.Go(func() { c.ping(ctx, node, stop) })
	}
	if err := c.run(ctx, src); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	c.b.sum()
	c.b.manifest.WallSeconds = time.Since(start).Seconds()
	return &c.b.manifest, nil
}

func (c *conductor) plan(src graph.Source, o Options, p *plan) {
	meta := src.Meta()
	c.job = job{
		Meta: meta, Shards: p.shards, DType: o.DType, Random: p.partitioner == random, Undirected: o.Undirected,
		Labels: ofSource{src}.about().labels, Names: src.IDs().Strings != nil, Splits: len(src.Splits()),
		Shift: p.blockShift, Nodes: c.Nodes, Owners: c.Owners, Spec: c.Spec, Output: p.output,
	}
	if c.job.Random {
		c.job.Shift = 17 // there are none
	}
	// A few buckets for each node, however small the graph.
	for !c.job.Random && c.job.Shift > 0 && c.job.buckets() < 4*len(c.Nodes) {
		c.job.Shift--
	}
	c.b.manifest = graph.Manifest{
		Vertices: uint64(meta.Vertices), Weighted: meta.Weighted,
		Features: meta.Features, Classes: meta.Classes, Targets: meta.Targets,
		DType: o.DType, Partitioner: p.partitioner, Seed: o.Seed,
		Shards: make([]graph.ShardInfo, p.shards),
		Notes:  slices.Clone(src.Notes()),
	}
}

// say sends a message to a node.
func (c *conductor) say(ctx context.Context, node int, m []byte) ([]byte, bool, error) {
	b, err := c.Ask(ctx, c.Nodes[node], m, nil)
	if err == nil {
		var done bool
		if b, done, err = wire.Result(b); err == nil {
			return b, done, nil
		}
		err = fmt.Errorf("node %s: %w", c.Name(c.Nodes[node]), err)
	}
	return nil, false, err
}

func (c *conductor) deliver(ctx context.Context, node int, m []byte) error {
	_, _, err := c.say(ctx, node, m)
	return err
}

func (c *conductor) message(say byte) []byte {
	m, err := wire.Head(say, c.ID)
	if err != nil {
		panic(err) // the id was made here
	}
	return m
}

// all sends a message to all nodes at once.
func (c *conductor) all(ctx context.Context, m []byte) error {
	g, ctx := errgroup.WithContext(ctx)
	for node := range c.Nodes {
		g.Go(func() error { return c.deliver(ctx, node, m) })
	}
	return g.Wait()
}

func (c *conductor) open(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for node := range c.Nodes {
		j := c.job
		j.Self = node
		g.Go(func() error {
			body, err := json.Marshal(j)
			if err != nil {
				return fmt.Errorf("describe an import: %w", err)
			}
			m := append(c.message(sayOpen), body...)
			if len(m) > MaxMessage {
				return errors.New("the import has too many sources to be described to other nodes: give fewer, as folders")
			}
			return c.deliver(ctx, node, m)
		})
	}
	return g.Wait()
}

// pingEvery is how often who conducts shows that it is there, and looks after the others.
const pingEvery = 2 * time.Second

func (c *conductor) ping(ctx context.Context, node int, stop context.CancelCauseFunc) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := c.deliver(ctx, node, c.message(sayPing)); err != nil && ctx.Err() == nil {
			stop(err)
			return
		}
	}
}

// task makes all nodes do something and waits for them.
func (c *conductor) task(ctx context.Context, what byte, stage string) ([][]byte, error) {
	c.report.begin(stage, uint64(len(c.Nodes)), "nodes")
	results := make([][]byte, len(c.Nodes))
	g, ctx := errgroup.WithContext(ctx)
	for node := range c.Nodes {
		g.Go(func() error {
			if err := c.deliver(ctx, node, append(c.message(sayDo), what)); err != nil {
				return err
			}
			for {
				b, done, err := c.say(ctx, node, c.message(sayPoll))
				if err != nil {
					return err
				}
				if done {
					results[node] = bytes.Clone(b)
					c.report.add(1)
					return nil
				}
			}
		})
	}
	return results, g.Wait()
}

// draw makes all nodes read their shares of the edges, which must be all edges.
func (c *conductor) draw(ctx context.Context, what byte, stage string) error {
	results, err := c.task(ctx, what, stage)
	if err != nil {
		return err
	}
	drawn := uint64(0)
	for _, b := range results {
		if len(b) != 8 {
			return errMessage
		}
		drawn += binary.LittleEndian.Uint64(b)
	}
	if drawn != c.b.meta.Edges {
		return errors.New("a source was changed while it was read: import it again when nothing writes to it")
	}
	return nil
}

func (c *conductor) run(ctx context.Context, src graph.Source) error {
	if err := c.cut(ctx, src); err != nil {
		return err
	}
	if _, err := c.task(ctx, doMake, "sorting edges into shards"); err != nil {
		return err
	}
	if err := c.features(ctx, src); err != nil {
		return err
	}
	results, err := c.task(ctx, doFinish, "syncing")
	if err != nil {
		return err
	}
	return c.gather(results)
}

// gather notes what all nodes have made.
func (c *conductor) gather(results [][]byte) error {
	shards := c.b.manifest.Shards
	training := make([]uint64, len(shards))
	for v, p := range c.part {
		if c.b.trains(uint32(v)) {
			training[p]++
		}
	}
	seen := make([]bool, len(shards))
	edges := uint64(0)
	for node, b := range results {
		var list []made
		if err := json.Unmarshal(b, &list); err != nil {
			return errMessage
		}
		for _, m := range list {
			if m.Shard < 0 || m.Shard >= len(shards) || seen[m.Shard] || c.Owners[m.Shard] != node {
				return errMessage
			}
			vertices := uint64(c.b.numbers.first[m.Shard+1] - c.b.numbers.first[m.Shard])
			if i := m.Info; i.Vertices != vertices || i.Cut > i.Edges || i.Edges > c.b.plan.stored-edges || i.Halo > min(i.Cut, uint64(len(c.part))-vertices) {
				return errMessage
			}
			edges += m.Info.Edges
			seen[m.Shard] = true
			shards[m.Shard] = m.Info
			shards[m.Shard].Training = training[m.Shard]
		}
	}
	if slices.Contains(seen, false) {
		return errMessage
	}
	return nil
}

// cut decides the shard of every vertex, and has the edges brought to the shards.
func (c *conductor) cut(ctx context.Context, src graph.Source) (err error) {
	start := time.Now()
	meta := src.Meta()
	if c.job.Random {
		c.part = partition.Random(meta.Vertices, c.b.plan.shards, c.b.options.Seed)
	} else if c.part, err = c.partition(ctx, src); err != nil {
		return err
	}
	c.b.manifest.CutSeconds = time.Since(start).Seconds()
	if err := c.b.number(c.part); err != nil {
		return err
	}
	for at := 0; at < len(c.part); at += pieceBytes / 2 {
		piece := c.part[at:min(len(c.part), at+pieceBytes/2)]
		if err := c.all(ctx, append(c.message(sayParts), raw(piece)...)); err != nil {
			return err
		}
	}
	if err := c.all(ctx, c.message(sayNumber)); err != nil {
		return err
	}
	switch {
	case !c.job.Random:
		_, err = c.task(ctx, doPlace, "sharing out edges")
	case c.job.reads():
		err = c.draw(ctx, doDrawEdges, "sharing out edges")
	default:
		ids, where := c.b.numbers.ids(), shardtable.New(c.b.numbers.first)
		err = c.send(ctx, src, sayEdges, "sharing out edges", func(r *router, taker int, e graph.EdgeBatch) error {
			return r.routeEdges(&c.job, taker, e, ids, where, c.job.Undirected)
		})
	}
	if err != nil {
		return err
	}
	return c.sendColumns(ctx)
}

// send reads the edges here and sends them.
func (c *conductor) send(ctx context.Context, src graph.Source, say byte, stage string, route func(*router, int, graph.EdgeBatch) error) error {
	c.report.begin(stage, c.b.meta.Edges, "edges")
	takers := c.b.plan.writers()
	r := newRouter(ctx, c.message(say), len(c.Nodes), takers, -1, c.b.meta.Weighted, c.deliver, nil)
	return r.close(pipe(r.ctx, src.Edges, c.b.meta, takers, func(taker int, e graph.EdgeBatch) error {
		c.report.add(uint64(len(e.Src)))
		return route(r, taker, e)
	}))
}

// partition has the edges sorted on all nodes, and cuts the graph here.
func (c *conductor) partition(ctx context.Context, src graph.Source) ([]uint16, error) {
	var err error
	if c.job.reads() {
		err = c.draw(ctx, doDrawHalves, "reading edges")
	} else {
		err = c.send(ctx, src, sayHalves, "reading edges", func(r *router, taker int, e graph.EdgeBatch) error {
			return r.routeHalves(&c.job, taker, e)
		})
	}
	if err != nil {
		return nil, err
	}
	results, err := c.task(ctx, doSort, "sorting edges")
	if err != nil {
		return nil, err
	}
	g := &blocks{vertices: c.b.meta.Vertices, loads: c.b.plan.loads, training: c.b.trains}
	for node, b := range results {
		if err := g.takeRuns(b, farRuns{ctx, c, node}, c.job.cutEnd(node), 1<<c.job.Shift, c.b.plan.halves); err != nil {
			return nil, err
		}
	}
	c.kept.pieces = map[place][]byte{}
	defer func() { c.kept.pieces = nil }()
	return c.b.partitionOf(ctx, g)
}

// sendColumns sends names, labels and marks to those who make the shards.
func (c *conductor) sendColumns(ctx context.Context) error {
	order, buf := c.b.numbers.order(), make([]byte, copyBuffer)
	has := c.b.columns.about()
	for shard := range c.job.Shards {
		rows := order[c.b.numbers.first[shard]:c.b.numbers.first[shard+1]]
		for column, there := range []bool{idColumn: true, labelColumn: has.labels, markColumn: has.splits > 0, nameColumn: has.names} {
			if !there {
				continue
			}
			head := c.message(sayColumn)
			head = binary.LittleEndian.AppendUint32(head, uint32(shard))
			head = binary.LittleEndian.AppendUint32(head, uint32(column))
			err := c.b.columns.write(column, shard, rows, buf, func(b []byte) error {
				for len(b) > 0 { // a name may be long
					n := min(len(b), pieceBytes)
					if err := c.deliver(ctx, c.Owners[shard], append(slices.Clip(head), b[:n]...)); err != nil {
						return err
					}
					b = b[n:]
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *conductor) features(ctx context.Context, src graph.Source) error {
	if c.b.meta.Features == 0 {
		return nil
	}
	if c.job.reads() {
		_, err := c.task(ctx, doDrawRows, "writing features")
		return err
	}
	c.report.begin("writing features", uint64(c.b.meta.Vertices), "vertices")
	r := newRowRouter(ctx, c.message(sayRows), &c.job, c.part, c.deliver)
	return r.close(src.Features(r.ctx, func(f graph.FeatureBatch) error {
		rows, err := r.batch(f)
		c.report.add(uint64(rows))
		return err
	}))
}

// Publish has every node put its shards in place.
func (w Makers) Publish(ctx context.Context) error {
	c := &conductor{Makers: w}
	return c.all(ctx, c.message(sayPublish))
}

// dropTime bounds how long Drop waits for nodes.
const dropTime = 5 * time.Second

// Drop ends the nodes' part in the import. What they have not published goes.
func (w Makers) Drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, dropTime)
	defer cancel()
	c := &conductor{Makers: w}
	var all sync.WaitGroup
	for node := range w.Nodes {
		all.Go(func() { _ = c.deliver(ctx, node, c.message(sayClose)) }) // else it ends by itself, but later
	}
	all.Wait()
}
