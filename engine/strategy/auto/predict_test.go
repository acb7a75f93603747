package auto

import (
	"math"
	"testing"
)

func about(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// Bytes are those of the sheets' formulas, added up over the nodes.
func TestBytesOfAStep(t *testing.T) {
	r := Rates{Bandwidth: 1e6, RoundTrip: 0, Compute: 1e-6, Sample: 0, Hands: 1}
	f := facts{nodes: 3, steps: 10, epochs: 4, weights: 6e5, row: 404, sum: 16, front: 6400, features: 9e6}
	loads := []Load{
		{Rows: 700, Remote: 100, Topology: 50, Inputs: 500, First: 100, Edges: 900, Slots: 2},
		{Rows: 1400, Remote: 300, Inputs: 1000, First: 200, Edges: 1800, Slots: 2},
		{Rows: 280, Remote: 60, Topology: 10, Inputs: 200, First: 40, Edges: 360, Slots: 2},
	}
	c := f.predict(&tried{"centric", 2, loads}, &r)
	about(t, "features", c.features, 230*404)
	about(t, "topology", c.topology, 30)
	gradients := 2.0 * 2 / 3 * 6e5
	about(t, "the busiest node", c.busiest, 150*404+gradients)
	about(t, "rows", c.rows, 700)
	about(t, "seconds", c.seconds, 10*(150*404/1e6+gradients/1e6))

	for i := range loads {
		loads[i].Slots = 6
	}
	c = f.predict(&tried{"leap", 2, loads}, &r)
	about(t, "the busiest node with models", c.busiest, 150*404+2*6e5+gradients)

	c = f.predict(&tried{"p3", 2, loads}, &r)
	if c.features != 0 {
		t.Errorf("p3 brings %g bytes of features", c.features)
	}
	about(t, "activations", c.activations, 2*2*(50+100+20)*16*4)
	about(t, "blocks", c.topology, 2*4*(850+2*170+1530))
	about(t, "rows by p3", c.rows, 200+850.0/3)
	blocks := 4.0 * (850 + 2*170 + 1530 - 100 - 40 - 180)
	exposed := 64.0*(2*100+70) + 2.0*2/3*(6e5-6400) + 2.0/3*6400
	about(t, "the busiest node by p3", c.busiest, blocks+exposed)
	about(t, "seconds by p3", c.seconds, 10*(blocks+exposed)/1e6+9e6*2/9/1e6/4)

	// Where each node draws all blocks, that takes time and no bytes.
	f.resample = true
	r.Sample = 1
	c = f.predict(&tried{"p3", 2, loads}, &r)
	if c.topology != 0 || c.hidden != 0 {
		t.Errorf("%g bytes of blocks that all draw", c.topology)
	}
	about(t, "the busiest node that draws all", c.busiest, exposed)
	about(t, "seconds of drawing all", c.seconds, 10*((350+700+140)+exposed/1e6)+9e6*2/9/1e6/4)
}

// Rows that stay come once, and are no reason to prefer columns or fewer bytes.
func TestRowsThatStay(t *testing.T) {
	f := facts{nodes: 2, steps: 10, epochs: 5, weights: 4e4, row: 100}
	r := Rates{Bandwidth: 1e6, RoundTrip: 0.01, Compute: 1e-6, Sample: 1e-7, Hands: 1}
	load := Load{Rows: 1000, Remote: 500, Slots: 1, Far: 2000}
	at := func(keeps uint64) cost {
		l := load
		l.Keeps = keeps
		return f.predict(&tried{"leap", 1, []Load{l, l}}, &r)
	}
	none, half, all := at(0), at(1000), at(2000)
	once := 2000 * 100 * (1 - math.Exp(-500.0*10*5/2000)) // what is drawn in all epochs, each row once
	about(t, "bytes of a step", none.features, 2*500*100)
	about(t, "bytes of a step with half", half.features, 2*(250*100+once/2/50))
	about(t, "bytes of a step with all", all.features, 2*once/50)
	about(t, "hidden", none.hidden, 500*100)
	about(t, "hidden with half", half.hidden, 250*100)
	about(t, "hidden with all", all.hidden, 0)
	about(t, "seconds with all", all.seconds, 10*(1000*1e-6+4e4/1e6+0.01)+once/1e6/5)
	f.epochs = 1
	l := load
	l.Remote, l.Keeps, l.Far = 2, 1e6, 1e6
	if c := f.predict(&tried{"leap", 1, []Load{l, l}}, &r); c.features < 0.99*2*2*100 {
		t.Errorf("%g bytes in a step, where hardly a row is drawn twice", c.features)
	}
	f.epochs = 5
	if !(all.seconds < half.seconds && half.seconds < none.seconds) {
		t.Errorf("%g s with all, %g s with half, %g s with none", all.seconds, half.seconds, none.seconds)
	}
	f.once = true
	about(t, "hidden of the only batch", at(2000).hidden, 500*100)
}

// As the sheet of p3 says: it beats centric when F/H > 2N|V_1|/|V_0|, where only the
// network counts and blocks need not travel.
func TestWhereP3Begins(t *testing.T) {
	const width = 64
	r := Rates{Bandwidth: 1e6, Compute: 1e-12, Sample: 1e-12, Hands: 1}
	for _, n := range []int{2, 4, 8} {
		for _, ratio := range []float64{0.5, 2} {
			f := facts{nodes: n, steps: 1, epochs: 1000, sum: width}
			columns := ratio * width * 2 * float64(n) / 5
			f.row = 4 * columns
			load := Load{Rows: 1000, Remote: uint64(1000 * (n - 1) / n), Inputs: 1000, First: 200, Slots: 1}
			all := make([]Load, n)
			for i := range all {
				all[i] = load
			}
			p3 := f.predict(&tried{"p3", 1, all}, &r)
			centric := f.predict(&tried{"centric", 1, all}, &r)
			if p3.activations < centric.features != (ratio > 1) {
				t.Errorf("%d nodes, F/H %g of the threshold: p3 %g, centric %g", n, ratio, p3.activations, centric.features)
			}
		}
	}
}

// Where the sum of p3 has a row for each source, as many rows more travel.
func TestSumsOfSources(t *testing.T) {
	f := facts{nodes: 3, steps: 1, epochs: 10, sum: 16, row: 400}
	r := Rates{Bandwidth: 1e6, Compute: 1e-12, Sample: 1e-12, Hands: 1}
	l := Load{Rows: 1200, Inputs: 1000, First: 200, Slots: 1}
	all := &tried{"p3", 1, []Load{l, l, l}}
	about(t, "activations of targets", f.predict(all, &r).activations, 3*4*16*(2*200+400))
	f.sources = true
	about(t, "activations of sources", f.predict(all, &r).activations, 3*4*16*(2*1000+2000))
}

// What hides takes no time until computing is done with; what can't, does.
func TestWhatHides(t *testing.T) {
	f := facts{nodes: 2, steps: 1, weights: 1000, row: 100}
	one := func(remote uint64, r Rates) float64 {
		l := Load{Rows: 1000, Remote: remote, Slots: 1}
		return f.predict(&tried{"leap", 1, []Load{l, l}}, &r).seconds
	}
	r := Rates{Bandwidth: 1e6, RoundTrip: 0.01, Compute: 1e-3, Sample: 1e-4, Hands: 1}
	sum := 1000/1e6 + 0.01
	about(t, "with nothing to bring", one(0, r), 1+sum)
	about(t, "with what hides", one(1000, r), 1+sum)
	about(t, "with what does not", one(10_000, r), 0.1+1+0.01+sum)
	l := Load{Rows: 1000, First: 10, Slots: 1}
	p3 := f.predict(&tried{"p3", 1, []Load{l, l}}, &r)
	about(t, "p3 with nothing but rounds", p3.seconds-(p3.busiest-p3.hidden)/1e6, 1+4*0.01)
	f.once, f.epochs = true, 5
	about(t, "what comes once", one(10_000, r), 1+sum+1.0/5)
	f.once = false
	r.Hands = 2
	about(t, "with two that draw", one(10_000, r), 0.05+1+0.01+sum)
}
