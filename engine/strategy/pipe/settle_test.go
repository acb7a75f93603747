package pipe

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/ending"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/traffic"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// settle has all nodes have all weights, and those of before.
func (j *job) settle(t testing.TB) {
	t.Helper()
	if err := j.each(func(n *node) error {
		rows := []tensor.Matrix{n.weights}
		if early := n.PeriodWeights(); !early.None() {
			rows = append(rows, early)
		}
		return n.Settle(t.Context(), 0, rows, &n.tally)
	}); err != nil {
		t.Fatal(err)
	}
}

// shared are jobs whose stages have weights of their own, with nodes to spare and without.
var shared = []struct{ stages, ways, nodes int }{{1, 1, 1}, {1, 2, 2}, {1, 2, 4}, {2, 1, 2}, {3, 1, 4}, {2, 2, 4}, {3, 2, 7}}

// Nodes train the columns of their stage alone, and have those of one node when they
// have settled, at the price that the formula says.
func TestNodesSettle(t *testing.T) {
	for _, model := range []string{"gcn", "gcnii", "gat"} {
		want := map[int][]float64{}
		for _, c := range shared {
			w := newWorld(t, 1, sizes, anywhere)
			s := newSetup(deep(model, 3), c.stages, c.ways, 6)
			s.nodes, s.rate = c.nodes, 0.1
			j := w.start(t, s)
			for epoch := 1; epoch <= 4; epoch++ {
				j.epoch(t, epoch)
			}
			name := fmt.Sprintf("%s, %+v", model, c)
			before := j.nodes[len(j.nodes)-1].read(j.nodes[len(j.nodes)-1].weights)
			j.settle(t)
			var payload uint64
			for i, n := range j.nodes {
				got := n.read(n.weights)
				if want[c.ways] == nil {
					want[c.ways] = n.read(n.weights)
				}
				if !slices.Equal(got, want[c.ways]) {
					t.Errorf("%s: node %d has other weights than one node", name, i)
				}
				if n.Parted() != (c.stages > 1 || c.nodes > c.ways) {
					t.Errorf("%s: parted is %v", name, n.Parted())
				}
				payload += n.payload(peer.Model)
			}
			if last := j.nodes[len(j.nodes)-1]; last.Parted() == slices.Equal(before, last.read(last.weights)) {
				t.Errorf("%s: what settling changed is another thing than what stages share", name)
			}
			sizes := arrange.Sizes{Stages: c.stages, Ways: c.ways, Nodes: c.nodes, Number: 8, Weights: j.model.Size()}
			if rows := uint64(2); payload != rows*sizes.Settled() {
				t.Errorf("%s: nodes sent %d bytes to settle, want %d", name, payload, rows*sizes.Settled())
			}
		}
	}
}

func (n *node) read(m tensor.Matrix) []float64 {
	x := make([]float64, m.Rows*m.Cols)
	n.Device.Read(x, m)
	return x
}

// The digest of all weights is that of the bytes of all, whoever has them, and the last
// stage returns it: of each way by itself, so that a way with other weights returns another.
func TestDigestGoesThroughStages(t *testing.T) {
	for _, c := range shared {
		w := newWorld(t, 1, sizes, anywhere)
		s := newSetup(deep("gcnii", 3), c.stages, c.ways, 6)
		s.nodes = c.nodes
		j := w.start(t, s)
		all := make([]byte, j.model.Size())
		for i := range all {
			all[i] = byte(i * i)
		}
		digests := func(epoch int, faulty int) (sums []string) {
			sums = make([]string, c.nodes)
			if err := j.each(func(n *node) error {
				from, to := n.Own()
				mine := slices.Clone(all[from:to])
				if n.Work.Self == faulty {
					mine[0]++
				}
				n.epoch = epoch
				sum, err := n.Digest(t.Context(), mine, &n.tally)
				sums[n.Work.Self] = string(sum)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return sums
		}
		right := sha256.Sum256(all)
		for epoch := range 3 {
			for node, sum := range digests(epoch, -1) {
				stage, ways := j.nodes[node].Seats.Of(node)
				if want := ways != nil && stage == c.stages-1; want != (sum == string(right[:])) || !want && sum != "" {
					t.Errorf("%+v, node %d returns %x", c, node, sum)
				}
			}
		}
		if c.ways < 2 {
			continue
		}
		faulty := j.nodes[0].Seats.Node(0, 1)
		for node, sum := range digests(4, faulty) {
			if _, ways := j.nodes[node].Seats.Of(node); sum != "" && (sum == string(right[:])) == slices.Contains(ways, 1) {
				t.Errorf("%+v, node %d, where node %d has other weights: %x", c, node, faulty, sum)
			}
		}
	}
}

// What comes from another node is no digest because that says so.
func TestWhatIsNoDigest(t *testing.T) {
	w := newWorld(t, 1, sizes, anywhere)
	j := w.start(t, newSetup(deep("gcn", 3), 2, 1, 6))
	first, second := j.nodes[j.nodes[0].Seats.Node(0, 0)], j.nodes[j.nodes[0].Seats.Node(1, 0)]
	first.Exchange.Offer(first.tag(exchange.LaneDigest, 0, 0), make([]byte, len(traffic.NewDigest(nil).Pause(nil))))
	if _, err := second.Digest(t.Context(), []byte("x"), nil); err == nil || !strings.Contains(err.Error(), "malformed digest") {
		t.Errorf("%v", err)
	}
	first.Exchange.Offer(first.tag(exchange.LaneDigest, 0, 0), []byte("short"))
	if _, err := second.Digest(t.Context(), []byte("x"), nil); err == nil {
		t.Error("a short one is taken")
	}
}

// What one node says all hear, and what is not finite of one stage's gradients too.
func TestWordsAreHeard(t *testing.T) {
	w := newWorld(t, 1, sizes, anywhere)
	s := newSetup(deep("gcn", 3), 3, 1, 6)
	j := w.start(t, s)
	said := func(mine func(node int) ending.Word) (all []ending.Word) {
		all = make([]ending.Word, len(j.nodes))
		if err := j.each(func(n *node) (err error) {
			_, all[n.Work.Self], err = n.Epoch(t.Context(), n.epoch+2, j.dropout(1), mine(n.Work.Self), &n.tally)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	nothing := func(int) ending.Word { return 0 }
	for _, c := range []struct {
		mine func(int) ending.Word
		want ending.Word
	}{{nothing, 0}, {func(node int) ending.Word { return ending.Word(node/2) * ending.Settle }, ending.Settle}} {
		if got := said(c.mine); !slices.Equal(got, []ending.Word{c.want, c.want, c.want}) {
			t.Errorf("all hear %v, want %v", got, c.want)
		}
	}
	// Of each node's gradient, what is another stage's says nothing.
	for other, want := range []ending.Word{ending.Unsound, 0} {
		all := make([]ending.Word, len(j.nodes))
		if err := j.each(func(n *node) (err error) {
			column := n.from
			if other > 0 {
				column = (n.to + 1) % j.model.Size()
			}
			g := make([]float64, j.model.Size())
			if n.stage == 1 {
				g[column] = math.NaN()
			}
			n.Device.Write(n.Gradients, g)
			n.epoch++
			_, all[n.Work.Self], err = n.conclude(t.Context(), 0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(all, []ending.Word{want, want, want}) {
			t.Errorf("all hear %v, want %v", all, want)
		}
	}
}

// What another node ends an epoch with is looked at before it is believed.
func TestWordsThatSayNothing(t *testing.T) {
	w := newWorld(t, 1, sizes, anywhere)
	for _, message := range [][]byte{{}, make([]byte, ending.Bytes-1), make([]byte, ending.Bytes+1), append(make([]byte, ending.Bytes-1), 0xff)} {
		j := w.start(t, newSetup(deep("gcn", 3), 2, 1, 6))
		err := j.each(func(n *node) error {
			if n.Work.Self == 0 {
				_, err := n.Exchange.Gather(t.Context(), exchange.Tag{Epoch: uint32(n.epoch + 1)}, message, nil)
				return err
			}
			_, _, err := n.conclude(t.Context(), 0)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "run the same version of hopmesh on all nodes of the job") {
			t.Errorf("%d bytes: %v", len(message), err)
		}
	}
}
