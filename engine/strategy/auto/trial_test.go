package auto

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

func three() *trial {
	return &trial{Tries: []try{{By: "leap", Part: []byte(`{"slots":0}`)}, {By: "centric"}, {By: "single"}}, Steps: 4}
}

// A trial is the same wherever it is read, and its turns follow each other.
func TestTurns(t *testing.T) {
	x, err := parseTrial(three().encode())
	if err != nil || !reflect.DeepEqual(x, three()) {
		t.Fatalf("%+v, %v", x, err)
	}
	var turns []int
	for step := range 14 {
		at, _ := x.turn(step)
		turns = append(turns, at)
	}
	if want := []int{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0}; !slices.Equal(turns, want) {
		t.Errorf("%v", turns)
	}
	for steps, want := range map[int]int{1: 12, 5: 3, 12: 1, 100: 1} {
		if got := x.epochs(steps); got != want {
			t.Errorf("%d epochs of %d steps", got, steps)
		}
	}
	if said, err := describe(x.encode()); err != nil || said != "leap, centric and single are tried for 4 steps each" {
		t.Errorf("%q, %v", said, err)
	}
}

// Turns of short steps have more of them, where that is little of the job.
func TestHowLongATurnIs(t *testing.T) {
	for _, c := range []struct {
		pace       float64
		left, want int
	}{
		{0, 1e6, 8},
		{1, 1e6, 8},
		{0.01, 1e6, 25},
		{0.01, 400, 20},
		{0.01, 40, 8},
		{1e-9, 1e9, 1024},
		{math.NaN(), 1e6, 8},
		{math.Inf(1), 1e6, 8},
	} {
		if got := turnSteps(c.pace, c.left); got != c.want {
			t.Errorf("%d steps of %v s, where %d are left", got, c.pace, c.left)
		}
	}
}

func TestTrialsThatCannotBe(t *testing.T) {
	for _, b := range []string{
		``, `{}`, `{"tries":[{"by":"leap"}],"steps":4}`, `{"tries":[{"by":"leap"},{"by":"centric"}],"steps":0}`,
		`{"tries":[{"by":"leap"},{"by":"centric"}],"steps":1025}`, `{"tries":[{"by":"leap"},{"by":"centric"}],"steps":4,"more":1}`,
		`{"tries":[` + strings.Repeat(`{"by":"leap"},`, 8) + `{"by":"leap"}],"steps":4}`, `{"tries":[{"by":"leap"},{"by":"centric"}],"steps":4} 1`,
	} {
		if _, err := parseTrial([]byte(b)); err == nil || !strings.Contains(err.Error(), "run the same version of hopmesh") {
			t.Errorf("%s: %v", b, err)
		}
	}
}

// The first steps of a turn, which were prepared during the one before, and single slow steps do
// not count. The slowest node counts, and a little is no reason for a change.
func TestTheFastestIsChosen(t *testing.T) {
	x := three()
	node := func(leap, centric, single float64) []float64 {
		c := newClock(x, 1)
		for step := range 20 {
			at, before := x.turn(step)
			took := []float64{leap, centric, single}[at]
			if before == 0 || before == 3 && step < 12 {
				took = 100 // what came before is still under way, and something else happens
			}
			c.note(x, step, took)
		}
		of, err := readTimes(c.encode(), len(x.Tries))
		if err != nil {
			t.Fatal(err)
		}
		return of
	}
	unseen := []float64{0, 0, 0}
	for name, c := range map[string]struct {
		nodes [][]float64
		want  string
	}{
		"the first":              {[][]float64{node(1, 2, 3), node(1, 2, 3)}, "leap: a step took 1.0 s where it was tried, and centric took 2.0 s and single took 3.0 s"},
		"another":                {[][]float64{node(3, 2, 1), node(3, 2, 1)}, "single: a step took 1.0 s where it was tried, and leap took 3.0 s and centric took 2.0 s"},
		"one node is slow by it": {[][]float64{node(3, 2, 1), node(3, 2, 9)}, "centric: a step took 2.0 s"},
		"hardly faster":          {[][]float64{node(1, 0.98, 3)}, "leap: "},
		"one came late":          {[][]float64{{3, 0, 2}, unseen}, "single: a step took 2.0 s where it was tried, and leap took 3.0 s and centric could not be tried"},
		"not the first":          {[][]float64{{0, 3, 2}}, "single: "},
		"nothing is known":       {[][]float64{unseen, unseen}, "leap: no strategy could be tried"},
	} {
		best, slowest := quickest(c.nodes)
		if said := x.verdict(best, slowest); !strings.HasPrefix(said, c.want) {
			t.Errorf("%s: %q", name, said)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, 16), {0, 0, 0, 0, 0, 0, 0xf0, 0x7f, 23: 0}, {7: 0x80, 6: 1, 23: 0}} {
		if _, err := readTimes(b, 3); err == nil {
			t.Errorf("%v is taken for times", b)
		}
	}
}

// One that holds all shards computes all, and others nothing.
func TestOneOfSeveral(t *testing.T) {
	l := peer.Layout{Nodes: 3, Owners: []int{0, 1, 2}, Firsts: []uint32{0, 10, 20, 30}}
	if _, err := dealSolo(l, strategy.Settings{}); err == nil {
		t.Error("nobody holds all shards")
	}
	l.Holders = [][]int{{1, 2}, {2}, {1}}
	for want, weights := range map[int][]uint64{1: nil, 2: {9, 1, 2}} {
		l.Weights = weights
		for _, deterministic := range []bool{false, true} {
			d, err := dealSolo(l, strategy.Settings{Deterministic: deterministic})
			if err != nil {
				t.Fatal(err)
			}
			for node := range 3 {
				roots := 0
				for _, g := range d.Deal(nil, []uint32{3, 15, 25, 4}, node) {
					roots += len(g.Roots)
				}
				if (roots == 4) != (node == want) || roots != 0 && node != want {
					t.Errorf("node %d of weights %v computes %d seed vertices", node, weights, roots)
				}
			}
		}
	}
}

func FuzzTrial(f *testing.F) {
	f.Add(three().encode())
	f.Add([]byte(`{"tries":[{"by":"leap"},{"by":"centric"}],"steps":1e3}`))
	f.Add(make([]byte, 24))
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, err := parseTrial(b); err == nil {
			if again, err := parseTrial(x.encode()); err != nil || !bytes.Equal(again.encode(), x.encode()) {
				t.Errorf("%+v becomes %+v, %v", x, again, err)
			}
			if at, before := x.turn(1 << 40); at != 0 || before < 0 || x.epochs(1) != len(x.Tries)*x.Steps {
				t.Errorf("%+v", x)
			}
		}
		if times, err := readTimes(b, 3); err == nil {
			if best, slowest := quickest([][]float64{times}); best < 0 || best > 2 || !slices.Equal(slowest, times) {
				t.Errorf("%d of %v", best, times)
			}
		}
	})
}
