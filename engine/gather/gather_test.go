package gather

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// A viewer reads dense rows on one device.
type viewer struct {
	device tensor.Device
	arena  tensor.Arena
}

func newViewer(d tensor.Device) viewer {
	a, err := d.NewArena(0)
	if err != nil {
		panic(err)
	}
	return viewer{d, a}
}

// viewers are used by one goroutine at a time, which holds viewing.
var (
	viewing sync.Mutex
	viewers = []viewer{newViewer(cpu.New(1)), newViewer(reference.New())}
)

// bitsOf are those of the dense rows at places.
func (w viewer) bitsOf(s *features.Store, places []uint32, far *features.Far) []uint64 {
	w.arena.Reset()
	y := w.arena.Alloc(w.device.Type(), len(places), s.Columns())
	s.Dense(w.device, w.arena, y, places, far)
	numbers := make([]float64, len(places)*s.Columns())
	w.device.Read(numbers, y)
	out := make([]uint64, len(numbers))
	for i, f := range numbers {
		out[i] = math.Float64bits(f)
	}
	return out
}

// checkRows compares the rows of sets with those of a store that has all.
func (m *mesh) checkRows(t *testing.T, node int, r *Rows, sets [][]uint32) {
	t.Helper()
	viewing.Lock()
	defer viewing.Unlock()
	for i, set := range sets {
		if len(r.Places[i]) != len(set) {
			t.Fatalf("%d places for %d vertices", len(r.Places[i]), len(set))
		}
		if m.whole.Sparse() {
			var got, want features.Rows
			m.stores[node].Fill(&got, r.Places[i], true, &r.Far)
			m.whole.Fill(&want, set, true, nil)
			if !slices.Equal(got.Indptr, want.Indptr) || !slices.Equal(got.Indices, want.Indices) ||
				!slices.Equal(got.Values, want.Values) || (got.Values == nil) != (want.Values == nil) {
				t.Fatalf("set %d: rows of %d entries are others, or in another order, than those of %d", i, got.Entries(), want.Entries())
			}
			continue
		}
		for _, w := range viewers {
			got, want := w.bitsOf(m.stores[node], r.Places[i], &r.Far), w.bitsOf(m.whole, set, nil)
			for at := range want {
				if got[at] != want[at] {
					t.Fatalf("set %d on %s: %x, not %x, at %d of %d", i, w.device.Name(), got[at], want[at], at, len(want))
				}
			}
		}
	}
}

var options = []Options{{}, {Apart: true}, {Repeated: true}, {true, true}}

// TestRows: on any number of nodes, one of which has no shard, all rows are those of a
// store that has all, bit for bit.
func TestRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range kinds {
		shards := graphOf(k, 20, 0, 13, 1, 30, 16)
		for _, how := range features.Hows {
			for _, owners := range [][]int{{0, 0, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 1}, {4, 1, 3, 0, 1, 3}} {
				m := meshOf(t, shards, 5, owners, how, "")
				for node := range 5 {
					var r Rows
					for _, o := range options {
						sets := [][]uint32{m.some(rng, 40), nil, m.some(rng, 1), m.some(rng, 80)}
						m.gather(node, &r, sets, o, nil)
						m.checkRows(t, node, &r, sets)
						m.gather(node, &r, sets[:1], o, nil) // fewer, and one alone
						m.checkRows(t, node, &r, sets[:1])
					}
				}
			}
		}
	}
}

// TestAnswersOfStoredRows: an answer copies rows only if they are sent otherwise than they
// are stored.
func TestAnswersOfStoredRows(t *testing.T) {
	for _, c := range []struct {
		kind      kind
		how, wire string
		copied    bool
	}{
		{kinds[0], "none", "", false}, {kinds[0], "none", "bf16", true}, {kinds[0], "row", "", true}, {kinds[0], "binary", "", false},
	} {
		m := meshOf(t, graphOf(c.kind, 20, 30), 2, []int{0, 1}, c.how, c.wire)
		s := m.sources[1]
		var ids, want []byte
		for v := uint32(20); v < 50; v += 3 {
			ids = binary.LittleEndian.AppendUint32(ids, v)
			want = s.store.Append(want, s.form, v)
		}
		var a answer
		if stored := s.stored(&a, ids); stored == c.copied {
			t.Errorf("%s as %q: rows are sent as they are stored: %v", c.how, c.wire, stored)
		} else if stored && !bytes.Equal(bytes.Join(a.rows, nil), want) {
			t.Errorf("%s as %q: other rows are sent", c.how, c.wire)
		}
	}
}

// TestRounded: what is sent in halves is rounded, where it is not exact anyway.
func TestRounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range kinds {
		m := meshOf(t, graphOf(k, 20, 30), 2, []int{0, 1}, "row", "bf16")
		sets := [][]uint32{m.some(rng, 40)}
		if k == kinds[0] {
			for i, f := range m.shards[1].Dense {
				var half [1]uint16
				graph.ToBF16(half[:], []float32{f})
				m.shards[1].Dense[i] = math.Float32frombits(uint32(half[0]) << 16)
			}
		}
		var r Rows
		m.gather(0, &r, sets, Options{}, nil)
		m.checkRows(t, 0, &r, sets)
		if !k.sparse && r.Far.Dense.Type != tensor.BF16 {
			t.Errorf("%+v: rows are %s", k, r.Far.Dense.Type)
		}
	}
	m := meshOf(t, graphOf(kinds[0], 4), 1, []int{0}, "none", "")
	if err := Register(m.net.Node(0)).Ready(m.stores[0], m.work(0), m.layout, "f16"); err == nil {
		t.Error("f16 is no way to send features")
	}
}

func TestLayoutsThatDoNotFit(t *testing.T) {
	m := meshOf(t, graphOf(kinds[0], 4, 5), 2, []int{0, 1}, "none", "")
	other := m.layout
	other.Firsts = []uint32{0, 4, 8}
	nobody := m.layout
	nobody.Owners = []int{0, 2}
	mine := m.layout
	mine.Owners = []int{0, 0}
	for _, c := range []struct {
		err error
		say string
	}{
		{Register(m.net.Node(0)).Ready(m.stores[0], m.work(0), other, ""), "8 vertices"},
		{Register(m.net.Node(0)).Ready(m.stores[0], m.work(0), nobody, ""), "node 2 of 2"},
		{Register(m.net.Node(0)).Ready(m.stores[0], m.work(0), mine, ""), "shard 1 is owned by this node"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.say) {
			t.Errorf("%v, which should say %q", c.err, c.say)
		}
	}
}

func TestTableBytes(t *testing.T) {
	for _, vertices := range []int{0, 128, 129, 1000, 1 << 16} {
		var of table
		of.reserve(vertices)
		if vertices > 128 && of.bytes() != TableBytes(vertices) || of.bytes() > TableBytes(vertices) {
			t.Errorf("%d vertices: %d bytes, and forecast are %d", vertices, of.bytes(), TableBytes(vertices))
		}
	}
}
