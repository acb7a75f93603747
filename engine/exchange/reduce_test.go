package exchange

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
)

var nodeCounts = []int{1, 2, 3, 5}

// What one node has added up in the order of the tree has the same bits as what any
// number of nodes has, whoever holds which leaves.
func TestTreesAreTheSameOnAnyNodes(t *testing.T) {
	t.Run("float32", treesAreTheSame[float32])
	t.Run("float64", treesAreTheSame[float64])
}

func treesAreTheSame[T Number](t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for _, nodes := range nodeCounts {
		_, all := mesh(nodes)
		summers := make([]*Summer[T], nodes)
		got := make([][]T, nodes)
		for step := range uint32(48) {
			leaves, columns := 1+r.IntN(64), 83
			if step >= 40 { // too much to be taken whole
				leaves, columns = 2+r.IntN(8), 20_000
			}
			if step == 0 || step == 40 {
				for i := range summers {
					summers[i] = NewSummer[T](columns)
				}
			}
			if step == 20 {
				leaves = 1000
			}
			holders, rows := holdings(r, leaves, nodes), make([][]T, leaves)
			for leaf, h := range holders {
				if h >= 0 {
					rows[leaf] = row[T](r, columns, step%2 == 0)
				}
			}
			want := treeOf(rows)
			if want == nil {
				want = make([]T, columns)
			}
			spans := Spans(holders, nodes)
			must(t, each(all, func(node int, x *Exchange) error {
				mine := sums(summers[node], rows, holders, node, spans[node])
				to := make([]T, columns)
				if len(mine) == 1 {
					to = mine[0]
				}
				_, err := Reduce(t.Context(), x, Round{Tag: Tag{Epoch: 1, Step: step}, Spans: spans}, mine, to)
				got[node] = to
				return err
			}))
			for node := range got {
				if !same(got[node], want) {
					t.Fatalf("node %d of %d, %v: %v, want %v", node, nodes, holders, got[node], want)
				}
			}
		}
	}
}

// All rows are taken by all nodes where that costs less than another round, and where it costs no
// more in bytes.
func TestWhoTakesAllRows(t *testing.T) {
	each := func(rows ...int) func(int) int { return func(node int) int { return rows[node] } }
	for _, c := range []struct {
		nodes, bytes int
		rows         func(int) int
		want         bool
	}{
		{1, 4, each(1), false},
		{2, 256 << 10, each(1, 1), true}, // as many bytes as otherwise
		{2, 256<<10 + 1, each(1, 1), false},
		{4, 85 << 10, each(1, 1, 1, 1), true},
		{4, 86 << 10, each(1, 1, 1, 1), false},
		{8, 24 << 10, each(1, 1, 1, 1, 1, 1, 1, 1), true},
		{8, 25 << 10, each(1, 1, 1, 1, 1, 1, 1, 1), false},
		{4, 0, each(3, 1, 0, 0), true},
		{4, 48 << 10, each(1, 0, 0, 0), true}, // one node's go to three
		{4, 86 << 10, each(1, 0, 0, 0), false},
		{2, 60 << 10, each(4, 1), true},
		{2, 90 << 10, each(4, 1), false},
	} {
		if got := whole(c.nodes, c.bytes, c.rows); got != c.want {
			t.Errorf("%d nodes, %d bytes: %v", c.nodes, c.bytes, got)
		}
	}
}

// Without spans rows are added up in the order of nodes, and each number crosses the
// network 2(N-1)/N times, or N-1 times where that is little.
func TestReduceInTheOrderOfNodes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for _, nodes := range nodeCounts {
		_, all := mesh(nodes)
		step := uint32(0)
		for _, columns := range []int{0, 1, 15, 16, 17, 48, 100, 1000, 1 << 14, 1 << 16, 1 << 17, 1 << 18} {
			mine := make([][]float32, nodes)
			for i := range mine {
				mine[i] = row[float32](r, columns, false)
			}
			want := slices.Clone(mine[0])
			for _, other := range mine[1:] {
				add(want, other)
			}
			kept := make([][]float32, nodes)
			for i := range kept {
				kept[i] = slices.Clone(mine[i])
			}
			var tally peer.Tally
			must(t, each(all, func(node int, x *Exchange) error {
				to := mine[node]
				if node%2 == 1 { // else in place
					to = make([]float32, columns)
				}
				notes, err := Reduce(t.Context(), x, Round{Tag: Tag{Epoch: 1, Step: step}, Tally: &tally, Note: Note{float64(node) + 0.5, 1 << node}}, [][]float32{mine[node]}, to)
				if err != nil {
					return err
				}
				for i, n := range notes {
					if len(notes) != nodes || n.Loss != float64(i)+0.5 || n.Flags != 1<<i {
						return fmt.Errorf("node %d has the notes %v", node, notes)
					}
				}
				if !same(to, want) {
					return fmt.Errorf("node %d of %d: %v, want %v", node, nodes, to, want)
				}
				if node%2 == 1 && !same(mine[node], kept[node]) {
					return fmt.Errorf("node %d of %d: its own row has changed", node, nodes)
				}
				return nil
			}))
			step++
			// Two nodes need one question for their rows, and one for their sums, but two where
			// they are long, or one of them has none.
			questions, bytes := uint64(0), uint64(2*(nodes-1)*4*columns)
			pairs := uint64(nodes * (nodes - 1) / 2)
			for a := range nodes {
				for b := range a {
					questions++
					sizes := [2]int{}
					for i, node := range [2]int{a, b} {
						first, end := share(columns, node, nodes)
						sizes[i] = 4 * (end - first)
					}
					// Only the last numbers of columns are long, and their shares are alike.
					if noteSize+sizes[0] > swapBytes {
						questions++
					}
					if sizes[0]+sizes[1] > 0 {
						questions++
					}
					if sizes[0] > swapBytes {
						questions++
					}
				}
			}
			if nodes > 1 && whole(nodes, 4*columns, func(int) int { return 1 }) {
				bytes, questions = uint64(nodes*(nodes-1)*4*columns), pairs
				if noteSize+4*columns > swapBytes {
					questions *= 2
				}
			}
			bytes += 2*pairs*noteSize + questions*(peer.QueryFraming+columnsSize+peer.AnswerFraming)
			v := VolumeOf(nodes, columns, 4, nil)
			if v.All.Bytes[peer.Gradient] != bytes || v.All.Requests[peer.Gradient] != questions {
				t.Errorf("%d nodes, %d columns: a volume of %v, want %d bytes in %d requests", nodes, columns, v.All, bytes, questions)
			}
			if mean := bytes / uint64(nodes); v.Busiest < mean || v.Busiest > mean+mean/2+2*shareUnit*4*uint64(nodes) {
				t.Errorf("%d nodes, %d columns: %d bytes to the busiest, and %d on average", nodes, columns, v.Busiest, mean)
			}
			if mean := int(questions) / nodes; v.Asked < mean || v.Asked > mean+2 || v.Asked == 0 && nodes > 1 {
				t.Errorf("%d nodes, %d columns: one asks %d questions, and %d are asked on average", nodes, columns, v.Asked, mean)
			}
			c := tally.Read()
			if c.Bytes[peer.Gradient] != bytes || c.Requests[peer.Gradient] != questions {
				t.Errorf("%d nodes, %d columns: %v, want %d bytes in %d requests", nodes, columns, c, bytes, questions)
			}
			if nodes > 1 && columns == 1<<14 {
				if least, most := shareSizes(columns, nodes); most-least > 2*shareUnit {
					t.Errorf("%d nodes: shares of %d to %d columns", nodes, least, most)
				}
			}
		}
	}
}

func shareSizes(columns, nodes int) (least, most int) {
	least = columns
	for node := range nodes {
		first, end := share(columns, node, nodes)
		least, most = min(least, end-first), max(most, end-first)
	}
	return least, most
}

// One node adds up its own rows, however many, and sends nothing.
func TestOneNodeHasManyRows(t *testing.T) {
	if v := VolumeOf(1, 100, 4, []int{8}); v.All != (peer.Counts{}) || v.Busiest != 0 || v.Rounds != 0 {
		t.Errorf("one node sends %v", v.All)
	}
	if rounds, came := Rounds(1, 400); rounds != 0 || came != 0 {
		t.Errorf("one node takes %d rounds for %g bytes", rounds, came)
	}
	_, all := mesh(1)
	to := make([]float32, 20)
	spans := [][]Span{{{First: 0}, {First: 2}}}
	mine := [][]float32{slices.Repeat([]float32{1}, 20), slices.Repeat([]float32{2}, 20)}
	if _, err := Reduce(t.Context(), all[0], Round{Tag: Tag{Epoch: 1}, Spans: spans}, mine, to); err != nil || to[19] != 3 {
		t.Errorf("%v, %v", to, err)
	}
}

// Where nobody brings rows the sum is zero, whatever was summed before.
func TestNoRowsAtAll(t *testing.T) {
	_, all := mesh(3)
	for step, holders := range [][]int{{0, 1, 2}, {0, 0, 0}, {-1, -1, -1}, {-1}, {-1}, {2, -1, -1}} {
		spans, want := Spans(holders, 3), float32(0)
		for _, h := range holders {
			if h >= 0 {
				want++
			}
		}
		must(t, each(all, func(node int, x *Exchange) error {
			s, to := NewSummer[float32](100), make([]float32, 100)
			to[99] = 7
			s.Begin(spans[node])
			for leaf, h := range holders {
				if h == node {
					s.Row(leaf)[99] = 1
				}
			}
			_, err := Reduce(t.Context(), x, Round{Tag: Tag{Epoch: 1, Step: uint32(step)}, Spans: spans}, s.Sums(), to)
			if err == nil && (to[99] != want || to[0] != 0) {
				err = fmt.Errorf("node %d, %v: %v, want %v", node, holders, to, want)
			}
			return err
		}))
	}
}

// A node whose share is empty takes notes only. Its question may be asked again when the others
// have long finished.
func TestNotesReachWhoIsLate(t *testing.T) {
	const nodes, columns, leaves = 3, 17, 8192 // too many rows to be taken whole
	_, all := mesh(nodes)
	// Node 0 has no columns: the shares are of 2 units for 3 nodes.
	if first, end := share(columns, 0, nodes); first != end {
		t.Fatalf("node 0 has the columns %d to %d", first, end)
	}
	holders := make([]int, leaves)
	for i := range holders {
		holders[i] = i % nodes
	}
	spans := Spans(holders, nodes)
	must(t, each(all, func(node int, x *Exchange) error {
		mine, to := make([][]float64, len(spans[node])), make([]float64, columns)
		for i := range mine {
			mine[i] = slices.Repeat([]float64{1}, columns)
		}
		notes, err := Reduce(t.Context(), x, Round{Tag: Tag{Epoch: 1}, Note: Note{Loss: float64(node)}, Spans: spans}, mine, to)
		if err != nil {
			return err
		}
		if to[0] != leaves || to[16] != leaves || notes[2].Loss != 2 || notes[1].Loss != 1 || notes[0].Loss != 0 {
			return fmt.Errorf("node %d: %v, %v", node, to, notes)
		}
		return nil
	}))
	q := question(Tag{Epoch: 1, Lane: LaneReduce}, 100)
	for node := 1; node < 3; node++ {
		for _, brings := range []int{0, noteSize + 8} {
			q.Body = make([]byte, columnsSize+brings)
			must(t, all[node].answer(t.Context(), 0, q, func(parts ...[]byte) error {
				if got := noteOf(parts[0]); got.Loss != float64(node) {
					t.Errorf("node %d answers with the note %v", node, got)
				}
				return nil
			}))
		}
		putColumns(q.Body, 0, 8)
		if err := all[node].answer(t.Context(), 0, q, func(...[]byte) error { return nil }); !errors.Is(err, peer.ErrRefused) {
			t.Errorf("node %d gives rows that are withdrawn: %v", node, err)
		}
	}
}

func TestGather(t *testing.T) {
	for _, nodes := range nodeCounts {
		_, all := mesh(nodes)
		var tally peer.Tally
		kept, text := make([][][]byte, nodes), make([]string, nodes)
		for step := range uint32(10) {
			if nodes > 1 {
				tally.Reset()
			}
			must(t, each(all, func(node int, x *Exchange) error {
				mine := []byte(strings.Repeat(fmt.Sprint(node), int(step)*(node+1)))
				got, err := x.Gather(t.Context(), Tag{Epoch: 1, Step: step, Index: 7}, mine, &tally)
				if err != nil {
					return err
				}
				clear(mine) // it is the caller's again
				for i := range nodes {
					if want := strings.Repeat(fmt.Sprint(i), int(step)*(i+1)); len(got) != nodes || string(got[i]) != want {
						return fmt.Errorf("node %d has %q, want %q of %d", node, got, want, i)
					}
				}
				if step > 0 { // those before are valid still
					if again := fmt.Sprintf("%q", kept[node]); again != text[node] {
						return fmt.Errorf("what node %d gathered before, %s, is now %s", node, text[node], again)
					}
				}
				kept[node], text[node] = got, fmt.Sprintf("%q", got)
				return nil
			}))
			c := tally.Read()
			if want := uint64(nodes * (nodes - 1)); c.Requests[peer.Control] != want {
				t.Errorf("%d requests in place of %d", c.Requests[peer.Control], want)
			}
		}
	}
	_, all := mesh(1)
	if _, err := all[0].Gather(t.Context(), Tag{}, make([]byte, messageLimit+1), nil); err == nil {
		t.Error("a message over the limit was sent")
	}
}

func TestWrongRowsAreRefused(t *testing.T) {
	_, all := mesh(2)
	row := []float32{1, 2}
	for name, r := range map[string]struct {
		spans [][]Span
		mine  [][]float32
	}{
		"a row too few":         {nil, nil},
		"a row too many":        {nil, [][]float32{row, row}},
		"a column too few":      {nil, [][]float32{{1}}},
		"spans of others":       {[][]Span{{{0, 0}}}, [][]float32{row}},
		"as many rows as spans": {[][]Span{{{0, 0}, {2, 0}}, nil}, [][]float32{row}},
	} {
		if _, err := Reduce(t.Context(), all[0], Round{Spans: r.spans}, r.mine, make([]float32, 2)); err == nil {
			t.Errorf("%s: it was added up", name)
		}
	}
}

// Whoever fails first ends the others' waits, and all is as it was.
func TestOneFailureEndsARound(t *testing.T) {
	net, all := mesh(3)
	lost := errors.New("the line is cut")
	net.Trouble = func(_ context.Context, from, to int, _ peer.Query) error {
		if from == 0 && to == 2 {
			return lost
		}
		return nil
	}
	// Node 1 never offers anything: only the failure ends this.
	to := []float32{5}
	_, err := Reduce(t.Context(), all[0], Round{Tag: Tag{Epoch: 4, Step: 2}}, [][]float32{to}, to)
	if !errors.Is(err, lost) || !strings.Contains(err.Error(), "epoch 4, step 2") || to[0] != 5 {
		t.Errorf("ended by %v with %v", err, to)
	}
	if _, err := all[0].Gather(t.Context(), Tag{Epoch: 4}, nil, nil); !errors.Is(err, lost) {
		t.Errorf("ended by %v", err)
	}
	net.Trouble = nil
	must(t, each(all, func(node int, x *Exchange) error {
		to := []float32{float32(node)}
		if _, err := Reduce(t.Context(), x, Round{Tag: Tag{Epoch: 5}}, [][]float32{to}, to); err != nil || to[0] != 3 {
			return fmt.Errorf("node %d after a failure: %v, %w", node, to, err)
		}
		return nil
	}))
}

// A node that answers with another number of bytes ends the sum with its name.
func TestShortAnswersAreFound(t *testing.T) {
	_, all := mesh(2)
	all[1].Offer(Tag{Epoch: 1, Lane: LaneReduce}, []byte("0123"))
	_, err := Reduce(t.Context(), all[0], Round{Tag: Tag{Epoch: 1}}, [][]float32{make([]float32, 1)}, make([]float32, 1))
	if err == nil || !strings.Contains(err.Error(), "node b answers with") {
		t.Errorf("ended by %v", err)
	}
}
