package train

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// hard are losses of shards whose sum depends on the order.
var hard = []float64{1, 1e16, 1}

// scorer is what there is to a node that has judged the vertices of three shards, of
// which it owns the second.
func scorer(self int) *trainer {
	t := &trainer{data: &data{about: About{Vertices: 30}}, judges: newJudges(2, false)}
	t.shared = &shared{work: strategy.Work{Nodes: []string{"a", "b"}, Self: self}}
	t.shared.layout = strategy.Layout{Nodes: 2, Owners: []int{1, 0, 1}, Firsts: []uint32{0, 10, 20, 30}}
	t.judges.begin(3)
	for mark := graph.Train; mark <= graph.Test; mark++ {
		for shard, owner := range t.shared.layout.Owners {
			if owner == self {
				t.judges.of[mark].Add([]float32{float32(shard), 1}, int32(shard%2))
				t.judges.losses[shard][mark] = hard[shard]
			}
		}
	}
	return t
}

func TestScoresMergeInTheOrderOfShards(t *testing.T) {
	a, b := scorer(0), scorer(1)
	sent := strategy.Counts{}
	sent.Bytes[strategy.Activation], sent.Requests[strategy.Activation] = 100, 3
	messages := [][]byte{a.message(nil, 2, sent), b.message(nil, 5, sent)}
	var want *Eval
	for _, tr := range []*trainer{a, b} {
		e := &Eval{Seconds: 1}
		for node, message := range messages {
			if err := tr.absorb(e, node, message); err != nil {
				t.Fatal(err)
			}
		}
		e.Train, e.Val, e.Test = tr.judges.scores(graph.Train), tr.judges.scores(graph.Validation), tr.judges.scores(graph.Test)
		loss := (hard[0] + hard[1] + hard[2]) / 3
		if e.Seconds != 5 || e.Sent.Bytes[strategy.Activation] != 200 || e.Sent.Requests[strategy.Activation] != 6 {
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
	good := scorer(1).message(nil, 5, strategy.Counts{})
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
			binary.LittleEndian.PutUint64(b[8+16*strategy.Kinds:], 1000)
			return b
		}, "told rightly 1000 times"},
	} {
		err := scorer(0).absorb(&Eval{}, 1, c.change(slices.Clone(good)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzScores(f *testing.F) {
	f.Add(scorer(1).message(nil, 5, strategy.Counts{}))
	f.Add([]byte{})
	f.Add(make([]byte, scorer(0).messageBytes(1)))
	f.Add(slices.Repeat([]byte{0xff}, scorer(0).messageBytes(1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, e := scorer(0), &Eval{}
		if err := tr.absorb(e, 1, b); err != nil {
			return
		}
		if s := tr.judges.scores(graph.Test); s.Count > 31 || s.Accuracy > 1 || s.Accuracy < 0 || !isNumber(e.Seconds) {
			t.Errorf("%x gives %+v, %+v", b, s, e)
		}
	})
}
