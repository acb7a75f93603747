package auto

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// choiceOf is a choice that was made of what ways has.
func choiceOf(r Rates) *Choice {
	work := peer.Work{Nodes: []string{"n0"}}
	c := &Choice{rates: r, found: make([]float64, 2), cramped: make([]bool, 2)}
	c.job = &Job{Exchange: exchange.New(loopback.New(1).Node(0), work), Work: work}
	c.facts, c.tried = ways()
	c.candidates = []Candidate{{Name: "centric"}, {Name: "leap"}}
	c.at = choose(c.costs())
	return c
}

// note is Note where there is room, and nothing fails.
func (c *Choice) note(t *testing.T, m Measured) bool {
	t.Helper()
	changed, err := c.Note(t.Context(), m, func(Candidate) (bool, error) { return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// A truth is a machine park whose epochs take what they take, whatever was believed.
type truth struct {
	r      Rates
	beside float64 // seconds of an epoch that no prediction knows of
}

func (w *truth) epoch(c *Choice, n int) Measured {
	t := &c.tried[c.at]
	at := c.facts.predict(t, &w.r)
	rows, _ := c.facts.brought(t, false)
	steps := float64(c.facts.steps)
	ahead := at.rows*w.r.Sample/w.r.Hands + at.hidden/w.r.Bandwidth + w.r.RoundTrip
	return Measured{
		Epoch: n, Seconds: at.seconds + w.beside, Sample: rows * w.r.Sample, Compute: rows * w.r.Compute,
		Wait: steps * max(0, ahead-at.rows*w.r.Compute),
	}
}

// What was believed of the network is set right by what epochs take, and then the
// strategy, too; once, and for good.
func TestAWrongGuessIsSetRight(t *testing.T) {
	slow := Rates{Bandwidth: 2e6, RoundTrip: 1e-4, Compute: 1e-5, Sample: 1e-7, Hands: 1}
	quick := Rates{Bandwidth: 1e10, RoundTrip: 1e-5, Compute: 1e-5, Sample: 1e-7, Hands: 1}
	for name, c := range map[string]struct {
		believed, is Rates
		beside       float64
		first, last  string
		changes      int
	}{
		"a slow network that was thought quick": {Rates{Bandwidth: 1e12, Compute: 1e-5, Hands: 1}, slow, 0, "centric", "leap", 1},
		"rows that take longer than thought":    {Rates{Bandwidth: 1e8, Compute: 1e-9, Hands: 1}, quick, 0, "leap", "centric", 1},
		"all is as thought":                     {quick, quick, 0, "centric", "centric", 0},
		"and other things take time":            {quick, quick, 3, "centric", "centric", 0},
		"other things take most of the time":    {Rates{Bandwidth: 1e8, Compute: 1e-9, Hands: 1}, quick, 3, "leap", "leap", 0},
		"rows that take less than thought":      {Rates{Bandwidth: 1e9, Compute: 1e-3, Hands: 1}, slow, 0, "centric", "leap", 1},
	} {
		choice, world := choiceOf(c.believed), truth{c.is, c.beside}
		choice.tried[1].loads[0].Rows, choice.tried[1].loads[1].Rows = 32_000, 4000
		choice.at = choose(choice.costs())
		if got := choice.Chosen().Name; got != c.first {
			t.Errorf("%s: %s at first", name, got)
		}
		changes := 0
		for n := 1; n <= 30; n++ {
			if choice.note(t, world.epoch(choice, n)) {
				changes++
				if want := choice.Chosen().Name + " since epoch "; !strings.HasPrefix(choice.Why(), want) {
					t.Errorf("%s: %q", name, choice.Why())
				}
			}
		}
		if got := choice.Chosen().Name; got != c.last || changes != c.changes {
			t.Errorf("%s: %s at last, after %d changes", name, got, changes)
		}
	}
}

func TestWhatIsSaidOfAChange(t *testing.T) {
	c := choiceOf(Rates{Bandwidth: 1e9, Compute: 1e-3, Hands: 1})
	c.at = 0
	n := 1
	for !c.note(t, Measured{Epoch: n, Seconds: 9, Compute: 0.1, Wait: 8.5}) {
		n++
	}
	if n != 3 { // what one epoch shows is not believed at once
		t.Fatalf("it is changed after %d epochs", n)
	}
	const want = "leap since epoch 4: an epoch took 9.0 s with centric, and about "
	const sends = " is expected; it sends about 404 kB of features a step, where centric sends 3.2 MB, and the network gives "
	if got := c.Why(); !strings.HasPrefix(got, want) || !strings.Contains(got, sends) {
		t.Errorf("%q", got)
	}
}

// Whatever epochs take, changes keep their distance, and p3 is neither begun nor left.
func TestChangesAreRare(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	changes := 0
	for range 300 {
		c := choiceOf(anyRates(r))
		c.candidates = append(c.candidates, Candidate{Name: "p3"})
		c.tried = append(c.tried, tried{"p3", 2, []Load{anyLoad(r), anyLoad(r)}})
		c.found, c.cramped = append(c.found, 0), append(c.cramped, false)
		c.at = r.IntN(3)
		first, last := c.at, -restEpochs
		for n := range 40 {
			m := Measured{Epoch: n, Seconds: r.ExpFloat64() * 10}
			m.Compute, m.Wait, m.Sample = m.Seconds*r.Float64(), m.Seconds*r.Float64(), m.Seconds*r.Float64()
			was := c.at
			if c.note(t, m) != (c.at != was) {
				t.Fatal("a change is not told")
			}
			if c.at == was {
				continue
			}
			changes++
			if n-last < restEpochs {
				t.Fatalf("a change after epoch %d, and one after %d", last, n)
			}
			last = n
			if first == 2 || c.at == 2 {
				t.Fatal("p3 came or went")
			}
		}
	}
	if changes < 100 {
		t.Errorf("%d changes", changes)
	}
}

// No epoch makes rates that can't be.
func TestRatesStayNumbers(t *testing.T) {
	odd := []float64{0, 1e-300, 1, 1e300, math.MaxFloat64}
	for _, seconds := range append(odd, math.Inf(1), math.NaN()) {
		for _, compute := range odd {
			for _, wait := range odd {
				c := choiceOf(Rates{Bandwidth: 1e6, Compute: 1e-6, Hands: 1})
				c.note(t, Measured{Seconds: seconds, Compute: compute, Wait: wait, Sample: compute})
				if b := c.rates.Bandwidth; !(b >= 1) || b > fastest || math.IsNaN(c.rates.Compute) {
					t.Errorf("%g, %g, %g: %+v", seconds, compute, wait, c.rates)
				}
			}
		}
	}
}

// What is known of one strategy's epochs is expected of it again; what is known of the
// one in use alone, of the others as far as it can be.
func TestWhatIsExpected(t *testing.T) {
	costs := []cost{{seconds: 10}, {seconds: 4}}
	for name, c := range map[string]struct {
		found    []float64
		measured float64
		want     float64
	}{
		"as predicted":                    {[]float64{1, 0}, 10, 4},
		"longer than predicted":           {[]float64{1.5, 0}, 15, 9},
		"shorter than predicted":          {[]float64{0.5, 0}, 5, 2},
		"the other took twice its time":   {[]float64{1, 2}, 10, 8},
		"the other took half of its time": {[]float64{2, 0.5}, 20, 2},
	} {
		choice := Choice{found: c.found}
		about(t, name, choice.expect(costs, 1, c.measured), c.want)
	}
}

func TestRatesAreSetRight(t *testing.T) {
	f := facts{nodes: 2, steps: 10, row: 100}
	used := tried{"leap", 2, []Load{{Rows: 3000, Remote: 100, Topology: 2000}, {Rows: 1000, Remote: 260}}}
	const rows, hidden = 10_000, 10 * (180*100 + 1000) / 2
	for name, c := range map[string]struct {
		m    Measured
		want Rates
	}{
		"it waits":           {Measured{Seconds: 5, Compute: 2, Sample: 1, Wait: 2}, Rates{math.Sqrt(1e6 * hidden / 3.4), 0.01, 2e-4, 1e-4, 2}},
		"it doesn't":         {Measured{Seconds: 5, Compute: 2, Sample: 1, Wait: 0.01}, Rates{1e6, 0.01, 2e-4, 1e-4, 2}},
		"and is fast":        {Measured{Seconds: 1, Compute: 0.15, Sample: 0.01, Wait: 0}, Rates{hidden / 0.045, 0.01, 1.5e-5, 1e-6, 2}},
		"only drawing lasts": {Measured{Seconds: 5, Compute: 2, Sample: 7, Wait: 1}, Rates{1e6, 0.01, 2e-4, 7e-4, 2}},
		"nothing is known":   {Measured{Seconds: 5}, Rates{1e6, 0.01, 1, 1, 2}},
	} {
		r := Rates{Bandwidth: 1e6, RoundTrip: 0.01, Compute: 1, Sample: 1, Hands: 2}
		r.correct(&f, &used, &c.m, false)
		about(t, name+": bandwidth", r.Bandwidth, c.want.Bandwidth)
		about(t, name+": computing", r.Compute, c.want.Compute)
		about(t, name+": drawing", r.Sample, c.want.Sample)
		if r.RoundTrip != 0.01 || r.Hands != 2 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
