package auto

import (
	"fmt"
	"math"
	"reflect"
	"testing"
)

func someCensus() census {
	return census{Steps: 3, Row: 404.5, Room: true, Loads: []Load{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {Rows: mostCounted}}}
}

func encoded(t testing.TB, c census) []byte {
	t.Helper()
	m, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestACensusIsReadAsItWasWritten(t *testing.T) {
	want := someCensus()
	got, err := readCensus(encoded(t, want), 2)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v and %v, want %+v", got, err, want)
	}
	r := Rates{Bandwidth: 1e9, RoundTrip: 1e-3, Compute: 1e-6, Sample: 0, Hands: 2}
	m, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readRates(m); err != nil || got != r {
		t.Errorf("%+v and %v, want %+v", got, err, r)
	}
}

func TestWhatNobodyCanHaveCounted(t *testing.T) {
	for name, spoil := range map[string]func(*census){
		"too many strategies": func(c *census) { c.Loads = append(c.Loads, Load{}) },
		"too few":             func(c *census) { c.Loads = c.Loads[:1] },
		"no step":             func(c *census) { c.Steps = 0 },
		"too many steps":      func(c *census) { c.Steps = mostLooks + 1 },
		"no number":           func(c *census) { c.Row = math.NaN() },
		"less than nothing":   func(c *census) { c.Row = -1 },
		"rows without end":    func(c *census) { c.Row = math.Inf(1) },
		"too much":            func(c *census) { c.Loads[1].Edges = mostCounted + 1 },
		"more than there is":  func(c *census) { c.Loads[1].Keeps = 1 },
	} {
		c := someCensus()
		spoil(&c)
		if _, err := readCensus(encoded(t, c), 2); err == nil {
			t.Errorf("%s: it is believed", name)
		}
	}
	good := Rates{Bandwidth: 1e9, RoundTrip: 1e-3, Compute: 1e-6, Sample: 1e-7, Hands: 1}
	for name, r := range map[string]Rates{
		"no bandwidth":    {0, 1, 1, 1, 1},
		"all of it":       {math.Inf(1), 1, 1, 1, 1},
		"back in time":    {1e9, -1, 1, 1, 1},
		"no time":         {1e9, 1, math.NaN(), 1, 1},
		"never":           {1e9, 1, 1, math.Inf(1), 1},
		"nobody draws":    {1e9, 1, 1, 1, 0},
		"it's all a lie":  {math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()},
		"infinitely many": {1e9, 1, 1, 1, math.Inf(1)},
	} {
		m, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readRates(m); err == nil {
			t.Errorf("%s: %+v is believed", name, r)
		}
	}
	m, err := good.encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(m) + 9 {
		if _, err := readRates(append(m, make([]byte, 9)...)[:n]); (err == nil) != (n == len(m)) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestTheSlowestCounts(t *testing.T) {
	a, b := Rates{1e6, 2, 3, 4, 5}, Rates{2e6, 3, 2, 5, 4}
	if got, want := a.slower(b), (Rates{1e6, 3, 3, 5, 4}); got != want || b.slower(a) != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(encoded(f, someCensus()), 2)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, m []byte, candidates int) {
		c, err := readCensus(m, max(0, candidates%8))
		if err == nil && (c.Steps == 0 || c.Steps > mostLooks || !(c.Row >= 0)) {
			t.Errorf("%+v", c)
		}
		r, err := readRates(m)
		if err == nil && fmt.Sprint(r) != fmt.Sprint(r.slower(r)) {
			t.Errorf("%+v", r)
		}
	})
}
