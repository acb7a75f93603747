package p3

import (
	"fmt"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// counted is what a step of all nodes has sent, but for framing, and what the formulas
// of P3 need to know of it: with is how many nodes have roots.
func counted(t *testing.T, j *job, nodes int) (sent [peer.Kinds]int, requests uint64, targets, blocks, with int) {
	t.Helper()
	tb := j.sit(t, nodes)
	for _, s := range tb.seats {
		s.front.From(1, 0)
	}
	if err := tb.run(t.Context(), 1, 0, rootsOf(j, 0, 20)); err != nil {
		t.Fatal(err)
	}
	for _, s := range tb.seats {
		c := s.tally.Read()
		for k := range sent {
			sent[k] += int(c.Bytes[k]) - int(c.Requests[k])*(peer.QueryFraming+peer.AnswerFraming)
		}
		requests += c.Requests[peer.Activation]
		targets, blocks, with = targets+s.targets, blocks+s.edges, with+min(1, s.targets)
	}
	return sent, requests, targets, blocks, with
}

func TestBytesAreThoseOfTheFormulas(t *testing.T) {
	for _, sliced := range []bool{false, true} {
		for _, resample := range []bool{false, true} {
			t.Run(fmt.Sprintf("roots in slices %v, resampled %v", sliced, resample), func(t *testing.T) { formulas(t, sliced, resample) })
		}
	}
}

func formulas(t *testing.T, sliced, resample bool) {
	const element = 8 // of the reference device
	var last int
	for _, c := range []struct{ columns, hidden int }{{20, 4}, {40, 4}, {20, 8}} {
		for _, k := range []kindOf{denseKind, sparseKind} {
			for _, nodes := range []int{2, 3, 5} {
				spec := nn.Defaults("sage")
				spec.Layers, spec.Hidden = 2, c.hidden
				j := newJob(spec, k, c.columns)
				j.sliced, j.resample = sliced, resample
				sent, requests, targets, blocks, with := counted(t, j, nodes)
				what := fmt.Sprintf("%+v, %d columns, hidden %d, %d nodes", k, c.columns, c.hidden, nodes)
				// 2(N-1) |V_1| H e a node, |V_1| being the mean.
				if want := 2 * (nodes - 1) * targets * c.hidden * element; sent[peer.Activation] != want {
					t.Errorf("%s: %d bytes of activations in place of %d", what, sent[peer.Activation], want)
				}
				if want := 2 * with * (nodes - 1); int(requests) != want {
					t.Errorf("%s: %d messages of activations in place of %d", what, requests, want)
				}
				if sent[peer.Feature] != 0 {
					t.Errorf("%s: %d bytes of features", what, sent[peer.Feature])
				}
				// All rows of the two weights go to all others once.
				if want := (nodes - 1) * 2 * c.columns * c.hidden * element; sent[peer.Model] != want {
					t.Errorf("%s: %d bytes of the model in place of %d", what, sent[peer.Model], want)
				}
				// Sources, edges and targets, four bytes each; nothing where all draw them.
				want := (nodes - 1) * (4*(blocks+targets) + nodes*headSize + with*groupSize)
				if resample {
					want = 0
				}
				if got := sent[peer.Topology]; got != want {
					t.Errorf("%s: %d bytes of topology in place of %d", what, got, want)
				}
				switch activations := sent[peer.Activation]; {
				case nodes != 5 || k != denseKind:
				case c.columns == 40 && activations != last:
					t.Errorf("twice as many columns make %d bytes of activations out of %d", activations, last)
				case c.hidden == 8 && activations != 2*last:
					t.Errorf("twice the width makes %d bytes of activations out of %d", activations, last)
				default:
					last = activations
				}
			}
		}
	}
}

// Where edges are weighed by products of the sources' rows, those travel: 2(N-1) |V_0| H e a node,
// H being the columns of all heads. A gatv2 has two products.
func TestBytesOfSources(t *testing.T) {
	const hidden, element = 8, 8
	for version, products := range map[int]int{1: 1, 2: 2} {
		for _, nodes := range []int{2, 3} {
			spec := nn.Defaults("gat")
			spec.Layers, spec.Hidden, spec.Heads, spec.Version = 2, hidden/2, 2, version
			j := newJob(spec, denseKind, 20)
			tb := j.sit(t, nodes)
			for _, s := range tb.seats {
				s.front.From(1, 0)
			}
			if err := tb.run(t.Context(), 1, 0, rootsOf(j, 0, 20)); err != nil {
				t.Fatal(err)
			}
			sent, sources := 0, 0
			for _, s := range tb.seats {
				c := s.tally.Read()
				sent += int(c.Bytes[peer.Activation]) - int(c.Requests[peer.Activation])*(peer.QueryFraming+peer.AnswerFraming)
				for i, g := range s.groups {
					if len(g.Roots) > 0 {
						sources += len(s.blocks[i].Blocks[0].Vertices)
					}
				}
			}
			if want := 2 * (nodes - 1) * sources * products * hidden * element; sent != want || sources == 0 {
				t.Errorf("version %d, %d nodes: %d bytes of activations in place of %d", version, nodes, sent, want)
			}
		}
	}
}

// At the start each node is sent its columns of all that others own, and no more.
func TestColumnsAreSentOnce(t *testing.T) {
	for _, c := range []struct {
		kind kindOf
		size int // of an element
		more int // a row
	}{{denseKind, 4, 0}, {scaledKind, 4, 4}, {halfKind, 2, 4}} {
		for _, nodes := range []int{2, 3} {
			j := newJob(specs()["gcn"], c.kind, 64*nodes)
			tb := j.sit(t, nodes)
			l := j.layout(nodes)
			for _, s := range tb.seats {
				cols, rows := s.front.columns.cols, 0
				for shard, owner := range l.Owners {
					if owner != s.node {
						rows += int(l.Firsts[shard+1] - l.Firsts[shard])
					}
				}
				got := s.start.Read()
				bytes := int(got.Bytes[peer.Shard]) - int(got.Requests[peer.Shard])*(peer.QueryFraming+peer.AnswerFraming+questionSize)
				if want := rows * (cols*c.size + c.more); bytes != want {
					t.Errorf("%+v: node %d was sent %d bytes for %d columns of %d rows, in place of %d", c.kind, s.node, bytes, cols, rows, want)
				}
			}
		}
	}
}

// A counter counts the multiplications of products.
type counter struct {
	tensor.Device
	forward, backward int
}

func (c *counter) MatMul(y, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
	if shape == tensor.NN {
		c.forward += a.Rows * a.Cols * b.Cols
	} else {
		c.backward += a.Rows * a.Cols * b.Cols
	}
	c.Device.MatMul(y, a, b, shape, add, e)
}

// A node multiplies its columns with its rows of the weights, and nothing else.
func TestNothingIsPadded(t *testing.T) {
	const nodes, columns, hidden = 5, 23, 4
	for _, deterministic := range []bool{false, true} {
		spec := nn.Defaults("gcn")
		spec.Layers, spec.Hidden = 2, hidden
		j := newJob(spec, denseKind, columns)
		j.deterministic = deterministic
		tb := j.sit(t, nodes)
		var counters []*counter
		for _, s := range tb.seats {
			c := &counter{Device: s.device}
			counters = append(counters, c)
			s.front.device = c
			s.front.From(1, 0)
		}
		if err := tb.run(t.Context(), 1, 0, rootsOf(j, 0, 20)); err != nil {
			t.Fatal(err)
		}
		targets, cols := 0, 0
		for _, s := range tb.seats {
			targets += s.targets
		}
		for i, s := range tb.seats {
			own := s.front.columns.cols
			cols += own
			if want := targets * own * hidden; counters[i].forward != want || counters[i].backward != want {
				t.Errorf("node %d multiplies %d times forward and %d back in place of %d", i, counters[i].forward, counters[i].backward, want)
			}
		}
		if cols != columns {
			t.Errorf("all nodes have %d columns of %d", cols, columns)
		}
	}
}
