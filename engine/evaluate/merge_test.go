package evaluate

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/task"
)

// hard are losses of shards whose sum depends on the order.
var hard = []float64{1, 1e16, 1}

// A part is the scorer of one of two nodes that share three shards, of which node 0 owns the
// second.
type part struct {
	scorer
	nodes Nodes
	data  *dataset.Graph
}

func newPart(self int) *part {
	p := &part{scorer: newScorer(task.Spec{Loss: task.Softmax, Metric: task.Accuracy, Width: 2}), data: &dataset.Graph{About: dataset.About{Vertices: 30}}}
	p.nodes = Nodes{
		Work:   peer.Work{Nodes: []string{"a", "b"}, Self: self},
		Layout: peer.Layout{Nodes: 2, Owners: []int{1, 0, 1}, Firsts: []uint32{0, 10, 20, 30}},
	}
	p.begin(3)
	for mark := graph.Train; mark <= graph.Test; mark++ {
		for shard, owner := range p.nodes.Layout.Owners {
			if owner == self {
				p.of[mark].Add(shard, []float32{float32(shard), 1}, []int32{int32(shard % 2)})
				p.losses[shard][mark] = hard[shard]
			}
		}
	}
	return p
}

func (p *part) message(seconds float64, sent peer.Counts) []byte {
	return p.scorer.message(nil, &p.nodes, seconds, sent)
}

func (p *part) absorb(r *Result, node int, from []byte) error {
	return p.scorer.absorb(r, &p.nodes, p.data, node, from)
}

func TestScoresMergeInTheOrderOfShards(t *testing.T) {
	a, b := newPart(0), newPart(1)
	sent := peer.Counts{}
	sent.Bytes[peer.Activation], sent.Requests[peer.Activation] = 100, 3
	messages := [][]byte{a.message(2, sent), b.message(5, sent)}
	var want *Result
	for _, tr := range []*part{a, b} {
		e := &Result{Seconds: 1}
		for node, message := range messages {
			if err := tr.absorb(e, node, message); err != nil {
				t.Fatal(err)
			}
		}
		e.Train, _ = tr.scores(graph.Train)
		e.Val, _ = tr.scores(graph.Validation)
		e.Test, _ = tr.scores(graph.Test)
		loss := (hard[0] + hard[1] + hard[2]) / 3
		if e.Seconds != 5 || e.Sent.Bytes[peer.Activation] != 200 || e.Sent.Requests[peer.Activation] != 6 {
			t.Errorf("merged is %+v", e)
		}
		if e.Val.Count != 3 || e.Val.Loss != loss || want != nil && *e != *want {
			t.Errorf("merged is %+v, with a loss of %g", e.Val, loss)
		}
		want = e
	}
	if other := (hard[0] + hard[2] + hard[1]) / 3; other == want.Val.Loss {
		t.Error("the order makes no difference")
	}
}

func TestScoresThatCannotBeAreRefused(t *testing.T) {
	good := newPart(1).message(5, peer.Counts{})
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		says   string
	}{
		"short": {func(b []byte) []byte { return b[:len(b)-1] }, "bytes in place of"},
		"long":  {func(b []byte) []byte { return append(b, 0) }, "bytes in place of"},
		"empty": {func([]byte) []byte { return nil }, "bytes in place of"},
		"never": {func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b, math.Float64bits(math.Inf(1)))
			return b
		}, "seconds"},
		"back in time": {func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b, math.Float64bits(-1))
			return b
		}, "seconds"},
		"more than there are": {func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[8+16*peer.Kinds:], 1000)
			return b
		}, "predicted correctly 1000 times"},
	} {
		err := newPart(0).absorb(&Result{}, 1, c.change(slices.Clone(good)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzScores(f *testing.F) {
	f.Add(newPart(1).message(5, peer.Counts{}))
	f.Add([]byte{})
	f.Add(make([]byte, newPart(0).messageBytes(&newPart(0).nodes, 1)))
	f.Add(slices.Repeat([]byte{0xff}, newPart(0).messageBytes(&newPart(0).nodes, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, e := newPart(0), &Result{}
		if err := tr.absorb(e, 1, b); err != nil {
			return
		}
		if s, _ := tr.scores(graph.Test); s.Count > 31 || s.Accuracy > 1 || s.Accuracy < 0 || math.IsNaN(e.Seconds) || math.IsInf(e.Seconds, 0) {
			t.Errorf("%x gives %+v, %+v", b, s, e)
		}
	})
}

// What another node says that it ranks is no more than there is, and the pairs that it has
// compared are numbers.
func FuzzRanked(f *testing.F) {
	for _, exclusive := range []bool{true, false} {
		f.Add(make([]byte, 16), exclusive)
		f.Add(slices.Repeat([]byte{7, 0, 0, 0}, 8), exclusive)
		f.Add(slices.Repeat([]byte{0xff}, 32), exclusive)
	}
	f.Fuzz(func(t *testing.T, b []byte, exclusive bool) {
		const classes, vertices = 2, 30
		r := newRanks(&dataset.Graph{About: dataset.About{Classes: classes}}, &newPart(0).nodes, task.Named(""), 1)
		r.exclusive = exclusive
		if err := r.count(1, b, vertices); err == nil {
			for _, k := range r.of {
				for _, of := range k.counts[1] {
					if of[0] < 0 || of[1] < 0 || of[0]+of[1] > vertices {
						t.Errorf("%x: %v of %d vertices", b, k.counts[1], vertices)
					}
				}
			}
		}
		if len(b) < r.appended(1) {
			return
		}
		if err := r.absorb(1, b); err == nil {
			for _, k := range r.of {
				for c, of := range k.ranks {
					if !(of.Pairs >= 0 && of.Pairs <= math.MaxFloat64 && of.Precisions >= 0 && of.Precisions < 1<<32) {
						t.Errorf("%x: class %d has the ranks %+v", b, c, of)
					}
				}
			}
		}
	})
}

// A constant may be added to all logits of a row: ranks are of probabilities.
func TestLogSoftmax(t *testing.T) {
	for _, add := range []float32{0, 100, -100} {
		row := []float32{1 + add, 3 + add, 2 + add}
		logSoftmax(row)
		for i, want := range []float32{-2.4076059, -0.40760595, -1.4076059} {
			if d := row[i] - want; d < -1e-4 || d > 1e-4 {
				t.Errorf("with %g: %v", add, row)
			}
		}
	}
}
