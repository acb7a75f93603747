// Package link is what link prediction adds to a graph: it splits the edges, draws negatives,
// lays out the pairs of a step, decodes pairs of embeddings, and scores them. See DESIGN.md.
package link

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Spec is what a recipe says of links.
type Spec struct {
	// Split is the shares of all pairs that are for training, validation and test.
	Split     [3]float64 `json:"split"`
	Width     int        `json:"width"`     // columns of the embedding of a vertex
	Negatives int        `json:"negatives"` // drawn for each pair of a step
	Decoder   string     `json:"decoder"`   // one of Decoders
	// From is where negatives come from, one of Froms; empty: the first.
	From string `json:"negatives_from,omitempty"`
	// Margin is how far the loss margin wants a pair to be ahead of a negative; 0: 1.
	Margin float64 `json:"margin,omitempty"`
	// Ranks is among how many drawn vertices evaluations rank a pair, or All, Given or GivenOfSource; 0:
	// they don't.
	Ranks int `json:"ranks,omitempty"`
	// Hits are the ranks up to which a pair is a hit, ascending; none: UsualHits.
	Hits []int `json:"hits,omitempty"`
	// Relations is how many relations triples have; 0: pairs have none. Given is how many pairs each
	// part of a given split has, and Split their shares; nil: it is drawn. That of triples is given.
	Relations int        `json:"relations,omitempty"`
	Given     *[3]uint64 `json:"given,omitempty"`
	// Relation is the one that is learnt in a graph with types; nil: the edges of all are pairs.
	Relation *Relation `json:"relation,omitempty"`
}

// Default returns the Spec of a recipe that says nothing.
func Default() *Spec {
	return &Spec{Split: [3]float64{0.85, 0.05, 0.1}, Width: 32, Negatives: 1, Decoder: Decoders[0]}
}

// Most bounds the numbers of a Spec.
const (
	MostWidth     = 1 << 12
	MostNegatives = 1 << 10
	MostRanks     = 1 << 20
)

// Check returns an error, which names the setting, unless the numbers can be used.
func (s *Spec) Check() error {
	sum := 0.0
	for _, share := range s.Split {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("{edge-split} has a share of %g: give three shares from 0 to 1, such as 0.85,0.05,0.1", share)
		}
		sum += share
	}
	switch {
	case math.Abs(sum-1) > 1e-6:
		return fmt.Errorf("{edge-split} has shares of %.4g in all: give three shares that add up to 1, such as 0.85,0.05,0.1", sum)
	case s.Split[0] == 0:
		return errors.New("{edge-split} leaves no edges for training: give a first share above 0, such as 0.85,0.05,0.1")
	case s.Width < 1 || s.Width > MostWidth:
		return fmt.Errorf("{link.width} is %d: give 1 to %d columns", s.Width, MostWidth)
	case s.Negatives < 1 || s.Negatives > MostNegatives:
		return fmt.Errorf("{link.negatives} is %d: give 1 to %d", s.Negatives, MostNegatives)
	case !slices.Contains(Decoders, s.Decoder):
		return fmt.Errorf("{link.decoder} is %q: it is one of %v", s.Decoder, Decoders)
	case s.From != "" && !slices.Contains(Froms, s.From):
		return fmt.Errorf("{link.negatives} come from %q: give one of %v", s.From, Froms)
	case !(s.Margin >= 0) || math.IsInf(s.Margin, 1):
		return fmt.Errorf("{link.margin} is %g: give a number above 0, such as %d", s.Margin, usualMargin)
	case s.Relations < 0 || s.Relations > graph.MaxRelations || s.Relations > 0 && s.Given == nil:
		return fmt.Errorf("pairs have %d relations, and there may be 0 to %d with a given split", s.Relations, graph.MaxRelations)
	case s.Relations > 0 && s.From != "" && s.From != Uniform:
		return fmt.Errorf("{link.negatives} come from %q, and those of triples replace heads and tails by any vertices: leave %s out", s.From, s.From)
	case s.Relations > 0 && s.Decoder == mlpDecoder.name:
		return fmt.Errorf("{link.decoder} is %s, which knows no relations, and the dataset has triples: choose %s", s.Decoder, distMultDecoder.name)
	case (s.Ranks == Given || s.Ranks == GivenOfSource) && !s.Divided():
		return errors.New("{link.ranks} is for pairs that a dataset has to compare its edges of validation and test with, and this one has none: give all, 0, or a number of vertices")
	case s.Ranks < GivenOfSource || s.Ranks > MostRanks:
		return fmt.Errorf("{link.ranks} is %d: give all, 0, or up to %d vertices", s.Ranks, MostRanks)
	}
	if err := s.checkHits(); err != nil {
		return err
	}
	return s.Relation.check(s)
}

// A Pair is an edge that is learnt or scored. Where the graph has the edge in both directions,
// one of them stands for both. Of a triple, Source is the head and Target the tail; else Relation
// is 0.
type Pair struct{ Source, Target, Relation uint32 }

// pairBytes is how much memory a Pair takes.
const pairBytes = 12

// Pairs are the pairs of a graph, each in a part of the split. They are the same on all nodes,
// since they depend on the edges and the seed alone. They are safe for concurrent use.
type Pairs struct {
	Spec
	// Of are the pairs of each part, by target, then by source.
	Of [graph.Test + 1][]Pair

	// Against are the pairs that those of validation and test are compared with, by source, then by
	// target, if the dataset has some.
	Against [graph.Test + 1][]Pair

	whole     *sample.Topology // all edges, with relations for weights where they have some
	known     known            // of triples
	targets   []uint32         // at which edges of Relation end, ascending; nil without a Relation
	split     keyed.Key
	negatives keyed.Key
}

// lookEvery is how many vertices are looked at before New sees whether it is to end.
const lookEvery = 1 << 16

// New finds the pairs of a graph, all of whose edges must be here.
func New(ctx context.Context, s *Spec, seed uint64, whole *sample.Topology) (*Pairs, error) {
	p := &Pairs{Spec: *s, whole: whole, split: keyed.New(seed, keyed.Split), negatives: keyed.New(seed, keyed.Negative)}
	switch relates := whole.Relates(); {
	case s.Relations > 0 && !relates:
		return nil, errors.New("the edges of the dataset have no relations, and the recipe learns triples: choose a dataset of the format triples")
	case s.Relation != nil && !relates:
		return nil, fmt.Errorf("the edges of the dataset have no relations, and the recipe learns %s: choose a dataset with types", s.Relation.Name)
	case s.Divided() && !relates:
		return nil, errors.New("the edges of the dataset have no split of their own, and the recipe learns those of a given one: choose the dataset that it was made for")
	case s.Given != nil || s.Relation != nil:
		p.whole = whole.Relational()
	}
	for v := range whole.Vertices() {
		if v%lookEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !whole.Near(uint32(v)) {
			return nil, fmt.Errorf("the edges of vertex %d are on another node: links are learnt where each node has all edges, so allow more memory with {agent.memory}", v)
		}
		sources, numbers := p.whole.Row(v)
		if s.Relations > 0 {
			p.triples(sources, numbers, uint32(v))
			continue
		}
		if s.Divided() {
			p.divided(sources, numbers, uint32(v))
			continue
		}
		if s.Relation != nil {
			p.related(sources, numbers, uint32(v))
			continue
		}
		for i, u := range sources {
			if int(u) == v || i > 0 && sources[i-1] == u {
				continue
			}
			p.add(Pair{Source: uint32(u), Target: uint32(v)})
		}
	}
	if n := len(p.Of[graph.Train]); n > math.MaxUint32 {
		return nil, fmt.Errorf("the graph has %d pairs for training, and a job can learn from %d: give a smaller first share to {edge-split}", n, uint32(math.MaxUint32))
	}
	if s.Divided() {
		return p, p.compared()
	}
	if s.Relations > 0 {
		return p, p.index(ctx)
	}
	return p, nil
}

// related adds the edges of the relation that end at a vertex to their parts.
func (p *Pairs) related(sources []int32, numbers []float32, target uint32) {
	found := false
	for i, u := range sources {
		if int(numbers[i]) == p.Relation.Number && uint32(u) != target {
			found = true
			p.add(Pair{Source: uint32(u), Target: target})
		}
	}
	if found {
		p.targets = append(p.targets, target)
	}
}

// add adds a pair to its part, unless the other direction stands for both.
func (p *Pairs) add(of Pair) {
	if part, leads := p.draw(of.Source, of.Target); leads || !p.edge(of.Target, of.Source) {
		p.Of[part] = append(p.Of[part], of)
	}
}

// draw returns the part of the split that a pair is in, whichever of its vertices comes first,
// and whether the direction from source to target stands for both if there are two.
func (p *Pairs) draw(source, target uint32) (part graph.Mark, leads bool) {
	draws := p.split.With(uint64(min(source, target))).With(uint64(max(source, target))).Draws()
	part = graph.Train
	for at := draws.Float64(); part < graph.Test && at >= p.Split[part-graph.Train]; part++ {
		at -= p.Split[part-graph.Train]
	}
	for part > graph.Train && p.Split[part-graph.Train] == 0 {
		part-- // shares may add up to a little less than 1
	}
	return part, (draws.Next()&1 == 0) == (source < target)
}

// edge reports whether the graph has an edge, of the relation that is learnt if there is one.
func (p *Pairs) edge(source, target uint32) bool {
	sources, numbers := p.whole.Row(int(target))
	i, has := slices.BinarySearch(sources, int32(source))
	if p.Relation == nil && !p.Divided() {
		return has
	}
	for ; i < len(sources) && sources[i] == int32(source); i++ {
		if p.isEdge(int(numbers[i])) {
			return true
		}
	}
	return false
}

// Hidden reports whether messages must not pass along an edge, which has this number if the graph
// has relations, in either direction: it is for validation or test. Those of a given split have left the
// topology that runs read before.
func (p *Pairs) Hidden(target, source uint32, number int) bool {
	if p.Given != nil || p.Relation != nil && !p.Relation.has(number) {
		return false
	}
	return p.held(target, source)
}

// held reports whether the pair of two vertices is for validation or test.
func (p *Pairs) held(a, b uint32) bool {
	if p.Divided() {
		return p.heldOut(a, b)
	}
	part, _ := p.draw(a, b)
	return part != graph.Train && a != b
}

// Bytes returns about how much memory the pairs take, and what a run keeps for them: the order
// of an epoch is not counted.
func (p *Pairs) Bytes() (bytes uint64) {
	for _, of := range p.Of {
		bytes += pairBytes * uint64(cap(of))
	}
	for _, of := range p.Against {
		bytes += pairBytes * uint64(cap(of))
	}
	return bytes + p.known.bytes() + 4*uint64(cap(p.targets))
}
