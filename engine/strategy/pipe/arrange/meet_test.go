package arrange

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// four is a shape of four ways of two chunks each.
func four(t testing.TB) *Shape {
	t.Helper()
	s, err := NewShape([]uint32{0, 3, 10, 12, 20, 21, 30, 33, 40}, nil, 4, 8)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lists are what each way of that shape mirrors.
var lists = [][]uint32{{10, 12, 19, 20, 39}, {0, 9, 32}, {}, {0, 1, 2, 12, 20, 21, 29}}

// Nodes that meet know all mirrors of their ways and, of the others, those that their ways
// own, and no others; whoever has no way, or another stage, knows none of them.
func TestMeetings(t *testing.T) {
	s := four(t)
	for _, c := range []struct{ stages, nodes int }{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 6}, {2, 8}, {2, 9}} {
		seats := NewSeats(c.stages, s.Ways(), c.nodes, func(int, int) uint64 { return 0 })
		net := loopback.New(c.nodes)
		all, errs := make([]*Mirrors, c.nodes), make([]error, c.nodes)
		var running sync.WaitGroup
		for node := range c.nodes {
			m := NewMirrors(s)
			_, mine := seats.Of(node)
			for _, way := range mine {
				m.Of[way] = lists[way]
			}
			peers := net.Node(node)
			work := peer.Work{Nodes: strings.Split("abcdefghi", "")[:c.nodes], Self: node}
			x := exchange.New(peers, work)
			peers.Open()
			all[node] = m
			running.Go(func() { errs[node] = m.Meet(t.Context(), x, work, seats, exchange.Tag{Step: 9}, nil) })
		}
		running.Wait()
		for node, m := range all {
			if errs[node] != nil {
				t.Fatal(errs[node])
			}
			_, mine := seats.Of(node)
			known := 0
			for way := range s.Ways() {
				want := lists[way]
				if !slices.Contains(mine, way) {
					want = slices.DeleteFunc(slices.Clone(want), func(v uint32) bool { return !slices.Contains(mine, wayOf(s, v)) })
				}
				if known += len(want); !slices.Equal(m.Of[way], want) {
					t.Errorf("%+v: node %d knows of way %d %v and not %v", c, node, way, m.Of[way], want)
				}
				for other := range s.Ways() {
					for position := range s.Positions() {
						a, b := s.Vertices(other, position)
						n := 0
						for _, v := range want {
							if v >= a && v < b {
								n++
							}
						}
						if got := m.Number(way, other, position); got != n {
							t.Errorf("%+v: node %d knows %d mirrors of way %d at position %d of way %d, and not %d", c, node, got, way, position, other, n)
						}
					}
				}
			}
			if got := m.Known(mine); got != known {
				t.Errorf("%+v: node %d has %d mirrors, and not %d", c, node, got, known)
			}
		}
	}
}

func wayOf(s *Shape, v uint32) (way int) {
	for number := range s.Ways() {
		if first, end, _, _ := s.Of(number); v >= first && v < end {
			way = number
		}
	}
	return way
}

// A list of mirrors is refused unless it ascends among those of its way.
func TestStrangeMirrors(t *testing.T) {
	m := &meeting{mirrors: NewMirrors(four(t))}
	for _, c := range []struct {
		ids []uint32
		ok  bool
	}{{nil, true}, {[]uint32{10, 11, 19}, true}, {[]uint32{9, 10}, false}, {[]uint32{10, 20}, false}, {[]uint32{11, 11}, false}, {[]uint32{12, 11}, false}} {
		if got := m.ascend(c.ids, 1); got != c.ok {
			t.Errorf("%v: %v", c.ids, got)
		}
	}
}

func FuzzMirrors(f *testing.F) {
	m := NewMirrors(four(f))
	copy(m.Of, lists)
	f.Add(m.encode([]int{0, 3}), 2)
	f.Add([]byte{0, 0, 0, 0x80, 0}, 1)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, b []byte, ways int) {
		if ways < 0 || ways > 4 {
			return
		}
		numbers, err := m.read(b, ways)
		if err != nil {
			return
		}
		if len(numbers) != ways {
			t.Fatalf("%d ways and not %d", len(numbers), ways)
		}
		for _, of := range numbers {
			for way, n := range of {
				if first, end, _, _ := m.shape.Of(way); n < 0 || n > int(end-first) {
					t.Fatalf("%d rows of %d", n, end-first)
				}
			}
		}
	})
	if got, err := m.read(m.encode([]int{0, 3}), 2); err != nil || !reflect.DeepEqual(got, [][]int{{0, 3, 1, 1}, {3, 1, 3, 0}}) {
		f.Error(got, err)
	}
}
