package tables

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// at is a checkpoint after so many updates with the rows of some of four shards.
func at(updates uint64, shards ...int) found {
	f := found{said: said{Have: true, Parts: true, Epoch: 1, Step: updates, Left: 1, Updates: updates}, shards: make([]bool, 4)}
	for _, shard := range shards {
		f.shards[shard] = true
	}
	return f
}

// Nodes go on from the furthest step of which all rows are there, whichever files have them.
func TestWhereNodesGoOn(t *testing.T) {
	none := found{}
	for name, c := range map[string]struct {
		all     []finding
		updates uint64
		from    int
		err     string
	}{
		"all stand there":         {[]finding{{at(7, 0, 1), none}, {at(7, 1, 2), none}, {at(7, 2, 3), none}}, 7, 0, ""},
		"one is behind":           {[]finding{{at(7, 0), at(6, 0)}, {at(6, 1, 2), none}, {at(7, 2, 3), at(6, 2, 3)}}, 6, 0, ""},
		"one that is not needed":  {[]finding{{at(3, 0, 1), none}, {at(7, 0, 1, 2), none}, {at(7, 2, 3), none}}, 7, 1, ""},
		"one has nothing":         {[]finding{{none, none}, {at(7, 0, 1, 2), none}, {at(7, 2, 3), none}}, 7, 1, ""},
		"the one before is ahead": {[]finding{{at(5, 0, 1), at(7, 0, 1)}, {at(7, 2, 3), none}, {none, none}}, 7, 0, ""},
		"rows are missing":        {[]finding{{at(7, 0, 1), at(6, 0, 1)}, {at(7, 1, 2), at(6, 1, 2)}, {none, none}}, 0, 0, "(shard 3, after step 7 of epoch 1): start node c or node d, and then {train.resume}"},
	} {
		u := &Reunion{Shards: 4, Session: &session.Session{Work: peer.Work{Nodes: []string{"a", "b", "x"}}}, all: c.all}
		names := make([]keepers, 3)
		names[0] = keepers{Nodes: []string{"a", "b", "c", "d"}, Owners: []int{0, 1, 3, 2}}
		err := u.choose(names)
		if c.err != "" {
			if err == nil || !strings.HasSuffix(err.Error(), c.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || u.course.Updates != c.updates || u.from != c.from {
			t.Errorf("%s: %v, %+v of node %d", name, err, u.course, u.from)
		}
	}
}

// A checkpoint from before the end of the best epoch has its rows as those of the last step.
func TestWhereTheBestRowsAre(t *testing.T) {
	best := func(n int) *trained.Epoch { return &trained.Epoch{Record: epoch.Record{Epoch: n}} }
	for name, c := range map[string]struct {
		at   trained.State
		file uint64
		want embedding.BestRows
		err  bool
	}{
		"none":                   {trained.State{Epoch: 3}, 0, embedding.NoBest, false},
		"the same":               {trained.State{Epoch: 5, Step: 2, Best: best(3)}, 3, embedding.BestApart, false},
		"it has just ended":      {trained.State{Epoch: 4, Best: best(3)}, 2, embedding.BestNow, false},
		"it was the first":       {trained.State{Epoch: 2, Best: best(1)}, 0, embedding.BestNow, false},
		"steps were made since":  {trained.State{Epoch: 4, Step: 1, Best: best(3)}, 2, 0, true},
		"epochs were made since": {trained.State{Epoch: 5, Best: best(3)}, 2, 0, true},
	} {
		u := &Reunion{at: &c.at}
		got, err := u.best(&found{said: said{Best: c.file}})
		if got != c.want || err != nil != c.err {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// FuzzFinding reads what nodes say of their checkpoints, which may be anything.
func FuzzFinding(f *testing.F) {
	mine := finding{at(7, 0, 1), {shards: make([]bool, 4)}}
	whole := message(&mine, 4, `{"nodes":["a","b"],"owners":[0,1,1,0]}`)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(message(&mine, 4, ""))
	f.Add(message(&mine, 3, ""))
	f.Add(message(&mine, 4, `{"nodes":["a"],"owners":[0,1,1,0]}`))
	f.Fuzz(func(t *testing.T, m []byte) {
		var g finding
		var who keepers
		if err := g.read(m, 4, &who); err != nil {
			return
		}
		for i := range g {
			if len(g[i].shards) != 4 || g[i].Epoch > 1<<31 {
				t.Fatalf("%+v", g[i])
			}
		}
		if len(who.Owners) > 0 && (len(who.Owners) != 4 || slices.Max(who.Owners) >= len(who.Nodes)) {
			t.Fatalf("%+v", who)
		}
	})
}
