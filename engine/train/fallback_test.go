package train_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A job that lacks memory gives up what makes it fast, says so, and learns the same, before
// it is refused. Only the node that lacks memory gives anything up.
func TestAJobFallsBackToWhatFits(t *testing.T) {
	shards := dense(t, 6000)
	const files, edges = "of files there: it takes longer", "it asks others for edges"
	for _, c := range []struct {
		nodes int
		model string
		given []string
		want  []string // what is given up, in this order
	}{
		{1, "sage", nil, []string{"batches are in memory at once", files}},
		{3, "sage", []string{"leap", "leap.cache=3000"}, []string{"batches are in memory at once", "rows of other nodes are cached", files}},
		{3, "sage", []string{"leap", "topology=replicated"}, []string{"batches are in memory at once", files}},
		{3, "gcn", []string{"centric"}, []string{"batches are in memory at once", edges, files}},
		{3, "gat", []string{"leap"}, []string{"batches are in memory at once", edges, files}},
		{3, "sage", []string{"local"}, []string{"batches are in memory at once", edges, files}},
		{3, "sage", []string{"centric", "topology=sharded"}, []string{"batches are in memory at once", files}},
		{3, "sage", []string{"p3"}, []string{"batches are in memory at once", edges, files}},
	} {
		r := traintest.Small(c.model)
		r.Batch, r.Epochs, r.Fanouts = 1500, 2, []int{10, 10}
		if c.nodes == 1 {
			r.Model.Hidden = 128
		} else {
			r.Sharing = strategy.Given(c.given[0], c.given[1:]...)
		}
		r.Sharing.Deterministic = c.nodes == 1 || c.given[0] != "local"
		run := func(memory uint64) (hash string, said [][]string, err error) {
			said = make([][]string, c.nodes)
			edgeFiles := replica.NewCache(t.TempDir()) // which are gone once they are given up
			defer func() {
				if err := edgeFiles.Close(); err != nil {
					t.Error(err)
				}
			}()
			options := func(node int, o *train.Options) {
				o.Threads, o.Strategies = 8, strategies.All
				if node == 0 {
					o.Memory, o.Replicas = memory, edgeFiles
				}
				o.Announce = func(f train.Forecast) { said[node] = f.FellBack }
				o.Report = func(e trained.Epoch) { hash = e.Hash }
			}
			if c.nodes == 1 {
				var o train.Options
				options(0, &o)
				_, err = train.Run(t.Context(), r, shards, o)
				return hash, said, err
			}
			m := traintest.NewMesh(c.nodes, traintest.Uneven(len(shards), c.nodes))
			errs := traintest.Ends(t, m, shards, func(node int, to *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
				*to = r
				options(node, o)
				if node > 0 {
					o.Report = nil
				}
			})
			return hash, said, errs[0]
		}
		want, none, err := run(0)
		if err != nil || len(none[0]) > 0 {
			t.Fatalf("%v: %q, %v", c.given, none, err)
		}
		// With hardly any memory all is given up, and the error says what is still needed.
		_, _, err = run(budget.Program + 1<<20)
		short, is := errors.AsType[*budget.Short](err)
		if !is {
			t.Fatalf("%v: %v", c.given, err)
		}
		least := short.Needs
		// Advice with figures is what the run needs with that advice followed.
		_, _, err = run(least - 1<<19)
		if !errors.As(err, &short) {
			t.Fatalf("%v: with too little memory: %v", c.given, err)
		}
		whole := r.Batch
		var less string
		if n, err := fmt.Sscanf(string(short.Advice[0]), "take {batch}=%d, which needs %s", &r.Batch, &less); n != 2 {
			t.Fatalf("%v: %q: %v", c.given, short.Advice, err)
		}
		if _, _, err := run(least - 1<<19); err != nil || r.Batch >= whole {
			t.Errorf("%v: with the batch that was advised: %v", c.given, err)
		}
		r.Batch = whole
		if c.nodes == 1 {
			followed(t, &r, short.Advice, func() error { _, _, err := run(least - 1<<19); return err })
		}
		if len(c.want) > 2 {
			least -= 64 << 10 // in vain not all was given up
		}
		hash, said, err := run(least)
		if err != nil || hash != want || len(said[0]) != len(c.want) {
			t.Fatalf("%v, with %s: %v, weights %s and not %s, %q", c.given, budget.Format(least), err, hash, want, said)
		}
		for i, s := range said[0] {
			if !strings.Contains(s, c.want[i]) || c.want[i] != files && !strings.Contains(s, "a node has "+budget.Format(least)) {
				t.Errorf("%v: %q", c.given, s)
			}
		}
		for _, others := range said[1:] {
			if len(others) > 0 {
				t.Errorf("%v: another node says %q", c.given, others)
			}
		}
	}
}

// followed fails unless a job that lacks memory runs once it has followed advice with figures on
// other settings than its batch.
func followed(t *testing.T, r *recipe.Recipe, advice []budget.Advice, run func() error) {
	t.Helper()
	given, seen := *r, 0
	for _, a := range advice {
		var value int
		var needs string
		*r = given
		if n, _ := fmt.Sscanf(string(a), "divide each {fanout} by %d, which needs %s", &value, &needs); n == 2 {
			r.Fanouts = slices.Clone(given.Fanouts)
			for i := range r.Fanouts {
				r.Fanouts[i] /= value
			}
		} else if n, _ := fmt.Sscanf(string(a), "take {hidden}=%d, which needs %s", &value, &needs); n == 2 {
			r.Model.Hidden = value
		} else {
			continue
		}
		seen++
		if err := run(); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
	if *r = given; seen == 0 { // a slow machine looks for fewer
		t.Errorf("advice is %q", advice)
	}
}
