package vicinity

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// A Range is the vertices from First to before End.
type Range struct{ First, End uint32 }

// A question asks for edges: of the vertices of ascending runs, those whose sources lie
// in some ascending ranges, and those from a vertex to itself. nil: all.
type question struct {
	within []Range
	runs   []Range
}

// all, as the number of ranges in a question, means that sources are not restricted.
const all = math.MaxUint32

// append appends the question: the number of ranges, these, and then the runs.
func (q *question) append(to []byte) []byte {
	u := binary.LittleEndian.AppendUint32
	if q.within == nil {
		to = u(to, all)
	} else {
		to = u(to, uint32(len(q.within)))
	}
	for _, list := range [][]Range{q.within, q.runs} {
		for _, r := range list {
			to = u(u(to, r.First), r.End)
		}
	}
	return to
}

// Errors of questions.
var (
	errNoQuestion = errors.New("a question for edges that this version does not know")
	errUnordered  = errors.New("a question for edges whose ranges don't ascend")
)

// readQuestion parses a question about a graph of so many vertices.
func readQuestion(b []byte, vertices uint32) (q question, err error) {
	if len(b) < 4 || len(b)%8 != 4 {
		return q, errNoQuestion
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if n != all {
		if uint64(n) > uint64(len(b)/8) {
			return q, errNoQuestion
		}
		if q.within, err = readRanges(b[:8*n], vertices); err != nil {
			return q, err
		}
		b = b[8*n:]
	}
	q.runs, err = readRanges(b, vertices)
	if err == nil && len(q.runs) == 0 {
		err = errNoQuestion
	}
	return q, err
}

func readRanges(b []byte, vertices uint32) ([]Range, error) {
	ranges, last := make([]Range, 0, len(b)/8), uint32(0)
	for ; len(b) > 0; b = b[8:] {
		r := Range{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}
		if r.First < last || r.First >= r.End || r.End > vertices {
			return nil, errUnordered
		}
		last = r.End
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// inside reports whether a vertex lies in ascending ranges; nil are all vertices.
func inside(ranges []Range, v uint32) bool {
	if ranges == nil {
		return true
	}
	at, _ := slices.BinarySearchFunc(ranges, v, func(r Range, v uint32) int {
		if r.End <= v {
			return -1
		}
		return 1
	})
	return at < len(ranges) && ranges[at].First <= v
}

// wanted reports whether the edge from u to v is wanted.
func wanted(v, u uint32, within []Range) bool { return u == v || inside(within, u) }

// Wanted counts the edges into a vertex, from ascending sources, that are wanted.
func Wanted(v uint32, sources []int32, within []Range) (n int) {
	for _, u := range sources {
		if wanted(v, uint32(u), within) {
			n++
		}
	}
	return n
}

// RangesOf returns the vertices of some shards, ascending; firsts are those of each shard,
// then how many vertices there are.
func RangesOf(firsts []uint32, has []bool) []Range {
	ranges := []Range{} // nil are all
	for shard, in := range has {
		first, end := firsts[shard], firsts[shard+1]
		switch last := len(ranges) - 1; {
		case !in || first == end:
		case last >= 0 && ranges[last].End == first:
			ranges[last].End = end
		default:
			ranges = append(ranges, Range{First: first, End: end})
		}
	}
	return ranges
}

// RowBytes is the size of a row of edges in an answer beside its entries: their number,
// and the number in the graph. EntryBytes is the size of an entry, and of its weight
// where there are weights. HeadBytes is the size of an answer beside its rows, and
// RunBytes that of a run of vertices in a question.
const (
	RowBytes   = 8
	EntryBytes = 4
	HeadBytes  = 8
	RunBytes   = 8
)

// A writer makes an answer.
type writer struct {
	rows, sources, weights []byte
	weighted               bool
	n                      int
}

// add appends the row of a vertex, without entries that are not wanted.
func (w *writer) add(v uint32, sources []int32, weights []float32, within []Range) {
	inner := uint32(0)
	for i, u := range sources {
		if !wanted(v, uint32(u), within) {
			continue
		}
		inner++
		w.sources = binary.LittleEndian.AppendUint32(w.sources, uint32(u))
		if w.weighted {
			x := float32(1)
			if weights != nil {
				x = weights[i]
			}
			w.weights = binary.LittleEndian.AppendUint32(w.weights, math.Float32bits(x))
		}
	}
	w.rows = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(w.rows, inner), uint32(len(sources)))
	w.n++
}

func (w *writer) size() int { return HeadBytes + len(w.rows) + len(w.sources) + len(w.weights) }

// head returns the beginning of the answer: rows, sources and weights follow.
func (w *writer) head() []byte {
	weighted := uint32(0)
	if w.weighted {
		weighted = 1
	}
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(w.n)), weighted)
}

// Errors of answers.
var (
	errCut     = errors.New("it has not the length that it says")
	errNoRow   = errors.New("it has no row, or more than were asked for")
	errSources = errors.New("it has sources that descend, or that were not asked for")
	errWeights = errors.New("it has weights that are no numbers")
	errRelated = errors.New("it has edges of relations that the graph has not")
	errTwice   = errors.New("it has a source twice in a row of a graph without relations")
	errDegree  = errors.New("it has a row of other entries than it says that the graph has")
)

// read appends the rows of an answer to t, and returns how many came: those of all
// vertices, or of the first of them.
func (t *table) read(b []byte, asked []uint32, within []Range, vertices uint32) (int, error) {
	if len(b) < HeadBytes {
		return 0, errCut
	}
	n, weighted := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	b = b[HeadBytes:]
	if n == 0 || uint64(n) > uint64(len(asked)) || weighted > 1 {
		return 0, errNoRow
	}
	if uint64(len(b)) < RowBytes*uint64(n) {
		return 0, errCut
	}
	rows, entries := b[:RowBytes*n], uint64(0)
	for at := 0; at < len(rows); at += RowBytes {
		entries += uint64(binary.LittleEndian.Uint32(rows[at:]))
	}
	b = b[len(rows):]
	if uint64(len(b)) != entries*EntryBytes*uint64(1+weighted) {
		return 0, errCut
	}
	sources, weights := b[:entries*EntryBytes], b[entries*EntryBytes:]
	if t.weights == nil && weighted == 1 {
		t.weights = slices.Repeat([]float32{1}, len(t.sources))
	}
	for i := range int(n) {
		inner, degree := binary.LittleEndian.Uint32(rows[RowBytes*i:]), binary.LittleEndian.Uint32(rows[RowBytes*i+4:])
		if err := t.row(asked[i], int(inner), degree, sources, within, vertices); err != nil {
			return 0, err
		}
		sources = sources[inner*EntryBytes:]
	}
	for ; len(weights) > 0; weights = weights[EntryBytes:] {
		x := math.Float32frombits(binary.LittleEndian.Uint32(weights))
		if x != x || math.IsInf(float64(x), 0) {
			return 0, errWeights
		}
		t.weights = append(t.weights, x)
	}
	if weighted == 0 && t.weights != nil {
		t.weights = append(t.weights, slices.Repeat([]float32{1}, int(entries))...)
	}
	return int(n), nil
}

// checkRelations returns an error unless all edges came with one of so many relations.
func (t *table) checkRelations(relations int) error {
	if len(t.weights) != len(t.sources) {
		return errRelated
	}
	for _, x := range t.weights {
		if !(x >= 0 && x < float32(relations)) || x != float32(int(x)) {
			return errRelated
		}
	}
	return nil
}

// checkDistinct returns an error if a row has a source twice, as only edges of different relations
// do.
func (t *table) checkDistinct() error {
	for i, end := range t.indptr[1:] {
		for e := t.indptr[i] + 1; e < end; e++ {
			if t.sources[e] == t.sources[e-1] {
				return errTwice
			}
		}
	}
	return nil
}

// row appends one row's sources.
func (t *table) row(v uint32, inner int, degree uint32, sources []byte, within []Range, vertices uint32) error {
	if degree > math.MaxInt32 || inner > int(degree) || within == nil && inner < int(degree) {
		return errDegree
	}
	last := int64(-1)
	for i := range inner {
		u := binary.LittleEndian.Uint32(sources[EntryBytes*i:])
		if int64(u) < last || u >= vertices || !wanted(v, u, within) {
			return errSources
		}
		last = int64(u)
		t.sources = append(t.sources, int32(u))
	}
	t.indptr = append(t.indptr, int64(len(t.sources)))
	t.degrees = append(t.degrees, int32(degree))
	return nil
}

// runsOf returns ascending vertices as runs.
func runsOf(vertices []uint32) (runs []Range) {
	for _, v := range vertices {
		if n := len(runs); n > 0 && runs[n-1].End == v {
			runs[n-1].End++
			continue
		}
		runs = append(runs, Range{v, v + 1})
	}
	return runs
}
