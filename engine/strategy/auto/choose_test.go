package auto

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func costsOf(f *facts, all []tried, r *Rates) (costs []cost) {
	for i := range all {
		costs = append(costs, f.predict(&all[i], r))
	}
	return costs
}

func TestWhatIsChosen(t *testing.T) {
	load := func(rows, remote, first uint64) Load {
		return Load{Rows: rows, Remote: remote, Inputs: rows * 4 / 5, First: first, Edges: rows, Slots: 1}
	}
	same := func(name string, l Load) tried { return tried{name, 1, []Load{l, l, l, l}} }
	slow := Rates{Bandwidth: 1e7, RoundTrip: 1e-3, Compute: 1e-6, Sample: 1e-7, Hands: 1}
	quick := Rates{Bandwidth: 1e10, RoundTrip: 1e-5, Compute: 1e-6, Sample: 1e-7, Hands: 1}
	uneven := func(name string, remote uint64) tried {
		return tried{name, 1, []Load{load(40_000, remote, 5000), load(100, 0, 10), load(100, 0, 10), load(100, 0, 10)}}
	}
	even, local := same("centric", load(10_000, 5000, 2000)), same("leap", load(11_000, 500, 2000))
	columns := same("p3", load(10_000, 5000, 2000))
	f := facts{nodes: 4, steps: 10, epochs: 50, weights: 1e5, row: 404, sum: 16, front: 6400, features: 1e7}
	wide := f
	wide.sum = 512
	once := f
	once.once = true
	for name, c := range map[string]struct {
		f    facts
		all  []tried
		r    Rates
		want string
		why  []string
	}{
		"fewer bytes on a slow network": {f, []tried{even, local}, slow, "leap",
			[]string{"leap: about 808 kB of features a step, where centric would send 8.1 MB; the network gives 10 MB/s"}},
		"as fast: fewer bytes": {f, []tried{even, local}, quick, "leap", nil},
		"as fast, and as many bytes": {f, []tried{even, same("leap", load(10_000, 5000, 2000)), same("zebra", load(10_000, 5000, 2000))},
			quick, "leap", nil},
		"all roots on one node, quick network": {f, []tried{even, uneven("leap", 500)}, quick, "centric",
			[]string{"centric: about 10 ms a step, where leap would take 40 ms with 40 thousand rows: the busiest node computes 10 thousand rows a step, and the network gives 10 GB/s"}},
		"all roots on one node, slow network, rows come once": {once, []tried{even, uneven("leap", 500)}, slow, "centric", nil},
		"as many rows, which come once": {once, []tried{even, local}, slow, "leap",
			[]string{"leap: about 808 kB of features once, since all epochs have the same batch, where centric would send 8.1 MB; "}},
		"all roots on one node, slow network": {f, []tried{even, uneven("leap", 500)}, slow, "leap", nil},
		"wide rows, narrow sums":              {f, []tried{even, columns}, slow, "p3", []string{"p3: about ", " of activations and edges a step, where centric would send 8.1 MB of features; "}},
		"narrow rows, wide sums":              {wide, []tried{even, columns}, slow, "centric", []string{"centric: about 8.1 MB of features a step, where p3 would send "}},
		"nothing else":                        {f, []tried{even}, slow, "centric", []string{"centric: about 8.1 MB of features a step; no other strategy is possible"}},
		"three":                               {f, []tried{even, local, columns}, slow, "leap", []string{"where centric would send 8.1 MB and p3 would send "}},
	} {
		costs := costsOf(&c.f, c.all, &c.r)
		at := choose(costs)
		if got := costs[at].name; got != c.want {
			t.Errorf("%s: %s of %+v", name, got, costs)
		}
		said := why(&c.f, costs, at, &c.r)
		for _, part := range c.why {
			if !strings.Contains(said, part) {
				t.Errorf("%s: %q lacks %q", name, said, part)
			}
		}
	}
}

// anyLoad is a load of a few steps.
func anyLoad(r *rand.Rand) Load {
	inputs := uint64(r.IntN(100_000))
	remote := uint64(r.Float64() * float64(inputs))
	return Load{
		Rows: inputs + uint64(r.IntN(20_000)), Local: inputs - remote, Remote: remote, Topology: uint64(r.IntN(2) * r.IntN(1_000_000)),
		Inputs: inputs, First: inputs / uint64(1+r.IntN(10)), Edges: inputs * 2, Slots: 3 * uint64(1+r.IntN(3)),
	}
}

func anyRates(r *rand.Rand) Rates {
	return Rates{
		Bandwidth: 1e4 * float64(uint64(1)<<r.IntN(30)), RoundTrip: r.Float64() * 1e-3 * float64(r.IntN(2)),
		Compute: 1e-8 * float64(uint64(1)<<r.IntN(14)), Sample: 1e-8 * float64(uint64(1)<<r.IntN(10)), Hands: float64(1 + r.IntN(4)),
	}
}

// Of strategies whose sums can't hide any more than the others', which all but p3 are.
func TestASlowerNetworkNeverFavoursMoreBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	changed := 0
	for range 20_000 {
		f := facts{once: r.IntN(4) == 0, nodes: 1 + r.IntN(6), steps: 1 + r.IntN(50), epochs: 10, weights: float64(r.IntN(1 << 20)), row: float64(r.IntN(4000))}
		var all []tried
		for _, name := range []string{"centric", "leap", "third"}[:2+r.IntN(2)] {
			t := tried{name: name, looks: 3}
			for range f.nodes {
				t.loads = append(t.loads, anyLoad(r))
			}
			all = append(all, t)
		}
		rates := anyRates(r)
		was := -1.0
		for range 12 {
			costs := costsOf(&f, all, &rates)
			bytes := costs[choose(costs)].busiest
			if said := why(&f, costs, choose(costs), &rates); len(said) > 256 {
				t.Fatalf("%q is more than the plan keeps", said)
			}
			if was >= 0 && bytes > was {
				t.Fatalf("%g bytes, and %g at %+v: %+v", was, bytes, rates, costs)
			}
			if was >= 0 && bytes < was {
				changed++
			}
			was = bytes
			rates.Bandwidth /= 1 + 3*r.Float64()
		}
	}
	if changed < 1000 {
		t.Errorf("the network made a difference %d times", changed)
	}
}

// Where nothing but the network takes time, no strategy is chosen that sends much more
// than another, p3 or not.
func TestTheSlowestNetworkWantsTheFewestBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for range 5000 {
		f := facts{nodes: 2 + r.IntN(5), steps: 10, epochs: 1000, weights: 1e6, front: 5e5, sum: float64(1 + r.IntN(300)), row: float64(100 + r.IntN(4000))}
		var all []tried
		for _, name := range []string{"centric", "leap", "p3"} {
			t := tried{name: name, looks: 3}
			for range f.nodes {
				t.loads = append(t.loads, anyLoad(r))
			}
			all = append(all, t)
		}
		rates := Rates{Bandwidth: 1, Compute: 1e-9, Sample: 1e-9, Hands: 1}
		costs := costsOf(&f, all, &rates)
		chosen := costs[choose(costs)]
		for _, c := range costs {
			if chosen.busiest > near*1.01*c.busiest {
				t.Fatalf("%s is chosen with %g bytes, and %s has %g", chosen.name, chosen.busiest, c.name, c.busiest)
			}
		}
	}
}
