package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/shards"
)

// MakeFlag marks a message of nodes that make a dataset together among all requests of the
// kind mesh.Shard.
const MakeFlag = 8

// sharedFrom is how large a dataset from one source is, in bytes, that all nodes make.
const sharedFrom = 64 << 20

// host is what the maker of this node's shards needs.
type host struct {
	d      *Datasets
	memory uint64
	log    *slog.Logger
}

var _ build.Host = host{}

func (h host) Self() string   { return h.d.self }
func (h host) Memory() uint64 { return h.memory }

func (h host) Ended(left error) {
	if left != nil {
		h.log.Warn("an import left something behind", "err", left)
	}
}

// beginPatience bounds how long a node may be behind the plan in which an import begins.
const beginPatience = 10 * time.Second

// Begin waits until the plan says that the other node imports the dataset.
func (h host) Begin(ctx context.Context, id, from string) (build.Stage, error) {
	ctx, cancel := context.WithTimeout(ctx, beginPatience)
	defer cancel()
	for {
		changed := h.d.plan.Changed()
		if d, in := h.d.plan.State().Datasets[id]; in && d.Stage == plan.Importing && d.Importer == from {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errors.New("it has not learnt of the import from the plan: import again when it has caught up")
		}
	}
	s, err := h.d.Keeper.Begin(id)
	if err != nil {
		return nil, err
	}
	return stage{s, answerMeanwhile()}, nil
}

func (h host) Ask(ctx context.Context, node string, message, into []byte) ([]byte, error) {
	return h.d.tell(ctx, node, message, into)
}

// Open opens this node's share of a source.
func (h host) Open(ctx context.Context, spec []byte, share, of int) (build.Share, error) {
	var s sharing
	err := json.Unmarshal(spec, &s)
	switch {
	case err == nil && s.Generate != nil:
		return generate.Share(*s.Generate, share, of)
	case err == nil && s.Tables != nil:
		return read.OpenShare(ctx, *s.Tables, h.d.self, h.memory)
	}
	return nil, errors.New("the source can't be understood: run the same version on all nodes")
}

// sharing says how a node opens its share of a source: of a graph that is made up, or of
// tables that lie in parts on the nodes.
type sharing struct {
	Generate *generate.Options `json:",omitempty"`
	Tables   *read.Sharing     `json:",omitempty"`
}

// sharing returns how the nodes read their shares; nil: they can't, and this node reads all.
func (u *undertaking) sharing(src graph.Source, nodes []string) json.RawMessage {
	s := sharing{Generate: u.generate}
	if s.Generate == nil {
		tables, ok := read.ShareOf(src, u.of.self)
		for _, p := range tables.Parts {
			ok = ok && slices.Contains(nodes, p.Node)
		}
		if !ok {
			return nil
		}
		s.Tables = &tables
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return b
}

// stage is a keeper's stage.
type stage struct {
	*shards.Stage
	ended func()
}

func (s stage) Folders() (shards, scratch string) { return s.Dir, s.Scratch }

func (s stage) Close() error {
	s.ended()
	return s.Stage.Close()
}

// makePatience bounds how long a node may take for an answer, for instance to write to its
// disk.
const makePatience = 30 * time.Second

// tell sends a message to the maker on a node, which may be this one.
func (d *Datasets) tell(ctx context.Context, node string, message, into []byte) ([]byte, error) {
	if node == d.self {
		return d.maker.Answer(ctx, d.self, message), nil
	}
	// Bound to no generation: an import is no job.
	b, err := reach(ctx, d.mesh, node, mesh.Question{
		Header: mesh.Header{Kind: mesh.Shard, Flags: MakeFlag, Count: 1},
		Body:   message, Into: into, Limit: build.MaxReply, Patience: makePatience,
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("node %s, which makes a part of the shards, can't be reached (%w): import again when it is back", d.plan.State().NameOf(node), err)
	}
	return b, err
}

// largeMessages bounds how many messages of more than smallMessage bytes are taken at once.
const (
	largeMessages = 16
	smallMessage  = 64 << 10
)

// ServeMaker answers a message about a dataset that several nodes make.
func (d *Datasets) ServeMaker(ctx context.Context, r *mesh.Request) error {
	if r.Length > build.MaxMessage {
		return fmt.Errorf("%w: a message of %d bytes about a dataset in the making", mesh.ErrProtocol, r.Length)
	}
	if r.Length > smallMessage {
		select {
		case d.taking <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		defer func() { <-d.taking }()
	}
	body, err := r.TakeBody(nil, int(r.Length))
	if err != nil {
		return err
	}
	return r.Reply(r.Count, d.maker.Answer(ctx, r.Peer, body))
}

// makers returns who makes the shards of a dataset, each those that the leader would give
// it; false if this node makes all.
func (u *undertaking) makers(src graph.Source, f graph.Forecast) (w build.Makers, many bool) {
	state, self := u.of.plan.State(), u.of.self
	if u.options.Makers == "one" || !build.Shared(src) ||
		u.options.Makers != "all" && !u.spread && f.ShardBytes*uint64(f.Shards) < sharedFrom {
		return w, false
	}
	weights := plan.Weights(state)
	var nodes []plan.PlaceNode
	for id, m := range state.Members {
		nodes = append(nodes, plan.PlaceNode{
			ID: id, Weight: weights[id], Capacity: m.Memory, Stays: !m.Leaving, Serving: id == self || u.of.answers(id),
		})
	}
	// As if this node held all shards.
	d := plan.Dataset{ID: u.id, Stage: plan.Placing, Importer: self, Nodes: []string{self}, Shards: make([]plan.Shard, f.Shards)}
	for i := range d.Shards {
		d.Shards[i] = plan.Shard{ShardAbout: plan.ShardAbout{Bytes: f.ShardBytes}, Holders: []int{0}}
	}
	placed, changed := plan.Place(d, nodes)
	if !changed {
		return w, false
	}
	w = build.Makers{ID: u.id, Owners: make([]int, f.Shards), Ask: u.of.tell, Name: u.of.plan.State().NameOf}
	at := map[string]int{}
	for i, row := range placed.Wanted {
		id := placed.Nodes[row[0]]
		if _, in := at[id]; !in {
			at[id] = len(w.Nodes)
			w.Nodes = append(w.Nodes, id)
		}
		w.Owners[i] = at[id]
	}
	if len(w.Nodes) < 2 {
		return build.Makers{}, false
	}
	w.Spec = u.sharing(src, w.Nodes)
	return w, true
}

// make makes the shards here, or on all nodes.
func (u *undertaking) make(ctx context.Context, src graph.Source, o build.Options, own *shards.Stage, w build.Makers, many bool) (*graph.Manifest, error) {
	if many {
		m, err := build.Conduct(ctx, src, o, w)
		if err != nil {
			return nil, u.blame(ctx, err)
		}
		return m, w.Publish(ctx)
	}
	m, err := build.Run(ctx, src, o)
	if err != nil {
		return nil, u.blame(ctx, err)
	}
	return m, own.Publish()
}

// keepMaking gives up this node's part of imports that the plan does not list any more, for
// instance because the node that conducted one was started again or removed.
func (d *Datasets) keepMaking(ctx context.Context) error {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		changed := d.plan.Changed()
		listed := d.plan.State().Datasets
		d.maker.Keep(func(id string) bool { _, in := listed[id]; return in })
		select {
		case <-changed:
		case <-tick.C: // an import that ended while its maker was being made
		case <-ctx.Done():
			return nil
		}
	}
}
