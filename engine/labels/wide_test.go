package labels

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

const columns = 3

func cellOf(v uint32, c int) float32 {
	if (int(v)+c)%4 == 0 {
		return float32(math.NaN())
	}
	return float32(v) + float32(c)/4
}

func wordsOf(v uint32) (words []int32) {
	for c := range columns {
		word := graph.NoLabel
		if x := cellOf(v, c); x == x {
			word = int32(math.Float32bits(x))
		}
		words = append(words, word)
	}
	return words
}

// wideMesh is mesh with numbers in columns.
func wideMesh() (*loopback.Net, []*Source) {
	net, all := mesh()
	for self, s := range all {
		s.data.About = dataset.About{Vertices: shards * each, Classes: columns, Targets: graph.Numbers}
		for i, of := range s.data.Shards {
			of.Targets, of.Classes = graph.Numbers, columns
			for v := of.First; i%3 == self && v < of.First+each; v++ {
				for c := range columns {
					of.Numbers = append(of.Numbers, cellOf(v, c))
				}
			}
			if i == self {
				copy(of.Numbers[3*columns:], []float32{float32(math.NaN()), float32(math.NaN()), float32(math.NaN())})
			}
		}
	}
	return net, all
}

func TestRowsComeFromTheirOwners(t *testing.T) {
	net, all := wideMesh()
	for _, vertices := range [][]uint32{nil, {5}, {59, 0, 11, 31, 21, 40, 12}, {10, 41, 11}} {
		want := []int32{9}
		for _, v := range vertices {
			want = append(want, wordsOf(v)...)
		}
		for self, s := range all {
			got, err := s.Append(t.Context(), []int32{9}, vertices, nil)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("node %d, %v: %v, not %v (%v)", self, vertices, got, want, err)
			}
		}
	}
	_, err := net.Node(0).Ask(t.Context(), 1, peer.Query{Service: peer.Labels, Body: []byte{13, 0, 0, 0}, Limit: 100}, nil)
	if !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), "label of vertex 13 is not") {
		t.Errorf("a row without a target: %v", err)
	}
}

func TestWrongRows(t *testing.T) {
	nan, inf := math.Float32bits(float32(math.NaN())), math.Float32bits(float32(math.Inf(1)))
	row := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
		}
		return b
	}
	for want, answer := range map[string][]byte{
		"it has 4 bytes where 1 labels take 12": row(1),
		"the target NaN, which is no number":    row(0, nan, 0),
		"the target +Inf, which is no number":   row(0, 0, inf),
	} {
		net, all := wideMesh()
		net.Node(1).Answer(peer.Labels, func(_ context.Context, _ int, _ peer.Query, reply func(parts ...[]byte) error) error {
			return reply(answer)
		})
		if _, err := all[0].Append(t.Context(), nil, []uint32{1, 12}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q was expected", err, want)
		}
	}
	if err := check(math.Float32bits(0.5), &dataset.About{Targets: graph.YesOrNo, Classes: 1}, learnt); err == nil {
		t.Error("half a yes is taken")
	}
	if most(4*graph.MaxTargets)*4*graph.MaxTargets > mostBytes {
		t.Error("an answer is larger than its bound")
	}
}
