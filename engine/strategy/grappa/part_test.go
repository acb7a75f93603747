package grappa_test

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
)

// The contexts that a job begins with are known before its nodes meet, and followed as they are.
func TestPartsOfSchedules(t *testing.T) {
	l := peer.Layout{Nodes: 2}
	for shard := range 8 {
		l.Owners, l.Firsts = append(l.Owners, shard/4), append(l.Firsts, uint32(shard))
	}
	l.Firsts = append(l.Firsts, 8)
	all := strategy.Declarations{grappa.Strategy.Declaration}
	for _, c := range []struct {
		values []string
		want   string
	}{
		{[]string{"grappa.groups=2"}, "2 groups of 8 shards, each with 4 of others at a time"},
		{[]string{"grappa.groups=4", "grappa.swept=1"}, "4 groups of 8 shards, each with 1 of others at a time, all in 6 super-epochs"},
		{[]string{"grappa.groups=4", "grappa.sweep=off"}, "4 groups of 8 shards"},
	} {
		job := strategy.Given(grappa.Name, c.values...)
		part, known := all.Begins(grappa.Name, &job, strategy.Place{Nodes: 2, Shards: 8})
		if got, err := all.Describe(grappa.Name, part); !known || got != c.want || err != nil {
			t.Errorf("%v: %q (%v), not %q", c.values, got, err, c.want)
		}
		d, err := grappa.Deal(l, job)
		if err != nil {
			t.Fatal(err)
		}
		if err := deal.Follow(d, part); err != nil {
			t.Errorf("%v: %v", c.values, err)
		}
		other := strings.Replace(string(part), `"shards":8`, `"shards":9`, 1)
		if err := deal.Follow(d, []byte(other)); err == nil || !strings.Contains(err.Error(), "other contexts") {
			t.Errorf("%v: other contexts are followed: %v", c.values, err)
		}
	}
	for _, bad := range []string{"", "{}", `{"slots":1}`, `{"shards":1,"groups":2,"swept":1,"supers":1}`} {
		if got, err := all.Describe(grappa.Name, []byte(bad)); err == nil {
			t.Errorf("%s is %q", bad, got)
		}
	}
}
