package sample

import (
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Together is a block for layers in which each target attends over its in-edges of all relations at
// once, with weights by relation and by type. Entries are ordered by relation and targets by type,
// so that each product is of consecutive rows.
type Together struct {
	// Relations is the first entry of each relation, then the number of entries.
	Relations []int
	// Types is the first of the targets of each type, in their order, then the first of those
	// without in-edges, whose type is not known, then the number of targets.
	Types []int
	// Order has a row for each target, in the order of types, with its row in the block as the only
	// column.
	Order tensor.CSR
	// Sources has a row for each entry, with its source as the only column. Targets has the targets
	// in their order, with their entries as columns.
	Sources, Targets tensor.CSR
	// Pairs joins two rows that follow each other to one, as many times as there are targets.
	Pairs tensor.CSR
}

// together is the memory of a block of this kind.
type together struct {
	Together
	ends endings

	counts  []int64 // 0, 1, 2 and so on
	twos    []int64 // 0, 2, 4 and so on
	places  []int32 // 0, 1, 2 and so on
	halves  []int32 // 0, 0, 1, 1 and so on
	order   []int32 // the block's row of each target, in their order
	ranks   []int32 // the inverse
	sources []int32 // of each entry
	entries []int32 // of each target
	indptr  []int64 // of Targets
	next    []int   // of relations, or of types
	back    [4]tensor.Transpose
	targets []int32 // of each entry: the rank of its target
	edges   []int32 // of each entry: its place in Targets
}

// endings are the types at which relations end, read from a text.
type endings struct {
	text string
	of   []uint8 // nil: all end at one
}

// read returns the type at which each relation of a form ends, and how many types there are.
func (e *endings) read(f Form) (ends []uint8, types int) {
	if e.text != f.Ends || len(e.of) != f.Relations && e.of != nil {
		e.text = f.Ends
		e.of, _ = ParseEnds(f.Ends, f.Relations) // the model has checked it
	}
	if e.of == nil {
		return nil, 1
	}
	return e.of, int(slices.Max(e.of)) + 1
}

// count makes the arrays that depend on sizes alone long enough for so many entries and targets.
func (o *together) count(entries, targets int) {
	n := max(entries, 2*targets) + 1
	more := max(0, n-len(o.places))
	o.counts, o.places, o.halves = slices.Grow(o.counts, more), slices.Grow(o.places, more), slices.Grow(o.halves, more)
	for i := len(o.places); i < n; i++ {
		o.counts, o.places, o.halves = append(o.counts, int64(i)), append(o.places, int32(i)), append(o.halves, int32(i/2))
	}
	o.twos = slices.Grow(o.twos, max(0, targets+1-len(o.twos)))
	for len(o.twos) <= targets {
		o.twos = append(o.twos, int64(2*len(o.twos)))
	}
}

// starts turns counts into where each begins, and returns the same with the sum behind it in to.
func starts(counts, to []int) []int {
	at := 0
	to = to[:0]
	for i, n := range counts {
		counts[i] = at
		to = append(to, at)
		at += n
	}
	return append(to, at)
}

// relate is Block.Relate for a form of this kind.
func (o *together) relate(b *Block, f Form) {
	from := b.Indptr[0]
	entries := int(b.Indptr[b.Rows] - from)
	sources, of := b.Indices[from:][:entries], b.Values[from:][:entries]
	ends, types := o.ends.read(f)
	o.count(entries, b.Rows)
	typeOf := func(t int) int {
		switch first := b.Indptr[t] - from; {
		case first == b.Indptr[t+1]-from:
			return types
		case ends == nil:
			return 0
		default:
			return int(ends[int(of[first])])
		}
	}
	o.next = slices.Grow(o.next[:0], max(f.Relations, types+1))[:types+1]
	clear(o.next)
	for t := range b.Rows {
		o.next[typeOf(t)]++
	}
	o.Types = starts(o.next, o.Types)
	o.order, o.ranks = slices.Grow(o.order[:0], b.Rows)[:b.Rows], slices.Grow(o.ranks[:0], b.Rows)[:b.Rows]
	for t := range b.Rows {
		at := &o.next[typeOf(t)]
		o.order[*at], o.ranks[t] = int32(t), int32(*at)
		*at++
	}
	o.next = o.next[:f.Relations]
	clear(o.next)
	for _, r := range of {
		o.next[int(r)]++
	}
	o.Relations = starts(o.next, o.Relations)
	o.sources = slices.Grow(o.sources[:0], entries)[:entries]
	o.entries = slices.Grow(o.entries[:0], entries)[:entries]
	o.indptr = append(slices.Grow(o.indptr[:0], b.Rows+1), 0)
	for _, t := range o.order {
		first, end := b.Indptr[t]-from, b.Indptr[t+1]-from
		at := o.indptr[len(o.indptr)-1]
		for e := first; e < end; e++ {
			to := &o.next[int(of[e])]
			o.sources[*to], o.entries[at+e-first] = sources[e], int32(*to)
			*to++
		}
		o.indptr = append(o.indptr, at+end-first)
	}
	o.Order = tensor.CSR{Rows: b.Rows, Cols: b.Rows, Indptr: o.counts[:b.Rows+1], Indices: o.order, Stamp: tensor.NewStamp()}
	o.Sources = tensor.CSR{Rows: entries, Cols: b.Cols, Indptr: o.counts[:entries+1], Indices: o.sources, Stamp: tensor.NewStamp()}
	o.Targets = tensor.CSR{Rows: b.Rows, Cols: entries, Indptr: o.indptr, Indices: o.entries, Stamp: tensor.NewStamp()}
	o.Pairs = tensor.CSR{Rows: b.Rows, Cols: 2 * b.Rows, Indptr: o.twos[:b.Rows+1], Indices: o.places[:2*b.Rows], Stamp: tensor.NewStamp()}
	// A layer needs two of the transposes forward, too: they bring rows of targets to entries, and
	// back to the block's order.
	o.targets, o.edges = slices.Grow(o.targets[:0], entries)[:entries], slices.Grow(o.edges[:0], entries)[:entries]
	for rank := range b.Rows {
		for at := o.indptr[rank]; at < o.indptr[rank+1]; at++ {
			e := o.entries[at]
			o.targets[e], o.edges[e] = int32(rank), int32(at)
		}
	}
	o.back[0] = tensor.Transpose{Indptr: o.counts[:b.Rows+1], Rows: o.ranks, Edges: o.ranks}
	o.back[1] = tensor.Transpose{Indptr: o.counts[:entries+1], Rows: o.targets, Edges: o.edges}
	o.Order.Transposed, o.Targets.Transposed = &o.back[0], &o.back[1]
	b.Together, b.Values = &o.Together, nil
}

// transpose builds the transposes that backward alone needs.
func (o *together) transpose() {
	transpose(&o.Sources, &o.back[2])
	n := o.Pairs.Cols
	o.back[3] = tensor.Transpose{Indptr: o.counts[:n+1], Rows: o.halves[:n], Edges: o.places[:n]}
	o.Pairs.Transposed, o.Pairs.Stamp = &o.back[3], tensor.NewStamp()
}

// TogetherOf returns the block for layers that attend over all relations. One that is only counted
// has no arrays, and all entries are of one relation and all targets of one type.
func TogetherOf(b *Block) *Together {
	if b.Together != nil {
		return b.Together
	}
	n, t := b.Entries(), b.Rows
	sized := func(rows, cols, entries int) tensor.CSR {
		return tensor.CSR{Rows: rows, Cols: cols, There: &tensor.There{Entries: entries}}
	}
	return &Together{
		Relations: []int{0, n}, Types: []int{0, t, t},
		Order: sized(t, t, t), Sources: sized(n, b.Cols, n), Targets: sized(t, n, n), Pairs: sized(t, 2*t, 2*t),
	}
}

// togetherBytes returns what a block of this size takes beside itself and its transpose; with back,
// what more its transposes take.
func (f Form) togetherBytes(z Size, back bool) uint64 {
	entries, targets := uint64(z.Entries), uint64(z.Targets)
	n := 4*4*entries + 4*2*targets + 8*(targets+1)           // of its own
	n += (8+4+4)*(max(entries, 2*targets)+1) + 8*(targets+1) // of sizes alone
	n += 3 * uint64(unsafe.Sizeof(int(0))) * uint64(max(f.Relations, graph.MaxTypes)+2)
	if back {
		n += 8*(uint64(z.Sources)+1) + 4*2*entries
	}
	return n
}
