package gather

import (
	"math/rand/v2"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// TestCounts: rows, questions and their bytes are those that the options say, to the
// last one.
func TestCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	m := meshOf(t, graphOf(kinds[0], 20, 0, 13, 30, 17), 4, []int{0, 1, 2, 1, 2}, "none", "")
	for node := range 4 { // the last has no shard
		for range 20 {
			sets := [][]uint32{m.some(rng, rng.IntN(40)), m.some(rng, rng.IntN(5)), nil, m.some(rng, rng.IntN(80))}
			once := union(sets)
			all, remote, asked := 0, 0, 0
			for _, set := range sets {
				all += len(set)
				remote += m.far(node, set)
				asked += m.owners(node, set)
			}
			for o, want := range map[Options][3]int{
				{}:                            {len(once) - m.far(node, once), m.far(node, once), m.owners(node, once)},
				{Repeated: true}:              {all - remote, remote, m.owners(node, once)},
				{Apart: true}:                 {all - remote, remote, asked},
				{Apart: true, Repeated: true}: {all - remote, remote, asked},
			} {
				var r Rows
				var tally peer.Tally
				m.gather(node, &r, sets, o, &tally)
				counts := tally.Read()
				if got := [3]int{r.Local, r.Remote, int(counts.Requests[peer.Feature])}; got != want {
					t.Fatalf("node %d, %+v: local, remote, questions: %v, not %v", node, o, got, want)
				}
				bytes := want[2]*(peer.QueryFraming+peer.AnswerFraming) + r.Remote*(4+9*4)
				if counts.Bytes[peer.Feature] != uint64(bytes) {
					t.Fatalf("node %d, %+v: %d bytes, not %d", node, o, counts.Bytes[peer.Feature], bytes)
				}
			}
		}
	}
}

// TestMarksAreForgotten: what was seen before does not count, also when the numbers of
// marks have run out.
func TestMarksAreForgotten(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	m := meshOf(t, graphOf(kinds[0], 50, 50), 2, []int{0, 1}, "none", "")
	var r Rows
	for range 20 {
		sets := [][]uint32{m.some(rng, 30), m.some(rng, 30)}
		m.gather(0, &r, sets, Options{}, nil)
		m.checkRows(t, 0, &r, sets)
		once := union(sets)
		if far := m.far(0, once); r.Remote != far || r.Local != len(once)-far {
			t.Fatalf("%d rows are here and %d elsewhere, of %d, %d of them elsewhere", r.Local, r.Remote, len(once), far)
		}
		table := m.sources[0].tables[0]
		if table.base < 1<<31 {
			table.base = 1<<32 - 102 - 3*uint32(rng.IntN(40)) // it runs out soon
		}
	}
	if n := len(m.sources[0].tables); n != 1 {
		t.Errorf("%d tables for one goroutine", n)
	}
}

// TestManyAndFewVertices: it does not matter whether sets are so large that local vertices
// have bits, nor how the table has to grow for the others.
func TestManyAndFewVertices(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const each, least = 10_000, 40
	m := meshOf(t, graphOf(kinds[0], each, each), 2, []int{0, 1}, "none", "")
	var r Rows
	was := map[bool]bool{}
	for _, n := range []int{least, 3000, 50, 2 * each, 60, 5000} {
		sets := [][]uint32{m.some(rng, n), m.some(rng, n/2)}
		m.gather(0, &r, sets, Options{}, nil)
		m.checkRows(t, 0, &r, sets)
		once := union(sets)
		if far := m.far(0, once); r.Remote != far || r.Local != len(once)-far {
			t.Fatalf("%d rows are here and %d elsewhere, of %d, %d of them elsewhere", r.Local, r.Remote, len(once), far)
		}
		marks := m.sources[0].tables[0]
		was[marks.dense] = true
		if dense := 2*each/bitsPer <= n+n/2; marks.dense != dense {
			t.Errorf("bits for %d of %d vertices: %v", n+n/2, 2*each, marks.dense)
		}
		if bytes := marks.bytes() + 8*uint64(len(marks.bits)); n == least && bytes > 8*leastSlots {
			t.Errorf("%d bytes for %d vertices", bytes, n)
		}
		marks.base = max(marks.base, 1<<32-1-3*uint32(len(marks.slots)/2)) // it runs out while the table grows
	}
	if !was[true] || !was[false] {
		t.Error(was)
	}
}

// TestNothingToGather asks nobody.
func TestNothingToGather(t *testing.T) {
	for _, k := range kinds {
		m := meshOf(t, graphOf(k, 20, 20), 3, []int{0, 1}, "row", "")
		for _, o := range options {
			for _, sets := range [][][]uint32{nil, {nil}, {nil, {}}, {{1, 2}, {3}}, {{3, 1}, {2}}} {
				r := Rows{Local: 9, Remote: 9}
				var tally peer.Tally
				m.gather(0, &r, sets, o, &tally)
				m.checkRows(t, 0, &r, sets)
				if r.Remote != 0 || tally.Read() != (peer.Counts{}) || r.Local != len(union(sets)) {
					t.Errorf("%v: %d local and %d remote rows, %v", sets, r.Local, r.Remote, tally.Read())
				}
			}
		}
	}
}

// TestLongOnesAreSplit: questions and answers over their bounds are several, of the
// same rows.
func TestLongOnesAreSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, k := range kinds {
		for _, most := range []most{{4 * 7, 1 << 20}, {1 << 20, 150}} {
			m := meshOf(t, graphOf(k, 30, 40, 30), 3, []int{0, 1, 2}, "row", "")
			for _, s := range m.sources {
				s.most = most
			}
			for _, o := range options {
				var r Rows
				var tally peer.Tally
				sets := [][]uint32{m.some(rng, 100), m.some(rng, 50)}
				m.gather(0, &r, sets, o, &tally)
				m.checkRows(t, 0, &r, sets)
				if got := tally.Read().Requests[peer.Feature]; got < 6 || got > 70 {
					t.Errorf("%+v: %d questions", o, got)
				}
			}
		}
	}
}
