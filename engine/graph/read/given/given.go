// Package given gives the edges of a graph a split that comes beside it: in files, or in arrays of
// an archive, that list the edges of validation and test and, if there are some, pairs to compare
// these with. The graph's own edges are those for training.
//
// It reads no format: whoever does says how pairs are read.
package given

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// names are what files, without their endings, or arrays are called that hold pairs of a part.
var names = map[string]Place{
	"edges_valid":     {graph.Validation, false},
	"edges_val":       {graph.Validation, false},
	"edges_test":      {graph.Test, false},
	"negatives_valid": {graph.Validation, true},
	"negatives_val":   {graph.Validation, true},
	"negatives_test":  {graph.Test, true},
}

// A Place says which pairs are meant: those of a part of the split that are edges, or that are to be
// compared with these.
type Place struct {
	Part     graph.Mark
	Negative bool
}

// PlaceOf returns the pairs that are called so, if some are.
func PlaceOf(name string) (p Place, ok bool) {
	p, ok = names[strings.ToLower(name)]
	return p, ok
}

// Pairs are some of the pairs of a split.
type Pairs struct {
	Place
	Name string // of the file or array, for sentences
	Read func(ctx context.Context, yield func(graph.EdgeBatch) error) error
}

// pair is one of a part.
type pair struct{ source, target uint32 }

func compare(a, b pair) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.target, b.target))
}

const pairBytes, keyBytes = 8, 8

// A Graph is a source with a split of its edges.
type Graph struct {
	graph.Source
	meta     graph.Meta
	bare     bool // the source has no features
	mirrored bool
	train    uint64                    // edges of the source that stay
	loops    uint64                    // of these, from a vertex to itself
	held     [graph.Test + 1][2][]pair // sorted, none twice
	keys     []uint64                  // of edges of validation and test, in either direction, ascending
	memory   source.Memory
	notes    []string
}

// Of returns a source with a split. The caller closes src if that fails.
func Of(ctx context.Context, src graph.Source, split []Pairs, o source.Options) (*Graph, error) {
	g := &Graph{Source: src, meta: src.Meta(), memory: source.Memory{Limit: o.Memory}, notes: slices.Clone(src.Notes())}
	err := g.open(ctx, split)
	if errors.Is(err, source.ErrMemory) {
		err = fmt.Errorf("the edges of validation and test, and what these are compared with, do not fit in %s of memory: raise {dataset.memory}", source.Size(o.Memory))
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Graph) open(ctx context.Context, split []Pairs) error {
	switch {
	case g.meta.Types != nil:
		return fmt.Errorf("%s holds edges of a given split, and the graph has types, whose edges have none: leave it out", split[0].Name)
	case g.meta.EdgeFeatures > 0:
		return fmt.Errorf("%s holds edges of a given split, which have no features: leave it out, or {dataset.edge_features}", split[0].Name)
	}
	if err := g.check(split); err != nil {
		return err
	}
	if err := g.memory.Grow(0, heldBy(g.Source)); err != nil {
		return err
	}
	for _, of := range split {
		if err := g.read(ctx, of); err != nil {
			return err
		}
	}
	if err := g.index(); err != nil {
		return err
	}
	if err := g.count(ctx); err != nil {
		return err
	}
	g.describe()
	return nil
}

// heldBy returns what a source holds of its vertices in memory, which it may have used all of.
func heldBy(s graph.Source) uint64 {
	targets, ids := s.Targets(), s.IDs()
	held := 4*len(s.Labels()) + len(targets.YesOrNo) + 4*len(targets.Numbers) + 8*len(ids.Ints)
	for _, marks := range s.Splits() {
		held += len(marks)
	}
	if ids.Strings != nil {
		held += len(ids.Strings.Bytes) + 8*len(ids.Strings.Offsets)
	}
	return uint64(held)
}

// check returns an error unless each part that has pairs to compare with has edges, and either all
// parts with edges have such pairs, or none.
func (g *Graph) check(split []Pairs) error {
	var has [graph.Test + 1][2]string
	for _, of := range split {
		to := &has[of.Part][side(of.Negative)]
		if *to != "" {
			return fmt.Errorf("%s and %s are both there, and mean the same: leave one of them", *to, of.Name)
		}
		*to = of.Name
	}
	val, test := has[graph.Validation], has[graph.Test]
	for i, of := range [...][2]string{val, test} {
		part := [...]string{"valid", "test"}[i]
		switch {
		case of[0] == "" && of[1] != "":
			return fmt.Errorf("%s is there, and no edges_%s that are compared with its pairs: add them, or leave it out", of[1], part)
		case of[0] != "" && of[1] == "" && val[1]+test[1] != "":
			return fmt.Errorf("%s is there, and %s has nothing to compare with: add negatives_%s, or leave the other one out", val[1]+test[1], of[0], part)
		}
	}
	return nil
}

func side(negative bool) int {
	if negative {
		return 1
	}
	return 0
}

// read holds the pairs of a place.
func (g *Graph) read(ctx context.Context, of Pairs) error {
	to, loops, weighted := &g.held[of.Part][side(of.Negative)], 0, false
	err := of.Read(ctx, func(b graph.EdgeBatch) (err error) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if *to, err = source.Enlarge(&g.memory, *to, len(b.Src), pairBytes); err != nil {
			return err
		}
		weighted = weighted || b.Weights != nil
		for i, src := range b.Src {
			if src == b.Dst[i] {
				loops++
				continue
			}
			*to = append(*to, pair{src, b.Dst[i]})
		}
		return nil
	})
	if err == nil && len(*to) == 0 {
		err = fmt.Errorf("%s holds no pairs of two vertices: leave it out", of.Name)
	}
	slices.SortFunc(*to, compare)
	if all := len(*to); err == nil {
		if *to = slices.Compact(*to); len(*to) < all {
			g.note("%s: %d pairs stand there more than once, and count once.", of.Name, all-len(*to))
		}
	}
	if weighted {
		g.note("%s: weights are not taken.", of.Name)
	}
	if loops > 0 {
		g.note("%s: %d pairs of a vertex with itself were left out.", of.Name, loops)
	}
	return err
}

// key is of an edge in either direction.
func key(a, b uint32) uint64 { return uint64(min(a, b))<<32 | uint64(max(a, b)) }

// index lists the edges that are not for training.
func (g *Graph) index() error {
	val, test := g.held[graph.Validation][0], g.held[graph.Test][0]
	if err := g.memory.Grow(0, keyBytes*uint64(len(val)+len(test))); err != nil {
		return err
	}
	g.keys = make([]uint64, 0, len(val)+len(test))
	for _, of := range val {
		g.keys = append(g.keys, key(of.source, of.target))
	}
	slices.Sort(g.keys)
	both, once := 0, len(g.keys)
	for _, of := range test {
		k := key(of.source, of.target)
		if _, is := slices.BinarySearch(g.keys[:once], k); is {
			both++
		}
		g.keys = append(g.keys, k)
	}
	slices.Sort(g.keys)
	g.keys = slices.Compact(g.keys)
	wrong := 0
	for part := range g.held {
		for _, of := range g.held[part][1] {
			if !g.trains(of.source, of.target) {
				wrong++
			}
		}
	}
	if wrong > 0 {
		g.note("%d given pairs to compare with are edges of validation or test, in one direction or the other: evaluations take them for pairs that are no edges.", wrong)
	}
	if both > 0 {
		g.note("%d edges of test are edges of validation, too, in one direction or the other.", both)
	}
	return nil
}

// trains reports whether an edge is for training: it is in no other part, in either direction.
func (g *Graph) trains(src, dst uint32) bool {
	_, held := slices.BinarySearch(g.keys, key(src, dst))
	return !held
}

// negative reports whether a pair is to be compared with, in either direction.
func (g *Graph) negative(src, dst uint32) bool {
	for part := graph.Validation; part <= graph.Test; part++ {
		for _, of := range [...]pair{{src, dst}, {dst, src}} {
			if _, is := slices.BinarySearchFunc(g.held[part][1], of, compare); is {
				return true
			}
		}
	}
	return false
}

// count counts the edges that stay.
func (g *Graph) count(ctx context.Context) error {
	left, wrong := uint64(0), 0
	err := g.Source.Edges(ctx, func(b graph.EdgeBatch) error {
		for i, src := range b.Src {
			switch {
			case !g.trains(src, b.Dst[i]):
				left++
				continue
			case src == b.Dst[i]:
				g.loops++
			}
			if g.negative(src, b.Dst[i]) {
				wrong++
			}
			g.train++
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case g.train == g.loops:
		return errors.New("all edges of the graph are edges of validation or test, too: the edges of the graph itself are those for training, so add some")
	}
	if wrong > 0 {
		g.note("%d edges for training are given pairs to compare with, too, in one direction or the other: evaluations take them for pairs that are no edges.", wrong)
	}
	if left > 0 {
		g.note("%d edges of the graph are edges of validation or test, too, in one direction or the other: they were left out of training.", left)
	}
	return nil
}

// describe sets the metadata.
func (g *Graph) describe() {
	of := [3]uint64{g.train, uint64(len(g.held[graph.Validation][0])), uint64(len(g.held[graph.Test][0]))}
	negatives := uint64(len(g.held[graph.Validation][1]) + len(g.held[graph.Test][1]))
	if g.meta.Weighted {
		g.note("Weights are not taken, as edges with a given split have none.")
	}
	g.note("The split of the edges is given: %d for training, %d for validation and %d for test.", of[0], of[1], of[2])
	if negatives > 0 {
		g.note("Evaluations compare these with %d and %d given pairs.", len(g.held[graph.Validation][1]), len(g.held[graph.Test][1]))
	}
	g.bare = g.meta.Features == 0
	g.meta.Types = graph.GivenPairs(uint64(g.meta.Vertices), g.meta.Features, of, negatives)
	g.meta.Weighted, g.meta.Features = true, max(1, g.meta.Features)
	g.meta.Edges = of[0] + of[1] + of[2] + negatives
}

func (g *Graph) note(format string, args ...any) {
	g.notes = append(g.notes, fmt.Sprintf(format, args...))
}

// Mirror adds each edge for training in the other direction.
func (g *Graph) Mirror() error {
	if !g.mirrored {
		g.mirrored = true
		g.meta.Edges += g.train - g.loops
	}
	return nil
}

// Meta implements graph.Source.
func (g *Graph) Meta() graph.Meta { return g.meta }

// Notes implements graph.Source.
func (g *Graph) Notes() []string { return g.notes }

// Edges implements graph.Source: those for training, then those of the other parts, each with the
// number that says so in place of a weight.
func (g *Graph) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	changed := errors.New("the edges were changed while they were read: import them again when nothing writes to them")
	var b graph.EdgeBatch
	seen := uint64(0)
	err := g.Source.Edges(ctx, func(from graph.EdgeBatch) error {
		b.Src, b.Dst, b.Weights = b.Src[:0], b.Dst[:0], b.Weights[:0]
		for i, src := range from.Src {
			dst := from.Dst[i]
			if !g.trains(src, dst) {
				continue
			}
			seen++
			b.Src, b.Dst = append(b.Src, src), append(b.Dst, dst)
			if g.mirrored && src != dst {
				b.Src, b.Dst = append(b.Src, dst), append(b.Dst, src)
			}
		}
		if seen > g.train {
			return changed
		}
		return g.yield(&b, graph.PairNumber(graph.Train, false), yield)
	})
	switch {
	case err != nil:
		return err
	case seen != g.train:
		return changed
	}
	for part := graph.Validation; part <= graph.Test; part++ {
		for negative, all := range g.held[part] {
			for some := range slices.Chunk(all, source.EdgeBatch) {
				if err := context.Cause(ctx); err != nil {
					return err
				}
				b.Src, b.Dst, b.Weights = b.Src[:0], b.Dst[:0], b.Weights[:0]
				for _, of := range some {
					b.Src, b.Dst = append(b.Src, of.source), append(b.Dst, of.target)
				}
				if err := g.yield(&b, graph.PairNumber(part, negative == 1), yield); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// yield yields a batch, all of whose edges have a number.
func (g *Graph) yield(b *graph.EdgeBatch, number int, yield func(graph.EdgeBatch) error) error {
	if len(b.Src) == 0 {
		return nil
	}
	for range b.Src {
		b.Weights = append(b.Weights, float32(number))
	}
	return yield(*b)
}

// Features implements graph.Source. Vertices without features have a one each, as those of a type
// without features have.
func (g *Graph) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	if !g.bare {
		return g.Source.Features(ctx, yield)
	}
	var b graph.FeatureBatch
	for at := uint32(0); at < g.meta.Vertices; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b.First, b.Dense = at, b.Dense[:0]
		for end := min(g.meta.Vertices, at+source.EdgeBatch); at < end; at++ {
			b.Dense = append(b.Dense, 1)
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}
