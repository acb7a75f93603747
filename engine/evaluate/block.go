package evaluate

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/evaluate/overflow"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A weaver makes blocks of rows here, with all their entries. The columns are the rows of
// tables: those of vertices here, then those of the halo. So the rows of sources need not
// be gathered, and no table of the vertices that were met is needed.
type weaver struct {
	halo    *halo
	form    sample.Form
	rows    *sample.WholeRows // once it is open
	inverse [][]float32       // 1/sqrt(degree) of the vertices of each span, where rows are rooted

	block   sample.Block
	indptr  []int64
	memory  entries
	file    *overflow.File // of entries that memory is too small for
	between entries
}

// entries are the columns of some entries, and their values.
type entries struct {
	indices []int32
	values  []float32 // nil: all 1
}

// betweenEntries is how many entries at a time are written to a file.
const betweenEntries = 1 << 15

// open has it read the rows of a topology. Until then it has none: edges may be given up
// before.
func (w *weaver) open(t *sample.Topology) {
	w.rows, w.inverse = sample.NewWholeRows(t, w.form), nil
	if w.rows.Rooted() {
		for _, s := range w.halo.own.spans {
			w.inverse = append(w.inverse, w.rows.Inverses(s.first))
		}
	}
}

// valued reports whether entries have values.
func (w *weaver) valued() bool { return w.form.Valued() }

// entryBytes is what an entry takes.
func (w *weaver) entryBytes() int {
	if w.valued() {
		return 8
	}
	return 4
}

// weave returns the block of n rows from first on, which is valid until the next one. More
// entries than there is room for lie in a file in a folder.
func (w *weaver) weave(first, n, room int, dir string) (*sample.Block, error) {
	b, err := w.weaveEntries(first, n, room, dir)
	if err == nil && w.form.Relations > 0 {
		b.Relate(w.form)
	}
	return b, err
}

// weaveEntries is weave without the matrix by relation.
func (w *weaver) weaveEntries(first, n, room int, dir string) (*sample.Block, error) {
	b := &w.block
	*b = sample.Block{Own: first}
	b.Rows, b.Cols, b.Stamp = n, w.halo.total(), tensor.NewStamp()
	if w.alias(b, first, n) {
		return b, nil
	}
	w.indptr = append(sized(w.indptr, n+1)[:0], 0)
	own, at, total := &w.halo.own, 0, int64(0)
	for row := first; row < first+n; row++ {
		total += int64(w.rows.Entries(own.vertex(row, &at)))
		w.indptr = append(w.indptr, total)
	}
	b.Indptr = w.indptr
	if total > math.MaxInt32 {
		return nil, fmt.Errorf("the %d vertices from %d on have %d edges, and a block at most %d", n, own.vertex(first, &at), total, math.MaxInt32)
	}
	if int(total) > room {
		return b, w.weaveFile(b, int(total), dir)
	}
	// Room is taken for the largest part at once: what is outgrown stays for a while.
	w.memory.indices = sized(w.memory.indices, room)
	b.Indices = w.memory.indices[:total]
	if w.valued() {
		w.memory.values = sized(w.memory.values, room+1)
		b.Values = w.memory.values[:total] // not nil
	}
	p := pen{w: w, next: first, end: first + n}
	p.write(entries{b.Indices, b.Values})
	return b, nil
}

// alias has a block lie in a shard, if rows are there as they are to be.
func (w *weaver) alias(b *sample.Block, first, n int) bool {
	s := &w.halo.own.spans[w.halo.own.at(first)]
	if n == 0 || !w.halo.nodes.alone() || !w.rows.Plain() || first+n > s.row+s.rows {
		return false
	}
	b.Indptr, b.Indices = w.rows.Run(s.first+uint32(first-s.row), n)
	return true
}

// weaveFile puts the entries of a block into a file: the columns, then the values.
func (w *weaver) weaveFile(b *sample.Block, total int, dir string) (err error) {
	if err := w.drop(); err != nil {
		return err
	}
	if w.file, err = overflow.New(dir, int64(total)*int64(w.entryBytes())); err != nil {
		return err
	}
	w.between.indices = sized(w.between.indices, betweenEntries)
	if w.valued() {
		w.between.values = sized(w.between.values, betweenEntries)
	}
	p := pen{w: w, next: b.Own, end: b.Own + b.Rows}
	for at := int64(0); at < int64(total); {
		n := p.write(w.between)
		if err := w.file.Write(plain.Bytes(w.between.indices[:n]), 4*at); err != nil {
			return err
		}
		if w.valued() {
			if err := w.file.Write(plain.Bytes(w.between.values[:n]), 4*(int64(total)+at)); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	b.Indices = plain.Numbers[int32](w.file.Bytes()[:4*total])
	if w.valued() {
		b.Values = plain.Numbers[float32](w.file.Bytes()[4*total:])
	}
	return nil
}

// drop closes the file.
func (w *weaver) drop() error {
	if w == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return f.Close()
}

// A pen writes the entries of rows, one after another.
type pen struct {
	w         *weaver
	next, end int // rows that are not begun

	// What is left of the row that is begun.
	column  int32 // of the row itself
	loop    bool
	sources []int32
	weights []float32 // nil: all 1
	root    float32
	near    int // span
}

// write sets as many entries as there is room for and rows have, and returns their number.
func (p *pen) write(to entries) (n int) {
	for n < len(to.indices) {
		if !p.loop && len(p.sources) == 0 {
			if p.next == p.end {
				return n
			}
			p.begin()
			continue
		}
		rest := entries{indices: to.indices[n:]}
		if p.w.valued() {
			rest.values = to.values[n:]
		}
		if !p.loop {
			n += p.some(rest)
			continue
		}
		p.loop = false
		rest.indices[0] = p.column
		if rest.values != nil {
			rest.values[0] = 1
			if p.w.inverse != nil {
				rest.values[0] *= p.root * p.root
			}
		}
		n++
	}
	return n
}

// begin begins the next row.
func (p *pen) begin() {
	w := p.w
	v := w.halo.own.vertex(p.next, &p.near)
	p.column = int32(p.next)
	p.loop, p.sources, p.weights = w.rows.Row(v)
	if w.inverse != nil {
		p.root = positive(w.inverse[p.near][v-w.halo.own.spans[p.near].first])
	}
	p.next++
}

// some writes entries of the row that is begun.
func (p *pen) some(to entries) int {
	w, own := p.w, &p.w.halo.own
	n := min(len(to.indices), len(p.sources))
	near := p.near
	for i, source := range p.sources[:n] {
		u := uint32(source)
		row, here := own.find(u, &near)
		of := 0
		if !here {
			of = int(w.halo.rowOf.Find(u))
			row = own.rows + of
		}
		to.indices[i] = int32(row)
		if to.values == nil {
			continue
		}
		x := float32(1)
		if p.weights != nil {
			x = p.weights[i]
		}
		switch {
		case w.inverse == nil:
		case here:
			x *= p.root * positive(w.inverse[near][u-own.spans[near].first])
		default:
			x *= p.root * w.halo.roots[of]
		}
		to.values[i] = x
	}
	p.sources = p.sources[n:]
	if p.weights != nil {
		p.weights = p.weights[n:]
	}
	return n
}

// positive returns the absolute value of f.
func positive(f float32) float32 { return math.Float32frombits(math.Float32bits(f) &^ (1 << 31)) }
