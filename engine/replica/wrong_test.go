package replica

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

func TestWhatPeersDoWrong(t *testing.T) {
	all := graphs(false)
	answer := func(sizes []byte, skeleton ...[]byte) peer.Handler {
		return func(_ context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
			if len(q.Body) == 1 {
				return reply(sizes)
			}
			return reply(skeleton...)
		}
	}
	sizes := func(s []*graph.Shard) []byte { return (&server{held: s}).sizes() }
	skeleton := func(s *graph.Shard, edges bool) [][]byte {
		parts, err := graph.NewSkeleton(s, graph.FeatureStats{}, edges).Parts()
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	seeded := func(s *graph.Shard, split int, edges bool) [][]byte {
		k := graph.NewSkeleton(s, graph.FeatureStats{}, edges)
		k.Bare(graph.SeedsOf(s, split))
		parts, err := k.Parts()
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	other, moved := graphs(false), graphs(false)
	other[1].Classes, moved[1].First = 4, 41
	related, described := graphs(false), graphs(false)
	related[1].Weights, related[1].Related = nil, &graph.Related{Count: 2, Of: make([]float32, len(related[1].Indices))}
	described[1].EdgeRows.Columns = 3
	training := graphs(false)[1] // in one of the splits only
	training.Labels[0], training.Marks[0][0], training.Marks[1][0] = 1, graph.Train, graph.Test
	for _, c := range []struct {
		want     string
		topology string
		h        peer.Handler
	}{
		{"the answer of node b is not usable", auto, answer(make([]byte, record+1))},
		{"the answer of node b is not usable", auto, answer(append([]byte{8}, make([]byte, record-1)...))},
		{"node b owns shard 1 and does not have it", auto, answer(nil)},
		{"shard 1 of node b: read a shard's skeleton", auto, answer(sizes(all), nil)},
		{"shard 1 of node b: what came is shard 4 of 8", auto, answer(sizes(all), seeded(all[4], 0, true)...)},
		{"shard 1 of node b: what came has edges", sharded, answer(sizes(all), seeded(all[1], 0, true)...)},
		{"shard 1 of node b: what came has edges", replicated, answer(sizes(all), seeded(all[1], 0, false)...)},
		{"shard 1 of node b: what came has labels", replicated, answer(sizes(all), skeleton(all[1], true)...)},
		{"has other training vertices than it counts", replicated, answer(sizes(all), seeded(training, 1, true)...)},
		{"shard 1, of node b, is not of the same graph", replicated, answer(sizes(all), seeded(other[1], 0, true)...)},
		{"shard 1, of node b, is not of the same graph", replicated, answer(sizes(all), seeded(moved[1], 0, true)...)},
		{"shard 1, of node b, is not of the same graph", replicated, answer(sizes(related), seeded(related[1], 0, true)...)},
		{"shard 1, of node b, is not of the same graph", sharded, answer(sizes(related), seeded(related[1], 0, false)...)},
		{"shard 1, of node b, is not of the same graph", sharded, answer(sizes(described), seeded(described[1], 0, false)...)},
	} {
		net, works, here := mesh(2, all, []int{0, 1, 0, 0, 0, 0, 0, 0})
		net.Node(1).Answer(peer.Skeletons, c.h)
		cache := &Cache{}
		_, err := Bring(t.Context(), net.Node(0), works[0], here[0], Options{Bare: true, Topology: c.topology, Cache: cache})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, and %q was expected", err, c.want)
		}
		if len(cache.of) > 0 {
			t.Error("what was refused is kept")
		}
	}
}

// TestShardsTooLargeToSend has an owner claim very many edges.
func TestShardsTooLargeToSend(t *testing.T) {
	b := &bringing{far: map[int][]int{1: {1}}}
	for edges, want := range map[int64]bool{1<<30 - 1100: true, 1 << 30: false} {
		b.sizes = map[int]graph.SkeletonSize{1: {Vertices: 1, Edges: edges}}
		if b.o.Topology = auto; b.decide() != nil || b.edges != want {
			t.Errorf("%d edges are brought: %v", edges, b.edges)
		}
		b.o.Topology = replicated
		if err := b.decide(); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "more shards") {
			t.Errorf("%d edges: %v", edges, err)
		}
	}
}

func TestQuestionsAreChecked(t *testing.T) {
	net, _, _ := mesh(2, graphs(false), []int{0, 1, 0, 0, 0, 0, 0, 0})
	for _, c := range []struct {
		want string
		part uint32
		body []byte
	}{
		{"", 1, question(wanted{edges: true})},
		{"", 1, question(wanted{labels: true, split: 1})},
		{"does not know", 1, nil},
		{"does not know", 1, []byte{askSkeleton}},
		{"does not know", 1, []byte{2, 0, 0, 0, 0}},
		{"does not know", 1, []byte{askSkeleton, 2, 0, 0, 0}},
		{"does not know", 1, []byte{askSkeleton, 0, 2, 0, 0}},
		{"does not know", 1, []byte{askSkeleton, 0, 0, 0, 0, 0, 0}},
		{"shard 0 is not held here", 0, question(wanted{edges: true})},
		{"shard 8 is not held here", 8, question(wanted{edges: true})},
		{"shard 4294967295 is not held here", 1<<32 - 1, question(wanted{edges: true})},
	} {
		_, err := net.Node(0).Ask(t.Context(), 1, peer.Query{Service: peer.Skeletons, Part: c.part, Body: c.body, Limit: 1 << 20}, nil)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, and %q was expected", err, c.want)
		}
	}
}

func TestWorkThatDoesNotFit(t *testing.T) {
	net, works, here := mesh(2, graphs(false), []int{0, 1, 0, 0, 0, 0, 0, 0})
	for want, change := range map[string]func(w *peer.Work, held []*graph.Shard) []*graph.Shard{
		"7 shards are listed":               func(_ *peer.Work, held []*graph.Shard) []*graph.Shard { return held[:7] },
		"shard 2 is this node's and is not": func(_ *peer.Work, held []*graph.Shard) []*graph.Shard { held[2] = nil; return held },
		"shard 1 is node 2's, of 2":         func(w *peer.Work, held []*graph.Shard) []*graph.Shard { w.Owners[1] = 2; return held },
		"shard 3, of node a":                func(_ *peer.Work, held []*graph.Shard) []*graph.Shard { held[3] = held[2]; return held },
	} {
		w := works[0]
		w.Owners = slices.Clone(w.Owners)
		if _, err := Bring(t.Context(), net.Node(0), w, change(&w, slices.Clone(here[0])), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
}

func TestSizesAreChecked(t *testing.T) {
	size := func(numbers ...uint32) (b []byte) {
		for _, n := range numbers {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
		return b
	}
	if got, err := readSizes(size(7, graph.MaxSplits, graph.MaxVertices, 3, 0, 1<<16, graph.MaxTypesBytes), 8); err != nil || got[7] != (graph.SkeletonSize{Vertices: graph.MaxVertices, Edges: mostEdges, Splits: graph.MaxSplits, Labels: true, Weighted: true, Types: graph.MaxTypesBytes}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, b := range [][]byte{
		size(8, 0, 0, 0, 0, 0, 0), size(0, graph.MaxSplits+1, 0, 0, 0, 0, 0), size(0, 0, 1<<31, 0, 0, 0, 0), size(0, 0, 0, 4, 0, 0, 0), size(0, 0, 0, 0, 1, 1<<16, 0),
		size(0, 0, 0, 0, 0, 0, graph.MaxTypesBytes+1), size(0, 0, 0, edgeRow*edgeBytes, 1, 1<<15, 0),
	} {
		if _, err := readSizes(b, 8); err == nil || !strings.Contains(err.Error(), "can't have") {
			t.Errorf("%v: %v", b, err)
		}
	}
}

func FuzzReadSizes(f *testing.F) {
	f.Add((&server{held: graphs(true)}).sizes(), uint16(8))
	f.Add(make([]byte, record), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, shards uint16) {
		sizes, err := readSizes(b, int(shards))
		if err != nil {
			return
		}
		for i, z := range sizes {
			if i < 0 || i >= int(shards) || z.Size(true, true) <= 0 || z.Size(false, false) <= 0 || z.Size(true, true) > 1<<53 {
				t.Fatalf("shard %d has %+v", i, z)
			}
		}
	})
}

// FuzzQuestion has a node read whatever a peer may ask.
func FuzzQuestion(f *testing.F) {
	f.Add(uint32(1), question(wanted{edges: true}))
	f.Add(uint32(0), question(wanted{labels: true, split: 1}))
	f.Add(uint32(9), []byte{askSkeleton, 0, 0, 0, 0})
	f.Add(uint32(1), []byte{askSkeleton})
	s := &server{held: graphs(true)}
	s.held[0] = nil
	f.Fuzz(func(t *testing.T, part uint32, body []byte) {
		shard, want, err := s.read(peer.Query{Part: part, Body: body})
		if err == nil && (shard != s.held[part] || !bytes.Equal(question(want), body)) {
			t.Fatalf("%v is read as one of shard %d for %+v", body, part, want)
		}
	})
}
