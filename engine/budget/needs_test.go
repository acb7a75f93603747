package budget

import "testing"

func TestNeeds(t *testing.T) {
	var n Needs
	for k := range kinds {
		n.Add(k, 1<<(4*k))
	}
	n.Inference = Inference{Least: 1 << 40, May: 1 << 44, Takes: 1 << 42}
	const base = Program + 0x110111
	for name, c := range map[string]struct{ got, want uint64 }{
		"base":      {n.Base(), base},
		"on host":   {n.OnHost(), base + 0x1000 + 1<<32 + 1<<40},
		"on device": {n.OnDevice(), 0x11011000},
		"total":     {n.Total(), base + 0x1000 + 1<<42},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, not %#x", name, c.got, c.want)
		}
	}
	if n.Foreign = true; n.OnHost() != base+1<<32 {
		t.Errorf("beside a device: %#x on the host", n.OnHost())
	}
}

// What is given back for inference counts once, and bounds what runs once on several nodes.
func TestInferenceTakesWhatIsGivenBack(t *testing.T) {
	const mib = 1 << 20
	of := func(memory, instead uint64, once, alone bool) *Needs {
		n := &Needs{Inference: Inference{Least: 10 * mib, Instead: instead}}
		n.Set(Slots, 300*mib)
		n.Bound(memory, once, alone)
		n.Inference.Takes = n.Inference.May
		return n
	}
	const base = Program + 300*mib
	for name, c := range map[string]struct {
		n          *Needs
		may, total uint64
	}{
		"no bound":               {of(0, 0, false, false), LeastInference, base + LeastInference},
		"alone":                  {of(0, 0, true, true), LeastInference, base + LeastInference},
		"nothing is given back":  {of(0, 0, true, false), leastOnce, base + leastOnce},
		"some is given back":     {of(0, 200*mib, true, false), 200 * mib, base},
		"a bound":                {of(base+50*mib, 0, false, false), 50 * mib, base + 50*mib},
		"some and a bound":       {of(base+10*mib, 20*mib, true, false), 30 * mib, base + 10*mib},
		"a bound that is larger": {of(base+500*mib, 200*mib, true, false), 200 * mib, base},
	} {
		if c.n.Inference.May != c.may || c.n.Total() != c.total {
			t.Errorf("%s: it may take %d of all %d, not %d of %d", name, c.n.Inference.May/mib, c.n.Total()/mib, c.may/mib, c.total/mib)
		}
		if host := base + 10*mib - min(10*mib, c.n.Inference.Instead); c.n.OnHost() != host {
			t.Errorf("%s: %d on the host, not %d", name, c.n.OnHost(), host)
		}
	}
}

func TestNeedsChange(t *testing.T) {
	var n Needs
	n.Raise(Slots, 100)
	n.Raise(Slots, 60)
	n.Add(Pass, 10)
	n.Grow(0.1, Slots, Step)
	n.Sub(Pass, 20)
	n.Set(Held, 3)
	for k, want := range map[Kind]uint64{Slots: 110, Step: 0, Pass: 0, Held: 3} {
		if n.Of(k) != want {
			t.Errorf("kind %d: %d, not %d", k, n.Of(k), want)
		}
	}
}

func TestShort(t *testing.T) {
	s := &Short{Cause: "little", Advice: []Advice{"take a smaller {batch} or {hidden}", "share the job", More(true)}}
	if want := "little: take a smaller {batch} or {hidden}, share the job, or allow more with {agent.memory}"; s.Error() != want {
		t.Errorf("%q, not %q", s.Error(), want)
	}
	if got := (&Short{Cause: "little"}).Error(); got != "little" {
		t.Errorf("without advice: %q", got)
	}
}

func TestFormat(t *testing.T) {
	for bytes, want := range map[uint64]string{0: "0.0 MiB", 3 << 19: "1.5 MiB", 1 << 30: "1.0 GiB", 5 << 29: "2.5 GiB"} {
		if got := Format(bytes); got != want {
			t.Errorf("%d: %s, not %s", bytes, got, want)
		}
	}
}
