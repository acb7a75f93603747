package labels

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

const (
	shards = 6
	each   = 10 // vertices of a shard
	class  = 4
)

func label(v uint32) int32 { return int32(v*7) % class }

// mesh has three nodes own the shards in turn, with their labels and no others.
func mesh() (*loopback.Net, []*Source) {
	const nodes = 3
	net := loopback.New(nodes)
	l := peer.Layout{Nodes: nodes}
	for i := range shards {
		l.Owners, l.Firsts = append(l.Owners, i%nodes), append(l.Firsts, uint32(i*each))
	}
	l.Firsts = append(l.Firsts, shards*each)
	var all []*Source
	for self := range nodes {
		d := &dataset.Graph{About: dataset.About{Vertices: shards * each, Classes: class}}
		for i := range shards {
			s := &graph.Shard{Number: i, First: uint32(i * each), Vertices: each, Total: shards * each}
			if i%nodes == self && i%nodes != 2 { // the shards of the third node have no marks
				s.Marks = [][]graph.Mark{make([]graph.Mark, each)}
				s.Marks[0][2], s.Marks[0][3] = graph.Validation, graph.Test
			}
			for v := s.First; i%nodes == self && v < s.First+each; v++ {
				s.Labels = append(s.Labels, label(v))
			}
			if i == self {
				s.Labels[3] = graph.NoLabel
			}
			d.Shards = append(d.Shards, s)
		}
		s := Register(net.Node(self))
		s.Ready(d, peer.Work{Nodes: []string{"a", "b", "c"}, Self: self, Owners: l.Owners}, l)
		net.Node(self).Open()
		all = append(all, s)
	}
	return net, all
}

func TestLabelsComeFromTheirOwners(t *testing.T) {
	_, all := mesh()
	for _, vertices := range [][]uint32{nil, {5}, {59, 0, 11, 31, 21, 40, 12}, {10, 41, 11}} {
		for self, s := range all {
			var tally peer.Tally
			got, err := s.Append(t.Context(), []int32{9}, vertices, &tally)
			if err != nil {
				t.Fatal(err)
			}
			want, owners := []int32{9}, map[int]bool{}
			for _, v := range vertices {
				want = append(want, label(v))
				if owner := int(v) / each % 3; owner != self {
					owners[owner] = true
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v: %v, not %v", vertices, got, want)
			}
			if n := tally.Read().Requests[peer.Topology]; int(n) != len(owners) {
				t.Errorf("node %d: %d questions for labels of %d owners", self, n, len(owners))
			}
		}
	}
}

func TestQuestionsAreChecked(t *testing.T) {
	net, _ := mesh()
	for want, body := range map[string][]byte{
		"a question of 3 bytes":        {1, 2, 3},
		"there is no vertex 60":        {60, 0, 0, 0},
		"no vertex 4294967295":         {255, 255, 255, 255},
		"the label of vertex 0 is not": {10, 0, 0, 0, 0, 0, 0, 0},
		"label of vertex 13 is not":    {13, 0, 0, 0}, // it has none
	} {
		_, err := net.Node(0).Ask(t.Context(), 1, peer.Query{Service: peer.Labels, Body: body, Limit: 100}, nil)
		if !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
}

func TestWrongAnswers(t *testing.T) {
	for want, answer := range map[string][]byte{
		"node b is not usable: it has 3 bytes": {1, 2, 3},
		"it has the label 4 of 4 classes":      {4, 0, 0, 0},
		"it has the label -1 of 4 classes":     {255, 255, 255, 255},
	} {
		net, all := mesh()
		net.Node(1).Answer(peer.Labels, func(_ context.Context, _ int, _ peer.Query, reply func(parts ...[]byte) error) error {
			return reply(answer)
		})
		if _, err := all[0].Append(t.Context(), nil, []uint32{1, 12}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
	_, all := mesh()
	if got, err := all[0].AppendAny(t.Context(), nil, []uint32{13, 12, 3, 11}, nil); err != nil || !slices.Equal(got, []int32{graph.NoLabel, label(12), graph.NoLabel, label(11)}) {
		t.Error(got, err)
	}
	all[0].data.Shards[3].Labels = nil
	if got, err := all[0].AppendMarks(t.Context(), nil, []uint32{12, 3, 20, 0}, nil); err != nil || !slices.Equal(got, []int32{2, 3, 0, 0}) {
		t.Error(got, err)
	}
	if got, err := all[0].AppendAny(t.Context(), nil, []uint32{33}, nil); err != nil || got[0] != graph.NoLabel {
		t.Error(got, err)
	}
	if _, err := all[0].Append(t.Context(), nil, []uint32{33}, nil); err == nil || !strings.Contains(err.Error(), "this node's") {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 3, 0, 0, 0}, uint8(2), uint32(learnt))
	f.Add([]byte{4, 0, 0, 0}, uint8(1), uint32(learnt))
	f.Add([]byte{255, 255, 255, 255}, uint8(1), uint32(anyVertex))
	f.Add([]byte{4, 0, 0, 0}, uint8(1), uint32(marked))
	f.Fuzz(func(t *testing.T, answer []byte, n uint8, part uint32) {
		to, at := make([]int32, n), make([]int, n)
		for i := range at {
			at[i] = i
		}
		if err := read(to, at, answer, &dataset.About{Classes: class}, part); err != nil {
			return
		}
		for i, l := range to {
			if l < 0 && !(part == anyVertex && l == graph.NoLabel) || l >= class || uint32(l) != binary.LittleEndian.Uint32(answer[4*i:]) {
				t.Fatalf("label %d", l)
			}
		}
	})
}

// FuzzServer asks a node whatever a peer may ask. It refuses, or answers what read takes.
func FuzzServer(f *testing.F) {
	_, all := mesh()
	f.Add([]byte{10, 0, 0, 0, 11, 0, 0, 0}, uint32(0))
	f.Add([]byte{13, 0, 0, 0}, uint32(0))
	f.Add([]byte{60, 0, 0}, uint32(0))
	f.Add([]byte(nil), uint32(0))
	f.Fuzz(func(t *testing.T, body []byte, part uint32) {
		err := all[1].answer(t.Context(), 0, peer.Query{Service: peer.Labels, Part: part, Body: body}, func(parts ...[]byte) error {
			to, at := make([]int32, len(body)/4), make([]int, len(body)/4)
			for i := range at {
				at[i] = i
			}
			if err := read(to, at, slices.Concat(parts...), &dataset.About{Classes: class}, part); err != nil {
				return err
			}
			for i, l := range to {
				if v := binary.LittleEndian.Uint32(body[4*i:]); part != marked && l != label(v) && !(part == anyVertex && l == graph.NoLabel) {
					return fmt.Errorf("vertex %d has the label %d", v, l)
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, peer.ErrRefused) {
			t.Fatal(err)
		}
	})
}
