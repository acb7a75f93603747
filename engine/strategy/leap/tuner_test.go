package leap

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
)

// slots are how many a step has in each epoch, the first and those after each time.
func slots(d deal.Dealer, seconds ...float64) []int {
	all := []int{d.Tuning().Slots}
	for _, s := range seconds {
		d.Note(s)
		all = append(all, d.Tuning().Slots)
	}
	return all
}

// thrice are three times each, but for the first.
func thrice(seconds ...float64) []float64 {
	all := seconds[:1:1]
	for _, s := range seconds[1:] {
		all = append(all, s, s, s)
	}
	return all
}

func TestSlotsByTheTimesOfEpochs(t *testing.T) {
	for name, c := range map[string]struct {
		nodes   int
		seconds []float64
		want    []int
	}{
		"of the sheet":            {4, thrice(99, 10, 9, 8, 8.5, 7, 1), []int{4, 4, 3, 2, 1, 2, 2, 2}},
		"a first that is fast":    {4, thrice(1, 10, 9, 11, 1), []int{4, 4, 3, 2, 3, 3}},
		"down to one":             {3, thrice(9, 8, 7, 6, 5, 9), []int{3, 3, 2, 1, 1, 1, 1}},
		"equal is no faster":      {4, thrice(9, 8, 8, 1), []int{4, 4, 3, 4, 4}},
		"one node":                {1, thrice(9, 8, 7), []int{1, 1, 1, 1}},
		"a time that is no time":  {4, thrice(9, 8, math.NaN(), 1), []int{4, 4, 3, 4, 4}},
		"never more than columns": {2, thrice(9, math.NaN(), 1), []int{2, 2, 2, 2}},
		"nor one without an end":  {3, thrice(9, math.Inf(1), 1), []int{3, 3, 3, 3}},
		"one slow epoch":          {4, []float64{99, 10, 80, 11, 9, 9.5, 70, 8, 8, 8}, []int{4, 4, 3, 2, 1}},
		"one fast epoch":          {4, []float64{99, 10, 10, 10, 12, 1, 12, 1}, []int{4, 4, 3, 4}},
		"one that is no time":     {4, []float64{99, 10, math.NaN(), 11, 9, 9, math.Inf(1), 8}, []int{4, 4, 3, 2}},
	} {
		l := layout(rand.New(rand.NewPCG(1, 1)), 10, c.nodes)
		all := slots(dealer(t, l, settings("migrate", "auto", false)), c.seconds...)
		got := all[:1] // what is in use after the first epoch, and after every third of the next
		for i := 1; i < len(all); i += 3 {
			got = append(got, all[i])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A dealer that was made anew goes on where the other was, at any epoch.
func TestTuningIsRestored(t *testing.T) {
	l := layout(rand.New(rand.NewPCG(1, 1)), 10, 4)
	seconds := thrice(99, 10, 9, 8, 8.5, 7)
	want := slots(dealer(t, l, settings("migrate", "", false)), seconds...)
	for at := range seconds {
		d := dealer(t, l, settings("migrate", "", false))
		slots(d, seconds[:at]...)
		again := dealer(t, l, settings("migrate", "", false))
		again.Restore(d.Tuning())
		if got := slots(again, seconds[at:]...); !slices.Equal(got, want[at:]) {
			t.Errorf("restored after %d epochs: %v, want %v", at, got, want[at:])
		}
	}
}

func TestTuningBeginsAnewWithOtherNodes(t *testing.T) {
	found := deal.Tuning{Nodes: 4, Members: 17, Slots: 2, Best: 8, Epochs: 6, Frozen: true}
	for name, c := range map[string]struct {
		nodes  int
		merge  string
		found  deal.Tuning
		want   int
		frozen bool
		others bool // they are as many, and others
	}{
		"the same nodes":                 {4, "", found, 2, true, false},
		"one in another's place":         {4, "", found, 4, false, true},
		"as the user wants, with others": {4, "3", found, 3, true, true},
		"found by an older program":      {4, "", deal.Tuning{Nodes: 4, Slots: 2, Frozen: true}, 4, false, false},
		"one less":                       {3, "", found, 3, false, false},
		"one more":                       {5, "", found, 5, false, false},
		"a job that begins":              {4, "", deal.Tuning{}, 4, false, false},
		"what can't be":                  {4, "", deal.Tuning{Nodes: 4, Slots: 5}, 4, false, false},
		"none at all":                    {4, "", deal.Tuning{Nodes: 4}, 4, false, false},
		"as the user wants":              {4, "3", found, 3, true, false},
		"unmerged":                       {4, "off", found, 4, true, false},
		"more than are left":             {2, "3", found, 2, true, false},
		"unmerged, on another":           {3, "off", found, 3, true, false},
	} {
		r := rand.New(rand.NewPCG(1, 1))
		l := layout(r, 10, c.nodes)
		if l.Members = 17; c.others {
			l.Members = 18
		}
		d := dealer(t, l, settings("migrate", c.merge, false))
		d.Restore(c.found)
		if got := d.Tuning(); got.Slots != c.want || got.Frozen != c.frozen || got.Nodes != c.nodes || got.Members != l.Members {
			t.Errorf("%s: %+v, want %d slots", name, got, c.want)
		}
	}
}
