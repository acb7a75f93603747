package tables

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
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
	other := func(f found) found { f.Weights[0]++; return f } // as many updates of another course
	mixed := func(f found) found { f.Mixed = true; return f }
	for name, c := range map[string]struct {
		all     []finding
		known   int
		updates uint64
		from    int
		err     string
	}{
		"all stand there":         {[]finding{{at(7, 0, 1)}, {at(7, 1, 2)}, {at(7, 2, 3)}}, 0, 7, 0, ""},
		"one is behind":           {[]finding{{at(7, 0), at(6, 0)}, {at(6, 1, 2)}, {at(7, 2, 3), at(6, 2, 3)}}, 0, 6, 0, ""},
		"one that is not needed":  {[]finding{{at(3, 0, 1)}, {at(7, 0, 1, 2)}, {at(7, 2, 3)}}, 0, 7, 1, ""},
		"one has nothing":         {[]finding{{none}, {at(7, 0, 1, 2)}, {at(7, 2, 3)}}, 0, 7, 1, ""},
		"the one before is ahead": {[]finding{{at(5, 0, 1), at(7, 0, 1)}, {at(7, 2, 3)}, {}}, 0, 7, 0, ""},
		"one was killed":          {[]finding{{at(9, 0, 1), at(3, 0, 1), at(8, 0, 1)}, {at(3, 1, 2)}, {at(9, 3), at(3, 2, 3), at(8, 3)}}, 2, 3, 0, ""},
		"rows have moved":         {[]finding{{at(7, 0, 3), at(7, 0, 1)}, {at(7, 1, 2)}, {at(7, 0, 3)}}, 2, 7, 0, ""},
		"one was away":            {[]finding{{other(at(7, 0, 1)), at(6, 0, 1)}, {at(7, 1, 2), at(6, 1, 2)}, {at(7, 2, 3), at(6, 2, 3)}}, 2, 6, 0, ""},
		"devices differ":          {[]finding{{mixed(other(at(7, 0, 1)))}, {mixed(at(7, 1, 2))}, {mixed(at(7, 2, 3))}}, 2, 7, 0, ""},
		"rows are missing":        {[]finding{{at(7, 0, 1), at(6, 0, 1)}, {at(7, 1, 2), at(6, 1, 2)}, {}}, 0, 0, 0, "(shard 3, after step 7 of epoch 1): start node c or node d, and then {train.resume}"},
		"the first was written":   {[]finding{{at(7, 0)}, {none}, {none}}, 0, 0, 0, errUnfinished.Error()},
		"epochs are known":        {[]finding{{at(7, 0)}, {none}, {none}}, 1, 0, 0, "start the nodes that trained this job, and then {train.resume}, or remove the job and start another"},
	} {
		u := &Reunion{Shards: 4, Known: c.known, Session: &session.Session{Work: peer.Work{Nodes: []string{"a", "b", "x"}}}, met: met{all: c.all}}
		names := make([]keepers, 3)
		names[0] = keepers{Nodes: []string{"a", "b", "c", "d"}, Owners: []int{0, 1, 3, 2}}
		if strings.HasPrefix(name, "the first") || strings.HasPrefix(name, "epochs") {
			names[0].Nodes = []string{"a", "b", "x"}
			names[0].Owners = []int{0, 1, 2, 2}
		}
		names[1], names[2] = names[0], names[0]
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

// What stands where all go on takes the place of each node's last checkpoint.
func TestEarlierCheckpointsTakeThePlaceOfTheLast(t *testing.T) {
	u := &Reunion{Session: &session.Session{Work: peer.Work{Self: 1}}, met: met{course: at(6), all: []finding{
		{at(7), at(6), at(5)}, {at(7), at(3), at(6)}, {at(6), at(6)}, {at(7)},
	}}}
	if mine := u.settle(); mine != checkpoint.Back {
		t.Errorf("here it is %d", mine)
	}
	for node, want := range [][3]uint64{{6, 0, 5}, {6, 3, 0}, {6, 6, 0}, {7, 0, 0}} {
		for i, f := range u.all[node] {
			if f.Updates != want[i] {
				t.Errorf("checkpoint %d of node %d is of %d updates, not %d", i, node, f.Updates, want[i])
			}
		}
	}
	if u.standing(2) != 0 || u.standing(3) >= 0 {
		t.Error("nodes stand elsewhere")
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
		u := &Reunion{met: met{at: &c.at}}
		got, err := u.best(&found{said: said{Best: c.file}})
		if got != c.want || err != nil != c.err {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// FuzzFinding reads what nodes say of their checkpoints, which may be anything.
func FuzzFinding(f *testing.F) {
	mine := finding{at(7, 0, 1)}
	whole := message(&mine, 4, 2, `{"nodes":["a","b"],"owners":[0,1,1,0]}`)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(message(&mine, 4, 2, ""))
	f.Add(message(&mine, 3, 0, ""))
	f.Add(message(&mine, 4, 2, `{"nodes":["a"],"owners":[0,1,1,0]}`))
	f.Fuzz(func(t *testing.T, m []byte) {
		var g finding
		var who keepers
		if known, err := g.read(m, 4, &who); err != nil || known < 0 {
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
