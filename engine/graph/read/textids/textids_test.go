package textids

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/intids"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Ids have the numbers in which they first appear, whatever text they are and however often they
// come. So many share hashes of 32 bits.
func TestNumbersAreThoseOfAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s, want, names := New(&source.Memory{}), map[string]uint32{}, []string{}
	if s.Len() != 0 || s.Number(nil) != intids.Unknown || s.Number([]byte("a")) != intids.Unknown {
		t.Error("an empty set knows ids")
	}
	fixed := []string{"", "a", "ab", "b", "abb", "a\x00", "\x00", "0", "00", "-1", strings.Repeat("x", 1<<17), "\xff\xfe"}
	for i := range 400_000 {
		name := fmt.Sprintf("v%d", r.IntN(300_000))
		if i < 2*len(fixed) {
			name = fixed[i%len(fixed)]
		}
		if _, known := want[name]; !known {
			want[name] = uint32(len(want))
			names = append(names, name)
		}
		id := []byte(name)
		if err := s.Add(id); err != nil {
			t.Fatal(err)
		}
		clear(id) // the set keeps its own
	}
	if s.Len() != len(want) {
		t.Fatalf("there are %d ids and not %d", s.Len(), len(want))
	}
	for name, number := range want {
		if got := s.Number([]byte(name)); got != number {
			t.Fatalf("%.20q is number %d and not %d", name, got, number)
		}
	}
	for _, name := range []string{"v300000", "v", "A", "a\x00\x00", "c"} {
		if got := s.Number([]byte(name)); got != intids.Unknown {
			t.Errorf("%q was never added, and has number %d", name, got)
		}
	}
	all := s.Strings()
	if len(all.Offsets) != len(names)+1 || all.Offsets[0] != 0 || all.Offsets[len(names)] != int64(len(all.Bytes)) {
		t.Fatalf("there are %d offsets of %d ids", len(all.Offsets), len(names))
	}
	for i, name := range names {
		if got := string(all.Bytes[all.Offsets[i]:all.Offsets[i+1]]); got != name {
			t.Fatalf("id %d is %.20q and not %.20q", i, got, name)
		}
	}
}

// All memory is counted before it is taken, within the limit, and is in proportion to the ids.
func TestMemoryIsCounted(t *testing.T) {
	for _, n := range []int{1, 1000, 50_000} {
		memory := &source.Memory{}
		s, text := New(memory), 0
		for i := range n {
			id := fmt.Appendf(nil, "vertex-%d", i)
			text += len(id)
			if err := s.Add(id); err != nil {
				t.Fatal(err)
			}
			if held := uint64(cap(s.bytes) + 8*cap(s.offsets) + 8*len(s.slots)); memory.Held() != held {
				t.Fatalf("%d ids hold %d bytes, and %d are counted", i+1, held, memory.Held())
			}
		}
		if held, most := memory.Held(), uint64(3*text/2+8*n*3/2+8*3*n+24<<10); held > most {
			t.Errorf("%d ids of %d bytes hold %d bytes, more than %d", n, text, held, most)
		}
		if took := testing.AllocsPerRun(100, func() {
			if err := s.Add([]byte("vertex-0")); err != nil {
				t.Fatal(err)
			}
		}); took != 0 {
			t.Errorf("a known id takes memory %v times", took)
		}
	}
}

// Where memory ends, that is said, whichever of what is held would grow.
func TestLittleMemory(t *testing.T) {
	for _, limit := range []uint64{1, 8 << 10, 9 << 10, 16 << 10, 100 << 10, 1 << 20} {
		for _, length := range []int{1, 5000} {
			memory := &source.Memory{Limit: limit}
			s := New(memory)
			var err error
			for i := 0; err == nil; i++ {
				if i > 1<<20 {
					t.Fatalf("%d ids fit in %d bytes", i, limit)
				}
				err = s.Add(fmt.Appendf(nil, "%0*d", length, i))
			}
			if !errors.Is(err, source.ErrMemory) || memory.Held() > limit {
				t.Errorf("of %d bytes %d are held: %v", limit, memory.Held(), err)
			}
		}
	}
}
