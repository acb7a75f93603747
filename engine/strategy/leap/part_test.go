package leap

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// What a job begins with is known before its nodes meet: it is what their dealers begin with.
func TestPartsOfSchedules(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   string
	}{
		{nil, "models stay"},
		{[]string{"leap.mode=stay"}, "models stay"},
		{[]string{"leap.mode=migrate"}, "models travel in 3 slots, in fewer if that is faster"},
		{[]string{"leap.mode=migrate", "leap.merge=off"}, "models travel in 3 slots"},
		{[]string{"leap.merge=2"}, "models travel in 2 slots"},
		{[]string{"leap.merge=1"}, "models travel in 1 slot"},
		{[]string{"leap.sync_every=4"}, "models travel in 3 slots"},
	} {
		job := strategy.Given(Name, c.values...)
		d, err := Deal(peer.Layout{Nodes: 3, Owners: []int{0, 1, 2}, Firsts: []uint32{0, 1, 2, 3}}, job)
		if err != nil {
			t.Fatal(err)
		}
		begins, known := strategy.Declarations{declaration}.Begins(Name, &job, strategy.Place{Nodes: 3, Shards: 3})
		if part := d.(interface{ Part() []byte }).Part(); !known || string(part) != string(begins) {
			t.Errorf("%v: it begins with %s, and the dealer with %s", c.values, begins, part)
		}
		if got, err := (strategy.Declarations{declaration}).Describe(Name, begins); got != c.want || err != nil {
			t.Errorf("%v: %q (%v), not %q", c.values, got, err, c.want)
		}
	}
}

// FuzzPart: what is followed is in bounds, and is written as it was read.
func FuzzPart(f *testing.F) {
	for _, s := range []string{`{"slots":0}`, `{"slots":3,"frozen":true}`, `{"slots":2,"best":0.5}`, `{"slots":4}`, `{"slots":2,"best":1e999}`, `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newTuner(3, 0)
		if d.follow(b) != nil {
			return
		}
		if d.Slots < 1 || d.Slots > 3 || !(d.Best >= 0) {
			t.Fatalf("%s leads to %+v", b, d)
		}
		again := newTuner(3, 0)
		if err := again.follow(d.part().encode()); err != nil || again.part() != d.part() {
			t.Fatalf("%s leads to %+v, and that to %+v (%v)", b, d, again, err)
		}
	})
}
