// Package features serves the input feature rows of vertices from their shards, dense or
// sparse, with the requested normalisation.
package features

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Hows lists the ways to normalise rows: row divides by the sum of the absolute values;
// binary replaces every non-zero by 1; binary-row does both; auto is row if features are
// under 5 % dense and all ones, else none.
var Hows = []string{"auto", "row", "none", "binary", "binary-row"}

// A Store serves the features of a graph's vertices, of all or of those in the local
// shards. It is safe for concurrent use.
//
// Rows are addressed by place: a local vertex is its own place, and the rows of a Far
// follow the vertices of the graph (see Far).
type Store struct {
	shards  []*graph.Shard
	firsts  []uint32 // of the shards
	total   uint32   // vertices of the graph
	here    *here    // nil if all vertices are local
	columns int
	sparse  bool
	how     string
	binary  bool
	// ones reports whether all entries of sparse rows are 1 before scaling.
	ones   bool
	stored []stored // of each shard, where rows are dense
	// scale holds the factor of each row of each shard, if rows are scaled.
	scaled bool
	scale  [][]float32
	parts  []tensor.Part // of stored
	rates  []tensor.Part // of scale
	learning
}

// learning is what Learn has set.
type learning struct {
	learnt bool
	beside []tensor.Part // learnt rows that follow those of parts; nil: parts has them
	apart  *here         // whose learnt rows are here; nil: all vertices'
}

// Open returns an error unless the shards are all those of one graph, in order.
// Normalisation takes memory where rows differ from what the shards store: one number per
// vertex for row, two bytes per element for binary rows of dense features.
func Open(shards []*graph.Shard, how string) (*Store, error) {
	stats := make([]graph.FeatureStats, len(shards))
	for i, shard := range shards {
		stats[i].Sparse = shard.Sparse != nil
		if how == "auto" || shard.Sparse != nil {
			stats[i] = graph.StatsOf(shard)
		}
	}
	s, err := OpenPart(shards, stats, how)
	if err == nil && s.here != nil {
		return nil, errors.New("the features of some shards are not here")
	}
	return s, err
}

// OpenPart is Open where only some shards have their features here; the others have nil
// Dense, DenseBF16 and Sparse. Where the graph has no features, rows have no columns: see Learn. stats covers all shards, so that all nodes of a job get
// the same rows.
func OpenPart(shards []*graph.Shard, stats []graph.FeatureStats, how string) (*Store, error) {
	if err := check(shards, stats, how); err != nil {
		return nil, err
	}
	s := &Store{
		shards: shards, total: shards[0].Total, columns: shards[0].Features, sparse: stats[0].Sparse, how: how,
	}
	for _, shard := range shards {
		s.firsts = append(s.firsts, shard.First)
	}
	if s.columns == 0 {
		s.how = "none"
		return s, nil
	}
	s.find(func(i int) bool { return holds(shards[i]) })
	if how == "auto" || s.sparse {
		ones, density := s.sum(stats)
		s.ones = s.sparse && ones
		if how == "auto" {
			s.how = "none"
			if ones && density < 0.05 {
				s.how = "row"
			}
		}
	}
	s.binary = s.how == "binary" || s.how == "binary-row"
	s.ones = s.ones || s.sparse && s.binary
	s.scaled = s.how == "row" || s.how == "binary-row"
	if !s.sparse {
		s.lay()
	}
	if s.scaled {
		s.weigh()
	}
	return s, nil
}

// holds reports whether a shard's features are here.
func holds(shard *graph.Shard) bool {
	return shard.Dense != nil || shard.DenseBF16 != nil || shard.Sparse != nil
}

func check(shards []*graph.Shard, stats []graph.FeatureStats, how string) error {
	if !slices.Contains(Hows, how) {
		return fmt.Errorf("features can't be normalised as %q: it is one of %v", how, Hows)
	}
	if len(shards) == 0 {
		return errors.New("there are no shards to read features from")
	}
	if len(stats) != len(shards) {
		return fmt.Errorf("there are %d shards, and it is known of %d what features they have", len(shards), len(stats))
	}
	next := uint64(0)
	for i, shard := range shards {
		if shard.Number != i || shard.Shards != len(shards) || uint64(shard.First) != next || shard.Features != shards[0].Features ||
			shard.DType != shards[0].DType || stats[i].Sparse != stats[0].Sparse || holds(shard) && stats[i].Sparse != (shard.Sparse != nil) {
			return fmt.Errorf("shard %d does not follow the one before it: these are not the shards of one graph, in order", i)
		}
		next += uint64(shard.Vertices)
	}
	if next != uint64(shards[0].Total) {
		return fmt.Errorf("the shards hold %d vertices of %d: some are missing", next, shards[0].Total)
	}
	return nil
}

// here finds out whether vertices are local.
type here struct {
	shards []bool   // whether a shard's vertices are local
	ends   []uint32 // of shards
	// near[v>>shift] is the shard of the first vertex with these high bits; v is in that
	// shard or one of the next.
	near  []uint16
	shift uint
}

// nearPerShard is the minimum average number of entries of near for each shard.
const nearPerShard = 4

// find sets s.here, where some shards may not be held.
func (s *Store) find(held func(shard int) bool) { s.here = s.whereabouts(held) }

// whereabouts knows which vertices are those of some shards; nil: all are.
func (s *Store) whereabouts(held func(shard int) bool) *here {
	all := true
	for i, shard := range s.shards {
		all = all && (shard.Vertices == 0 || held(i))
	}
	if all {
		return nil
	}
	h := &here{}
	for i, shard := range s.shards {
		h.shards, h.ends = append(h.shards, held(i)), append(h.ends, shard.First+uint32(shard.Vertices))
	}
	for int(s.total)>>h.shift > nearPerShard*len(s.shards) {
		h.shift++
	}
	h.near = make([]uint16, s.total>>h.shift+1)
	at := 0
	for i := range h.near {
		for at+1 < len(h.ends) && uint64(h.ends[at]) <= uint64(i)<<h.shift {
			at++
		}
		h.near[i] = uint16(at)
	}
	return h
}

// Has reports whether a vertex is in a shard whose features are here.
func (s *Store) Has(v uint32) bool { return s.here.has(v) }

// has reports whether a vertex is here.
func (h *here) has(v uint32) bool {
	if h == nil {
		return true
	}
	at := int(h.near[v>>h.shift])
	for v >= h.ends[at] {
		at++
	}
	return h.shards[at]
}

// Vertices returns the number of vertices of the graph.
func (s *Store) Vertices() uint32 { return s.total }

// How returns how the rows are normalised; it is never auto.
func (s *Store) How() string { return s.how }

// Columns returns the number of features.
func (s *Store) Columns() int { return s.columns }

// Sparse reports whether rows are given as a CSR.
func (s *Store) Sparse() bool { return s.sparse }

// Bytes returns the memory that the store holds beside the shards.
func (s *Store) Bytes() uint64 {
	n := uint64(0)
	for _, scale := range s.scale {
		n += 4 * uint64(len(scale))
	}
	for _, x := range s.stored {
		if s.binary {
			n += 2 * uint64(len(x.half))
		}
	}
	return n
}

// Dense fills y with the rows at these places, using the device's Gather. a provides
// scratch memory. far may be nil if all rows are here.
func (s *Store) Dense(d tensor.Device, a tensor.Arena, y tensor.Matrix, places []uint32, far *Far) {
	if s.beside != nil {
		columns := s.parts[0].X.Cols
		d.Gather(y.View(0, y.Rows, 0, columns), s.parts, places)
		d.Gather(y.View(0, y.Rows, columns, y.Cols-columns), s.beside, places)
		return
	}
	parts, rates := s.parts, s.rates
	if far != nil {
		parts, rates = far.add(parts, rates, s.total)
	}
	d.Gather(y, parts, places)
	if s.scaled {
		scale := a.Alloc(d.Type(), len(places), 1)
		d.Gather(scale, rates, places)
		d.ScaleRows(y, y, scale)
	}
}

// Learn has the store serve rows that are learnt: those of x, one for each vertex of the graph. They
// follow the features, which fixed has of all vertices, normalised; an empty one of a graph without
// any. All rows lie here then, and learnt ones may change whenever nobody reads them, so nothing may be
// kept of them.
func (s *Store) Learn(fixed, x tensor.Matrix) {
	s.columns, s.learnt = fixed.Cols+x.Cols, true
	s.sparse, s.scaled, s.ones, s.stored, s.rates = false, false, false, nil, nil
	if s.parts, s.beside = []tensor.Part{{X: x}}, nil; !fixed.None() {
		s.parts, s.beside = []tensor.Part{{X: fixed}}, []tensor.Part{{X: x}}
	}
}

// LearnApart has the store of a graph without features serve learnt rows, of which only those of some
// shards are here: rows returns these, or nil. The others are requested from their owners, as features
// are, and nothing may be kept of them.
func (s *Store) LearnApart(columns int, rows func(shard int) []float32) {
	s.columns, s.learnt = columns, true
	s.stored, s.parts = make([]stored, len(s.shards)), nil
	for i, shard := range s.shards {
		x := rows(i)
		if s.stored[i].whole = x; x != nil && shard.Vertices > 0 {
			s.parts = append(s.parts, tensor.Part{First: shard.First, X: tensor.OverF32(shard.Vertices, columns, x)})
		}
	}
	s.apart = s.whereabouts(func(shard int) bool { return s.stored[shard].whole != nil })
}

// Apart reports whether only some learnt rows are here.
func (s *Store) Apart() bool { return s.apart != nil }

// Serves reports whether others may ask for the row of a vertex. Where all learnt rows are on all nodes
// nobody does.
func (s *Store) Serves(v uint32) bool { return (!s.learnt || s.stored != nil) && s.Reads(v) }

// Expand sets dense rows to those of the vertices from first on, which must be here.
func (s *Store) Expand(d tensor.Device, a tensor.Arena, to tensor.Matrix, first uint32) {
	var sparse Rows
	places := make([]uint32, 0, window)
	for at := 0; at < to.Rows; at += window {
		y := to.RowRange(at, min(window, to.Rows-at))
		places = places[:0]
		for i := range y.Rows {
			places = append(places, first+uint32(at+i))
		}
		if a.Reset(); s.sparse {
			s.Fill(&sparse, places, false, nil)
			d.Densify(y, &sparse.CSR)
			continue
		}
		s.Dense(d, a, y, places, nil)
	}
}

// Learnt reports whether rows may change.
func (s *Store) Learnt() bool { return s.learnt }

// Hold says which shards of a graph without features are held here, which no features show.
func (s *Store) Hold(held func(shard int) bool) { s.find(held) }

// Reads reports whether the row of a vertex can be read here: it is in a shard that is or, where rows
// are learnt, it is one of those that are here.
func (s *Store) Reads(v uint32) bool {
	if s.learnt {
		return s.apart.has(v)
	}
	return s.here.has(v)
}
