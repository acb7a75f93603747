package features

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// cut makes shards of rows, which end where ends say. Half of the numbers that
// value gives are kept.
func cut(rows [][]float32, sparse bool, dtype graph.DType, ends ...int) []*graph.Shard {
	var shards []*graph.Shard
	first := 0
	for i, end := range ends {
		s := &graph.Shard{
			Number: i, Shards: len(ends), First: uint32(first), Vertices: end - first,
			Total: uint32(ends[len(ends)-1]), Features: len(rows[0]), DType: dtype,
		}
		var values []float32
		if sparse {
			s.Sparse = &graph.SparseRows{Indptr: []int64{0}}
		}
		for _, row := range rows[first:end] {
			for c, f := range row {
				if !sparse {
					values = append(values, f)
				} else if f != 0 {
					values = append(values, f)
					s.Sparse.Columns = append(s.Sparse.Columns, int32(c))
				}
			}
			if sparse {
				s.Sparse.Indptr = append(s.Sparse.Indptr, int64(len(values)))
			}
		}
		half := make([]uint16, len(values))
		graph.ToBF16(half, values)
		if values == nil {
			values = []float32{}
		}
		switch {
		case sparse && dtype == graph.BF16:
			s.Sparse.ValuesBF16 = half
		case sparse:
			s.Sparse.Values = values
		case dtype == graph.BF16:
			s.DenseBF16 = half
		default:
			s.Dense = values
		}
		shards = append(shards, s)
		first = end
	}
	return shards
}

// some makes rows of numbers that BF16 holds exactly. Row 3 is of zeros.
func some(n, columns int, share float64, value func(*rand.Rand) float32) [][]float32 {
	r := rand.New(rand.NewPCG(3, 4))
	rows := make([][]float32, n)
	for v := range rows {
		rows[v] = make([]float32, columns)
		for c := range rows[v] {
			if v != 3 && r.Float64() < share {
				rows[v][c] = value(r)
			}
		}
	}
	return rows
}

func one(*rand.Rand) float32    { return 1 }
func any5(r *rand.Rand) float32 { return float32(r.IntN(11)-5) / 4 }

func want(row []float32, how string) []float64 {
	out := make([]float64, len(row))
	sum := 0.0
	for c, f := range row {
		out[c] = float64(f)
		if strings.HasPrefix(how, "binary") && f != 0 {
			out[c] = 1
		}
		sum += math.Abs(out[c])
	}
	if strings.HasSuffix(how, "row") && sum > 0 {
		for c := range out {
			out[c] /= sum
		}
	}
	return out
}

// read returns the rows of the vertices, however the store gives them.
func read(t *testing.T, s *Store, vertices []uint32) [][]float64 {
	t.Helper()
	if s.Sparse() {
		var r Rows
		s.Fill(&r, vertices, true, nil)
		if n := s.Entries(vertices); n != r.Entries() {
			t.Errorf("%d entries, told to be %d", r.Entries(), n)
		}
	}
	return readFar(t, s, vertices, nil)
}

// readFar returns the rows at places.
func readFar(t *testing.T, s *Store, places []uint32, far *Far) [][]float64 {
	t.Helper()
	d := reference.New()
	a, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	y := a.Alloc(d.Type(), len(places), s.Columns())
	if s.Sparse() {
		var r Rows
		s.Fill(&r, places, true, far)
		d.Densify(y, &r.CSR)
		checkTranspose(t, &r.CSR)
	} else {
		s.Dense(d, a, y, places, far)
	}
	flat := make([]float64, len(places)*s.Columns())
	d.Read(flat, y)
	var rows [][]float64
	for i := range places {
		rows = append(rows, flat[i*s.Columns():][:s.Columns()])
	}
	return rows
}

func checkTranspose(t *testing.T, g *tensor.CSR) {
	t.Helper()
	tr := g.Transposed
	seen := 0
	for c := range g.Cols {
		last := int32(-1)
		for i := tr.Indptr[c]; i < tr.Indptr[c+1]; i++ {
			row, edge := tr.Rows[i], int64(tr.Edges[i])
			if row <= last || edge < g.Indptr[row] || edge >= g.Indptr[row+1] || g.Indices[edge] != int32(c) {
				t.Fatalf("column %d: entry %d is said to stand in row %d", c, edge, row)
			}
			last = row
			seen++
		}
	}
	if seen != g.Entries() {
		t.Errorf("%d of %d entries are in the transpose", seen, g.Entries())
	}
}

func TestRows(t *testing.T) {
	vertices := []uint32{9, 0, 3, 3, 8, 4, 5, 1, 9}
	for _, sparse := range []bool{false, true} {
		for _, dtype := range []graph.DType{graph.F32, graph.BF16} {
			for _, value := range []func(*rand.Rand) float32{one, any5} {
				rows := some(10, 7, 0.6, value)
				shards := cut(rows, sparse, dtype, 4, 4, 5, 10, 10) // some without vertices
				for _, how := range Hows {
					s, err := Open(shards, how)
					if err != nil {
						t.Fatal(err)
					}
					if s.Columns() != 7 || s.Sparse() != sparse || s.How() == "auto" {
						t.Fatalf("%d columns, %v, %s", s.Columns(), s.Sparse(), s.How())
					}
					got := read(t, s, vertices)
					for i, v := range vertices {
						w := want(rows[v], s.How())
						for c := range w {
							if math.Abs(got[i][c]-w[c]) > 1e-6 {
								t.Fatalf("sparse %v, %s, %s: vertex %d has %v, not %v", sparse, dtype, how, v, got[i], w)
							}
						}
					}
				}
			}
		}
	}
}

func TestAutoIsRowForFewOnes(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for _, dtype := range []graph.DType{graph.F32, graph.BF16} {
			for _, c := range []struct {
				share float64
				value func(*rand.Rand) float32
				how   string
			}{{0.02, one, "row"}, {0.2, one, "none"}, {0.02, any5, "none"}} {
				s, err := Open(cut(some(50, 40, c.share, c.value), sparse, dtype, 20, 50), "auto")
				if err != nil || s.How() != c.how {
					t.Errorf("sparse %v, %s, %v of all: %s, %v", sparse, dtype, c.share, s.How(), err)
				}
			}
		}
	}
}

func TestWhatIsHeldIsCounted(t *testing.T) {
	for how, bytes := range map[string]uint64{"none": 0, "row": 4 * 20, "binary": 2 * 20 * 9, "binary-row": 4*20 + 2*20*9} {
		s, err := Open(cut(some(20, 9, 1, any5), false, graph.F32, 20), how)
		if err != nil || s.Bytes() != bytes {
			t.Errorf("%s: %d bytes, %v", how, s.Bytes(), err)
		}
	}
}

func TestOnesNeedNoValues(t *testing.T) {
	rows := some(20, 9, 0.3, one)
	for how, values := range map[string]bool{"none": false, "binary": false, "row": true, "binary-row": true} {
		s, err := Open(cut(rows, true, graph.F32, 20), how)
		if err != nil {
			t.Fatal(err)
		}
		var r Rows
		s.Fill(&r, []uint32{1, 2}, false, nil)
		if (r.Values != nil) != values || r.Transposed != nil {
			t.Errorf("%s: values %v, transpose %v", how, r.Values, r.Transposed)
		}
	}
}

func TestFillingAgainAllocatesNothing(t *testing.T) {
	s, err := Open(cut(some(200, 30, 0.2, any5), true, graph.F32, 90, 200), "row")
	if err != nil {
		t.Fatal(err)
	}
	vertices := make([]uint32, 200)
	for i := range vertices {
		vertices[i] = uint32(199 - i)
	}
	var r Rows
	if n := testing.AllocsPerRun(5, func() { s.Fill(&r, vertices, true, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestShardsThatDoNotFit(t *testing.T) {
	rows := some(10, 3, 1, one)
	whole := cut(rows, false, graph.F32, 4, 7, 10)
	swapped := slices.Clone(whole)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	mixed := slices.Clone(whole)
	mixed[2] = cut(rows, false, graph.BF16, 4, 7, 10)[2]
	for name, c := range map[string]struct {
		shards []*graph.Shard
		how    string
		say    string
	}{
		"none":    {nil, "none", "no shards"},
		"swapped": {swapped, "none", "does not follow"},
		"mixed":   {mixed, "none", "does not follow"},
		"missing": {whole[:2], "none", "does not follow"},
		"unknown": {whole, "l2", `"l2"`},
	} {
		if _, err := Open(c.shards, c.how); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A graph without features has learnt rows, all of which can be read, though only some shards are
// held.
func TestLearntRows(t *testing.T) {
	s, err := Open(cut(some(6, 0, 0, one), false, graph.F32, 2, 6), "auto")
	if err != nil || s.Columns() != 0 || s.How() != "none" || s.Learnt() {
		t.Fatalf("%d columns, normalised as %s: %v", s.Columns(), s.How(), err)
	}
	rows := []float32{0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51}
	s.Learn(tensor.Matrix{}, tensor.OverF32(6, 2, rows))
	s.Hold(func(shard int) bool { return shard == 1 })
	d := reference.New()
	a, err := d.NewArena(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	read := func() []float64 {
		y, got := a.Alloc(tensor.F64, 3, 2), make([]float64, 6)
		s.Dense(d, a, y, []uint32{5, 0, 3}, nil)
		d.Read(got, y)
		return got
	}
	if got := read(); !slices.Equal(got, []float64{50, 51, 0, 1, 30, 31}) {
		t.Errorf("rows are %g", got)
	}
	if rows[1] = 7; !slices.Equal(read(), []float64{50, 51, 0, 7, 30, 31}) {
		t.Errorf("rows that have changed are %g", read())
	}
	if s.Has(1) || !s.Has(2) || !s.Reads(1) || !s.Learnt() || s.Plain() || s.Columns() != 2 {
		t.Error("it does not tell what is held from what can be read")
	}
	if form, err := s.Form("bf16"); err != nil || form.RowBytes() != 8 {
		t.Errorf("a row travels in %d bytes: %v", form.RowBytes(), err)
	}
}

// Features that precede learnt rows are those that the store serves, normalised.
func TestLearntRowsBehindFeatures(t *testing.T) {
	for _, sparse := range []bool{true, false} {
		rows := some(10, 5, 0.6, func(r *rand.Rand) float32 { return float32(1 + r.IntN(3)) })
		s, err := Open(cut(rows, sparse, graph.F32, 4, 10), "row")
		if err != nil {
			t.Fatal(err)
		}
		d := reference.New()
		a, err := d.NewArena(1 << 12)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		host := cpu.New(1)
		defer host.Close()
		room, err := host.NewArena(1 << 12)
		if err != nil {
			t.Fatal(err)
		}
		defer room.Close()
		fixed := tensor.OverF32(10, 5, make([]float32, 50))
		s.Expand(host, room, fixed.RowRange(0, 4), 0)
		s.Expand(host, room, fixed.RowRange(4, 6), 4)
		x := tensor.OverF32(10, 2, make([]float32, 20))
		for i := range x.F32() {
			x.F32()[i] = float32(100 + i)
		}
		s.Learn(fixed, x)
		a.Reset()
		y, got := a.Alloc(tensor.F64, 2, 7), make([]float64, 14)
		s.Dense(d, a, y, []uint32{7, 2}, nil)
		d.Read(got, y)
		var want []float64
		for _, v := range []int{7, 2} {
			sum := float32(0)
			for _, f := range rows[v] {
				sum += f
			}
			for _, f := range rows[v] {
				want = append(want, float64(f)/float64(max(sum, 1)))
			}
			want = append(want, float64(100+2*v), float64(101+2*v))
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-6 {
				t.Fatalf("sparse %v: rows are %g in place of %g", sparse, got, want)
			}
		}
		if s.Sparse() || s.Columns() != 7 {
			t.Errorf("%d columns, sparse %v", s.Columns(), s.Sparse())
		}
	}
}
