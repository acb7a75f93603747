package metric

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// memory is a store of a test, which can be full.
type memory struct {
	b    []byte
	full bool
}

var errFull = errors.New("full")

func (m *memory) Write(b []byte, at int64) error {
	if m.full {
		return errFull
	}
	copy(m.b[at:], b)
	return nil
}

func (m *memory) Bytes() []byte { return m.b }

func storeOf(bytes int64) (Store, error) { return &memory{b: plain.Room(int(bytes))}, nil }

// sideOf is that of a label.
func sideOf(target []int32, class int) int {
	switch {
	case target[0] < 0:
		return Unknown
	case target[0] == int32(class):
		return With
	}
	return Without
}

// rankingOf ranks rows, some at a time.
func rankingOf(t testing.TB, logits [][]float32, labels []int32, classes, atOnce int) *Ranking {
	t.Helper()
	counts := make([]Sides, classes)
	for i := range labels {
		for c := range counts {
			if side := sideOf(labels[i:i+1], c); side >= 0 {
				counts[c][side]++
			}
		}
	}
	r := NewRanking(counts, 1, sideOf)
	store, _ := storeOf(r.Size())
	r.Begin(store)
	for at := 0; at < len(labels); at += atOnce {
		end := min(at+atOnce, len(labels))
		var flat []float32
		for _, row := range logits[at:end] {
			flat = append(flat, row...)
		}
		if err := r.Add(flat, labels[at:end]); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Sort(storeOf); err != nil {
		t.Fatal(err)
	}
	return r
}

// pieces is a stream of pieces of a few keys.
type pieces struct {
	keys   []uint32
	atOnce int
}

func (p *pieces) Next() ([]uint32, error) {
	n := min(p.atOnce, len(p.keys))
	some := p.keys[:n]
	p.keys = p.keys[n:]
	return some, nil
}

// compared returns the ranks of rankings together.
func compared(t testing.TB, classes, atOnce int, parts ...*Ranking) (ranks []Ranks) {
	t.Helper()
	var p Comparison
	for c := range classes {
		var of [2][]Stream
		var all Sides
		for _, r := range parts {
			keys, n := plain.Numbers[uint32](r.Keys(c, c+1)), r.Counts()[c]
			all[Without], all[With] = all[Without]+n[Without], all[With]+n[With]
			of[0], of[1] = append(of[0], &pieces{keys[:n[Without]], atOnce}), append(of[1], &pieces{keys[n[Without]:], atOnce})
		}
		n, err := p.Compare(of[0], of[1], all)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, n)
	}
	return ranks
}

// Pairs are the same in every bit however many share the vertices, and however few keys are
// sorted at once.
func TestPairsOfAnyParts(t *testing.T) {
	before := mostRun
	defer func() { mostRun = before }()
	const classes = 4
	odd := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, 1e-45}
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 40 {
		var logits [3][][]float32
		var labels [3][]int32
		var all [][]float32
		var of []int32
		for range round * 5 {
			row := make([]float32, classes)
			for c := range row {
				if row[c] = float32(r.IntN(9)-4) / 2; r.IntN(6) == 0 {
					row[c] = odd[r.IntN(len(odd))]
				}
			}
			label, part := int32(r.IntN(classes+1)-1), r.IntN(2) // the third part has none
			logits[part], labels[part] = append(logits[part], row), append(labels[part], label)
			all, of = append(all, row), append(of, label)
		}
		want, precisions := naivePairs(all, of, classes), naivePrecisions(all, of, classes)
		for _, mostRun = range []int{1, 7, 1 << 20} {
			var parts []*Ranking
			for p := range logits {
				parts = append(parts, rankingOf(t, logits[p], labels[p], classes, 4))
			}
			one := compared(t, classes, 5, rankingOf(t, all, of, classes, 1000))
			some := compared(t, classes, 2, parts...)
			for c := range want {
				if one[c].Pairs != want[c] || some[c] != one[c] || !near(one[c].Precisions, precisions[c]) {
					t.Fatalf("round %d, runs of %d, class %d: %v of one, %v of parts, by definition %v and %v", round, mostRun, c, one[c], some[c], want[c], precisions[c])
				}
			}
		}
	}
}

func naivePairs(logits [][]float32, labels []int32, classes int) []float64 {
	pairs := make([]float64, classes)
	for c := range classes {
		for i, a := range labels {
			for k, b := range labels {
				switch x, y := logits[i][c], logits[k][c]; {
				case a != int32(c) || b < 0 || b == int32(c):
				case x > y:
					pairs[c]++
				case x == y:
					pairs[c] += 0.5
				}
			}
		}
	}
	return pairs
}

func naivePrecisions(logits [][]float32, labels []int32, classes int) []float64 {
	sums := make([]float64, classes)
	for c := range classes {
		for i, a := range labels {
			if x := logits[i][c]; a == int32(c) && x == x {
				right, all := 0.0, 0.0
				for k, b := range labels {
					if y := logits[k][c]; b >= 0 && !(y < x) {
						all++
						if b == int32(c) {
							right++
						}
					}
				}
				sums[c] += right / all
			}
		}
	}
	return sums
}

func TestAFullStoreIsAnError(t *testing.T) {
	r := NewRanking([]Sides{{1, 1}, {1, 1}}, 1, sideOf)
	m := &memory{b: plain.Room(int(r.Size())), full: true}
	r.Begin(m)
	if err := r.Add([]float32{1, 2, 3, 4}, []int32{0, 1}); !errors.Is(err, errFull) {
		t.Error(err)
	}
	m.full = false
	if err := r.Add([]float32{1, 2, 3, 4}, []int32{0, 1}); err != nil {
		t.Error(err)
	}
	m.full = true
	if err := r.Sort(storeOf); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

func TestRankingAgainAllocatesNothing(t *testing.T) {
	r := NewRanking([]Sides{{40, 60}, {60, 40}}, 1, sideOf)
	store := &memory{b: plain.Room(int(r.Size()))}
	logits, labels := make([]float32, 200), make([]int32, 100)
	for i := range labels {
		logits[2*i], logits[2*i+1] = float32(i*7%13), float32(i*5%11)
		if i >= 60 {
			labels[i] = 1
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		r.Begin(store)
		if err := errors.Join(r.Add(logits, labels), r.Sort(nil)); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
