package auto

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/centric"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
)

// A link is what a node gets from others.
type link struct {
	bandwidth float64 // bytes a second
	delay     time.Duration
}

// A world is a planted graph on some nodes: nine of ten edges stay in a shard.
type world struct {
	topology *sample.Topology
	layout   peer.Layout
	work     peer.Work
	net      *loopback.Net
	batch    []uint32
	row      float64
}

const (
	worldShards = 12
	shardSize   = 400
)

func newWorld(t *testing.T, nodes int, links []link) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(2, uint64(nodes)))
	w := &world{net: loopback.New(nodes), row: 400, layout: peer.Layout{Nodes: nodes}}
	total := worldShards * shardSize
	s := &graph.Shard{Shards: 1, Vertices: total, Total: uint32(total), Indptr: []int64{0}}
	for shard := range worldShards {
		w.layout.Owners = append(w.layout.Owners, shard*nodes/worldShards)
		w.layout.Firsts = append(w.layout.Firsts, uint32(shard*shardSize))
		for range shardSize {
			row := map[int32]bool{}
			for range 12 {
				u := shard*shardSize + r.IntN(shardSize)
				if r.IntN(10) == 0 {
					u = r.IntN(total)
				}
				row[int32(u)] = true
			}
			at := len(s.Indices)
			for u := range row {
				s.Indices = append(s.Indices, u)
			}
			slices.Sort(s.Indices[at:])
			s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		}
	}
	w.layout.Firsts = append(w.layout.Firsts, uint32(total))
	var err error
	if w.topology, err = sample.NewTopology([]*graph.Shard{s}); err != nil {
		t.Fatal(err)
	}
	for v := range total {
		w.batch = append(w.batch, uint32(v))
	}
	sample.Order(1, 1, w.batch)
	for node := range nodes {
		w.work.Nodes = append(w.work.Nodes, fmt.Sprintf("n%d", node))
	}
	w.work.Owners = w.layout.Owners
	w.net.Trouble = func(ctx context.Context, from, _ int, q peer.Query) error {
		took := links[from].delay
		if q.Part == uint32(exchange.LaneMessages)<<24|parcelAt {
			took += time.Duration(float64(q.Limit) / links[from].bandwidth * 1e9)
		}
		select {
		case <-time.After(took):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return w
}

// owned counts rows as gather does where nothing is asked for twice.
type owned struct {
	w    *world
	self int
}

func (o owned) RowBytes() float64 { return o.w.row }

func (o owned) Count(r *gather.Rows, sets [][]uint32, how gather.Options) error {
	seen := map[uint32]bool{}
	r.Local, r.Remote = 0, 0
	for _, set := range sets {
		for _, v := range set {
			if seen[v] && !how.Repeated {
				continue
			}
			seen[v] = true
			if o.w.layout.Owner(v) == o.self {
				r.Local++
			} else {
				r.Remote++
			}
		}
	}
	return nil
}

// job is that of a node.
func (w *world) job(node int) *Job {
	work := w.work
	work.Self = node
	j := &Job{
		Exchange: exchange.New(w.net.Node(node), work), Work: work, Layout: w.layout,
		Strategies: []Dealing{{Name: "centric", Deal: centric.Deal}, leapDealing},
		Batch:      func(step int) []uint32 { return w.batch[step*512:][:512] },
		Epoch:      1, Steps: 9, Epochs: 20, Model: Model{Weights: 10_000, Sum: 16, Front: 1600, Features: 1e6},
		Counter: sample.NewCounter(w.topology, sample.Options{Fanouts: []int{5, 5}, Seed: 3}), Rows: owned{w, node},
		Hands: 1, Threads: 2, Room: true, Tally: &peer.Tally{},
	}
	w.net.Node(node).Open()
	return j
}

// choose has all nodes choose, and returns what each has come to.
func (w *world) choose(t *testing.T, change func(node int, j *Job)) ([]*Choice, []*Job, error) {
	t.Helper()
	all, jobs, errs := make([]*Choice, len(w.work.Nodes)), make([]*Job, len(w.work.Nodes)), make([]error, len(w.work.Nodes))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var running sync.WaitGroup
	for node := range all {
		jobs[node] = w.job(node)
		if change != nil {
			change(node, jobs[node])
		}
	}
	for node := range all {
		running.Go(func() {
			if all[node], errs[node] = Consider(jobs[node]); errs[node] == nil {
				errs[node] = all[node].Choose(ctx)
			}
			if errs[node] != nil {
				cancel(errs[node]) // as a run ends that of all
			}
		})
	}
	running.Wait()
	return all, jobs, errors.Join(errs...)
}

func linksOf(nodes int, l link) []link { return slices.Repeat([]link{l}, nodes) }

var (
	slowLink  = link{1e6, 2 * time.Millisecond}
	quickLink = link{1e9, 100 * time.Microsecond}
)

// All nodes come to the same, at the pace of the slowest link.
func TestNodesAgree(t *testing.T) {
	for _, nodes := range []int{2, 3, 5} {
		for name, links := range map[string][]link{
			"slow": linksOf(nodes, slowLink), "quick": linksOf(nodes, quickLink),
			"one is slow": append(linksOf(nodes-1, quickLink), slowLink),
		} {
			synctest.Test(t, func(t *testing.T) {
				all, jobs, err := newWorld(t, nodes, links).choose(t, nil)
				if err != nil {
					t.Fatal(err)
				}
				want := links[nodes-1]
				for node, c := range all {
					if c.Chosen().Name != "leap" || c.Why() != all[0].Why() || c.rates != all[0].rates {
						t.Errorf("%d nodes, %s: node %d has %s: %s, %+v", nodes, name, node, c.Chosen().Name, c.Why(), c.rates)
					}
					if r := c.rates; r.Bandwidth < want.bandwidth*0.99 || r.Bandwidth > want.bandwidth*1.01 || r.RoundTrip != want.delay.Seconds() {
						t.Errorf("%d nodes, %s: %+v is measured of %+v", nodes, name, r, want)
					}
					for i, tr := range c.tried {
						roots, rows := uint64(0), uint64(0)
						for _, l := range tr.loads {
							roots, rows = roots+l.Roots, rows+l.Local+l.Remote
						}
						if roots != 3*512 || rows == 0 || tr.looks != 3 || tr.name != c.candidates[i].Name {
							t.Errorf("%s counts %d roots and %d rows", tr.name, roots, rows)
						}
					}
					sent := jobs[node].Tally.Read()
					others := uint64(nodes - 1)
					if sent.Requests[peer.Control] != others*(envelopes+1+2) || sent.Bytes[peer.Control] < others*parcelBytes || sent.Bytes[peer.Control] > others*(parcelBytes+4096) {
						t.Errorf("choosing costs %+v", sent)
					}
				}
			})
		}
	}
}

// Where one node owns all training vertices, the others would have nothing to compute;
// how bad that is depends on the network.
func TestTheNetworkDecides(t *testing.T) {
	for name, c := range map[string]struct {
		link link
		want string
	}{
		"slow":  {link{2e5, time.Millisecond}, "leap"},
		"quick": {quickLink, "centric"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4, linksOf(4, c.link))
			slices.SortStableFunc(w.batch, func(a, b uint32) int { return cmp.Compare(w.layout.Owner(a), w.layout.Owner(b)) })
			all, _, err := w.choose(t, func(_ int, j *Job) {
				j.Model.Weights = 1_000_000
				j.Batch = func(step int) []uint32 { return w.batch[step*300:][:300] }
			})
			if err != nil {
				t.Fatal(err)
			}
			for node, got := range all {
				if got.Chosen().Name != c.want || got.Why() != all[0].Why() {
					t.Errorf("%s: node %d: %s", name, node, got.Why())
				}
			}
		})
	}
}

// columns stands in for p3: it deals slices.
var columns = Dealing{Name: "p3", Deal: centric.Deal}

// Rows may be so wide that the first layer's sums are less to send.
func TestWhenP3IsACandidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(node int, j *Job)
		want   string
	}{
		"it is":                {func(int, *Job) {}, "p3"},
		"the model has no sum": {func(_ int, j *Job) { j.Model.Sum = 0 }, ""},
		"bits must not depend on it": {func(_ int, j *Job) {
			j.Settings.Deterministic = true
		}, ""},
		"a node has no room": {func(node int, j *Job) { j.Room = node != 1 }, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 3, linksOf(3, slowLink))
			w.row = 40_000
			all, _, err := w.choose(t, func(node int, j *Job) {
				j.Strategies = append(j.Strategies, columns)
				c.change(node, j)
			})
			if err != nil {
				t.Fatal(err)
			}
			for node, got := range all {
				if (got.Chosen().Name == "p3") != (c.want != "") || got.Why() != all[0].Why() {
					t.Errorf("%s: node %d: %s", name, node, got.Why())
				}
			}
		})
	}
}

// odd are rows of less than no bytes.
type odd struct{ Rows }

func (odd) RowBytes() float64 { return -1 }

// refused is a strategy that shares nothing.
var refused = Dealing{Name: "centric", Deal: func(peer.Layout, strategy.Settings) (deal.Dealer, error) {
	return nil, errors.New("it shares nothing")
}}

func TestWhatGoesWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(node int, j *Job)
		want   string
	}{
		"nothing can share it": {func(_ int, j *Job) { j.Strategies = []Dealing{refused} }, "no strategy can share it"},
		"another program":      {func(node int, j *Job) { j.Strategies = j.Strategies[:1+node] }, "run the same version of hopmesh"},
		"other steps":          {func(node int, j *Job) { j.Steps = 2 - node }, "has looked at"},
		"rows of no size":      {func(_ int, j *Job) { j.Rows = odd{j.Rows} }, "rows of -1 bytes"},
		"a vertex too far":     {func(_ int, j *Job) { j.Batch = func(int) []uint32 { return []uint32{1 << 30} } }, "look at step 1 by centric"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2, linksOf(2, quickLink))
			if name == "a vertex too far" {
				w.layout.Firsts[worldShards] = 1<<30 + 1
			}
			if _, _, err := w.choose(t, c.change); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "choose how the nodes share the job: ") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Where weights must be the same bits nothing is timed, and the network decides nothing.
func TestNothingIsTimedWhereBitsCount(t *testing.T) {
	for name, l := range map[string]link{"slow": {2e5, time.Millisecond}, "quick": quickLink} {
		synctest.Test(t, func(t *testing.T) {
			all, jobs, err := newWorld(t, 3, linksOf(3, l)).choose(t, func(_ int, j *Job) { j.Settings.Deterministic = true })
			if err != nil {
				t.Fatal(err)
			}
			for node, got := range all {
				if got.rates != assumed(10_000) || got.Chosen().Name != "leap" || got.Why() != all[0].Why() {
					t.Errorf("%s: node %d assumes %+v: %s", name, node, got.rates, got.Why())
				}
				if sent := jobs[node].Tally.Read().Bytes[peer.Control]; sent > 1<<16 {
					t.Errorf("%s: node %d sends %d bytes to choose", name, node, sent)
				}
			}
		})
	}
}

var leapDealing = Dealing{Name: "leap", Deal: leap.Deal, Asking: leap.Strategy.Asking}
