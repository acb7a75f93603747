package grappa_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/strategy/leap"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Between switches only gradients travel, and what nodes must say to each other: as much
// as where whole gradients are all that a strategy adds up, however wide features are.
func TestOnlyGradientsTravelBetweenSwitches(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for _, loader := range []string{grappa.Strict, grappa.Halo} {
		for _, full := range []bool{false, true} {
			r := traintest.Small("sage")
			r.Batch, r.EvalEvery = 150, 1<<20
			if full {
				r.Batch, r.Fanouts = 0, nil
			}
			r.Epochs = 4
			r.Sharing.Strategy = leap.Name
			_, all := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
			gradient := all[0][1].Sent.Bytes[peer.Gradient]
			r.Sharing = apart("loader="+loader, "period=2", "swept=1")
			_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, isolation(train.Options{Threads: 1}))
			for i, e := range reports[0] {
				for kind, bytes := range e.Sent.Bytes {
					switch k := peer.Kind(kind); {
					case k == peer.Topology && i == 0: // labels, at the start
					case k == peer.Control, k == peer.Gradient && bytes == gradient, k == peer.Shard && (bytes > 0) == (i%2 == 0):
					case bytes != 0:
						t.Errorf("%s, full %v: epoch %d sends %d bytes of %s", loader, full, e.Epoch, bytes, k)
					}
				}
				if e.Sent.Bytes[peer.Gradient] != gradient || e.Sent.Bytes[peer.Shard] == 0 && i%2 == 0 || e.Rows.Remote != 0 {
					t.Errorf("%s, full %v: %+v", loader, full, e)
				}
			}
		}
	}
}

// What would ask for anything else in an epoch is refused, and ends the run.
func TestNothingElseIsCarriedInAnEpoch(t *testing.T) {
	shards := traintest.Communities(t, 900)
	r := traintest.Short("sage")
	r.Sharing = apart()
	all := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).Start(t, r, shards, isolation(train.Options{Threads: 1}))
	s := all[0].Run.Session
	traintest.IsolatedOf(all[0]).BeginSteps(1, 0)
	for kind := range peer.Kinds {
		_, err := s.Peers.Ask(t.Context(), 1, peer.Query{Service: peer.Checkpoint, Kind: kind, Part: session.AskLeave}, nil)
		if free := kind == peer.Gradient || kind == peer.Control || kind == peer.Shard; free != (err == nil) || err != nil && !errors.Is(err, peer.ErrRefused) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	traintest.IsolatedOf(all[0]).EndSteps()
	if _, err := s.Peers.Ask(t.Context(), 1, peer.Query{Service: peer.Checkpoint, Kind: peer.Activation, Part: session.AskLeave}, nil); err != nil {
		t.Error(err)
	}
	// A vertex that the group was not given is asked of nobody.
	n, slot := traintest.IsolatedOf(all[0]), all[0].Run.Batches.Slots[0]
	if err := all[0].Run.Batches.Fill(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	slot.Groups = slot.Groups[:1]
	c := n.Of(slot.Groups[0].Roots)
	for v := range shards[0].Total {
		if slot.Sets = [][]uint32{{v}}; !c.Has(v) {
			if _, _, err := n.Find(t.Context(), slot, 1); err == nil || !strings.Contains(err.Error(), "has not been given") {
				t.Errorf("vertex %d: %v", v, err)
			}
		}
	}
}

// A switch brings what the formula says: of each node, edges and rows of what its groups
// come to see and it does not have.
func TestASwitchBringsWhatChanged(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for _, loader := range []string{grappa.Strict, grappa.Halo} {
		for _, prefetch := range []string{strategy.On, strategy.Off} {
			r := traintest.Small("sage")
			r.Batch, r.EvalEvery, r.Epochs = 0, 1<<20, 6
			r.Sharing = apart("loader="+loader, "period=2", "swept=1", "cache=off", "prefetch="+prefetch)
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			_, reports := m.MustRun(t, r, shards, isolation(train.Options{Threads: 1}))
			want := bringing(t, m, shards, &r)
			for super := 1; super < 3; super++ {
				if got := reports[1][2*super].Sent.Bytes[peer.Shard]; got != want[super] {
					t.Errorf("%s, prefetch %s: super-epoch %d brings %d bytes in place of %d", loader, prefetch, super, got, want[super])
				}
			}
		}
	}
}

// bringing is how many bytes of shards all nodes together bring for each super-epoch, by
// the shards.
func bringing(t *testing.T, m *traintest.Mesh, shards []*graph.Shard, r *recipe.Recipe) (bytes [3]uint64) {
	t.Helper()
	g := grappa.Of(&r.Sharing)
	schedule, err := grappa.NewSchedule(len(shards), &g, r.Seed)
	if err != nil {
		t.Fatal(err)
	}
	l := peer.Layout{Nodes: len(m.Names), Owners: m.Owners, Firsts: dataset.Firsts(shards)}
	const framing = peer.QueryFraming + peer.AnswerFraming
	for node := range m.Names {
		edges, rows := map[uint32]bool{}, map[uint32]bool{} // that the node has of others
		lacking := map[int]bool{}
		var before []bool
		for super := range bytes {
			nowEdges, nowRows := map[uint32]bool{}, map[uint32]bool{}
			loaded := make([]bool, len(shards)) // by any group of the node
			for group := range schedule.Groups() {
				if grappa.NodeOf(&l, schedule, group) != node {
					continue
				}
				has := make([]bool, len(shards))
				first, end := schedule.Base(group)
				for shard := first; shard < end; shard++ {
					has[shard] = true
					lacking[shard] = true
				}
				for _, shard := range schedule.Swept(group, super) {
					has[shard] = true
				}
				for i, s := range shards {
					if !has[i] {
						continue
					}
					loaded[i] = true
					for row := range s.Vertices {
						v := s.First + uint32(row)
						nowRows[v], nowEdges[v] = true, true
						for _, u := range s.Indices[s.Indptr[row]:s.Indptr[row+1]] {
							if loaderHas := has[l.Shard(uint32(u))]; loaderHas || g.Loader != grappa.Strict {
								nowRows[uint32(u)] = true
							}
						}
					}
				}
			}
			asked := map[int]int{} // runs of vertices whose edges are asked of each node
			fromRows := map[int]bool{}
			ranges := 0
			for i := range loaded {
				if loaded[i] && (i == 0 || !loaded[i-1]) {
					ranges++
				}
			}
			last := map[int]uint32{}
			for v := range shards[0].Total {
				owner, shard := l.Owner(v), l.Shard(v)
				s := shards[shard]
				row := v - s.First
				again := edges[v] && (g.Loader != grappa.Strict || slices.Equal(loaded, before)) || lacking[shard]
				if nowEdges[v] && owner != node && !again {
					bytes[super] += 8
					for _, u := range s.Indices[s.Indptr[row]:s.Indptr[row+1]] {
						if g.Loader != grappa.Strict || loaded[l.Shard(uint32(u))] || uint32(u) == v {
							bytes[super] += 4
						}
					}
					if asked[owner] == 0 || last[owner]+1 != v {
						asked[owner]++
					}
					last[owner] = v
				}
				if nowRows[v] && owner != node && !rows[v] {
					bytes[super] += 4 + 4*uint64(s.Features)
					fromRows[owner] = true
				}
			}
			for _, runs := range asked {
				bytes[super] += framing + 8 + 4 + 8*uint64(runs)
				if g.Loader == grappa.Strict {
					bytes[super] += 8 * uint64(ranges)
				}
			}
			bytes[super] += framing * uint64(len(fromRows))
			edges, rows, before = nowEdges, nowRows, loaded
		}
	}
	return bytes
}

// What a fault has kept from being brought ahead is brought at the switch.
func TestWhatCouldNotBeBroughtAheadIsBroughtAgain(t *testing.T) {
	r := traintest.Small("sage")
	r.Epochs, r.EvalEvery = 3, 1<<20
	r.Sharing = apart("period=1", "swept=1")
	m := traintest.NewMesh(2, []int{0, 0, 0, 1, 1})
	dir := t.TempDir()
	all := m.Start(t, r, traintest.Communities(t, 900), isolation(train.Options{Threads: 1, Dir: dir}))
	var faults atomic.Int64
	m.Net.Trouble = func(_ context.Context, from, _ int, q peer.Query) error {
		if q.Kind == peer.Shard && from == 0 && faults.Add(1) == 1 {
			var none []int
			_ = none[faults.Load()]
		}
		return nil
	}
	if err := m.Each(func(node int) error {
		run := all[node].Run
		return errors.Join(run.Epoch(t.Context()), run.Epoch(t.Context()), run.Epoch(t.Context()))
	}); err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		l.Run.Close()
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil && strings.Contains(string(maps), dir) {
		t.Errorf("mapped are still:\n%s", maps)
	}
	if faults.Load() < 2 || traintest.IsolatedOf(all[0]).Now.Super != 2 {
		t.Errorf("after %d questions node 0 is in super-epoch %d", faults.Load(), traintest.IsolatedOf(all[0]).Now.Super)
	}
}

// What is brought ahead is brought while steps are done, and not waited for at the switch.
func TestWhatComesNextIsBroughtMeanwhile(t *testing.T) {
	shards := traintest.Communities(t, 900)
	hash := ""
	for _, prefetch := range []string{strategy.Off, strategy.On} {
		r := traintest.Small("sage")
		r.Epochs, r.EvalEvery = 2, 1<<20
		r.Sharing = apart("period=1", "swept=1", "prefetch="+prefetch)
		m := traintest.NewMesh(2, []int{0, 0, 0, 1, 1})
		all := m.Start(t, r, shards, isolation(train.Options{Threads: 1}))
		var ahead [2]int
		err := m.Each(func(node int) error {
			l := all[node]
			if err := l.Run.Epoch(t.Context()); err != nil {
				return err
			}
			if n := traintest.IsolatedOf(l); n.Next != nil {
				<-n.Next.Done
				ahead[node] = int(n.Next.View.Sent.Read().Requests[peer.Shard])
			}
			return l.Run.Epoch(t.Context())
		})
		if err != nil {
			t.Fatal(err)
		}
		for node, l := range all {
			if traintest.IsolatedOf(l).Now.Super != 1 {
				t.Errorf("prefetch %s: node %d is in super-epoch %d", prefetch, node, traintest.IsolatedOf(l).Now.Super)
			}
		}
		if (ahead[0]+ahead[1] == 0) != (prefetch == strategy.Off) {
			t.Errorf("prefetch %s: %d questions were asked ahead", prefetch, ahead)
		}
		got := all[0].History[1].Hash
		if hash != "" && hash != got {
			t.Error("bringing ahead changes weights")
		}
		hash = got
	}
}

// errCut is what happens to questions.
var errCut = errors.New("the cable is cut")
