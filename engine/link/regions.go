package link

import (
	"cmp"
	"slices"
	"sort"
)

// A Span is the vertices from First to before End.
type Span struct{ First, End uint32 }

// A Region is what a group that learns in isolation may compute: pairs that begin in Sources, as far
// as they and their negatives end in Ends.
type Region struct {
	Sources Span
	Ends    []Span // ascending, apart from each other; they contain Sources
}

// Regions restrict the pairs of a step to those that lie inside the region of their source. They
// depend on the pairs and on the regions alone, so that all nodes leave out the same pairs. They are
// immutable; nil restricts nothing.
type Regions struct{ all []region }

// A region is a Region with its candidates: the vertices in it that may stand in place of a pair's
// target.
type region struct {
	Region

	runs  []Span // of candidates, by their numbers among those of the graph
	ahead []int  // of each run: how many candidates come before it
	count int
}

// NewRegions returns the regions of a graph, whose sources are all of its vertices, ascending.
func NewRegions(p *Pairs, all []Region) *Regions {
	r := &Regions{}
	for _, of := range all {
		to := region{Region: of}
		for _, s := range of.Ends {
			if p.Relation != nil {
				first, _ := slices.BinarySearch(p.targets, s.First)
				end, _ := slices.BinarySearch(p.targets, s.End)
				s = Span{uint32(first), uint32(end)}
			}
			to.runs, to.ahead = append(to.runs, s), append(to.ahead, to.count)
			to.count += int(s.End - s.First)
		}
		r.all = append(r.all, to)
	}
	return r
}

// of returns the region of a source, or nil if it is in no region.
func (r *Regions) of(source uint32) *region {
	if r == nil {
		return nil
	}
	return &r.all[sort.Search(len(r.all), func(i int) bool { return r.all[i].Sources.End > source })]
}

// has reports whether a pair may end at a vertex.
func (r *region) has(v uint32) bool {
	if r == nil {
		return true
	}
	i := sort.Search(len(r.Ends), func(i int) bool { return r.Ends[i].End > v })
	return i < len(r.Ends) && v >= r.Ends[i].First
}

// Has reports whether a pair is learnt.
func (r *Regions) Has(of Pair) bool { return r.of(of.Source).has(of.Target) }

// from returns the pairs of the step that begin in a region.
func (b *Batch) from(r *region) []Pair {
	if r == nil {
		return b.pairs
	}
	before := func(of Pair, v uint32) int { return cmp.Compare(of.Source, v) }
	first, _ := slices.BinarySearchFunc(b.pairs, r.Sources.First, before)
	end, _ := slices.BinarySearchFunc(b.pairs, r.Sources.End, before)
	return b.pairs[first:end]
}
