package arrange

import (
	"slices"
	"strings"
	"testing"
)

// What users read says what was chosen, what was measured, and what else was considered.
func TestWhyWords(t *testing.T) {
	c := Candidates{
		{Stages: 3, Ways: 1, Seconds: 0.0125, Compute: 0.01, Bubble: 0.002, Sum: 0.0005, Memory: 3 << 20, Fits: true},
		{Stages: 1, Ways: 2, Seconds: 0.02, History: 0.001, Fits: true}, {Stages: 1, Ways: 1, Seconds: 1.5},
	}
	for i, want := range []string{
		"3 stages x 1 way: estimated 12.5 ms an epoch (computing 10 ms, idle 2 ms, sums 500 us), the least of 3 arrangements; 1x2 estimated 20 ms; 1x1 lacks memory",
		"1 stage x 2 ways was fastest when tried: 16 ms an epoch, 3x1 30 ms; 1x1 lacks memory",
	} {
		if got := c.Why(); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
		if i == 0 {
			c.Choose([]float64{0.03, 0.015}[:c.ToTry()])
		}
	}
	table := c.Table(2)
	if len(table) != 2 || !strings.HasPrefix(table[1], "3 stages x 1 way: estimated computing 10 ms,") || !strings.HasSuffix(table[1], "3.0 MiB on the node that needs most; measured 30 ms an epoch") {
		t.Errorf("%q", table)
	}
}

// A list with candidates that this node does not have, and malformed messages, end the job
// with a sentence.
func TestMalformedPlans(t *testing.T) {
	if _, err := readCandidates(nil, []int{0, 3}); err == nil {
		t.Error("nothing is a plan")
	}
	c := Candidates{{Stages: 1, Ways: 1, Cuts: []int{0, 4}}, {Stages: 2, Ways: 3, Cuts: []int{0, 2, 4}}}
	for _, first := range []Candidates{{{Stages: 2, Ways: 2}}, {c[1], c[1]}, {c[1], c[0], {Stages: 1, Ways: 3}}} {
		if strange := slices.Clone(c).follow(first); strange != &first[len(first)-1] {
			t.Errorf("a list of 1x1 and 2x3 follows %v", first)
		}
	}
	if strange := c.follow(Candidates{c[1]}); strange != nil || c[0].Stages != 2 {
		t.Errorf("%v, %v", strange, c)
	}
}

func FuzzPlans(f *testing.F) {
	f.Add(Candidates{{Stages: 2, Ways: 3, Cuts: []int{0, 2, 5}, Fits: true}, {Stages: 1, Ways: 1, Cuts: []int{0, 5}, Recomputes: true}}.encode())
	f.Add(Candidates{{Stages: 2, Ways: 3, Cuts: []int{0, 5, 5}}}.encode())
	f.Add([]byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := readCandidates(b, []int{0, 2, 3, 5})
		if err != nil {
			if !strings.Contains(err.Error(), "run the same version") {
				t.Fatal(err)
			}
			return
		}
		for _, c := range all {
			if c.Ways < 1 || len(c.Cuts) != c.Stages+1 || c.Cuts[0] != 0 || c.Cuts[c.Stages] != 5 || !slices.IsSorted(c.Cuts) || slices.Contains(c.Cuts, 1) || slices.Contains(c.Cuts, 4) {
				t.Fatalf("%+v", c)
			}
		}
		if again := all.encode(); !slices.Equal(again, b) {
			t.Fatalf("%v, want %v", again, b)
		}
	})
}
