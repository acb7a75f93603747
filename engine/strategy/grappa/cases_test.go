package grappa_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Where groups have nine roots, one and none, all do as many steps, and all roots count
// as much.
func TestGroupsCountByTheirRoots(t *testing.T) {
	for _, batch := range []int{0, 4} {
		shards := traintest.Tiny(t, 90, 3)
		trained := 0
		traintest.Remarked(shards, func(v int, label *int32, mark *graph.Mark) {
			*label = max(*label, 0)
			if *mark = graph.Validation; v < 9 || uint32(v) == shards[1].First {
				*mark = graph.Train
				trained++
			}
		})
		if trained != 10 {
			t.Fatalf("%d roots", trained)
		}
		r := traintest.ExactRecipe("sage")
		if r.Batch = batch; batch == 0 {
			r.Fanouts = nil
		}
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, nodes := range []int{1, 3} {
			r.Sharing = apart("groups=3", "depth=2")
			m := traintest.NewMesh(nodes, []int{0, 1 % nodes, 2 % nodes})
			traintest.Alike(t, fmt.Sprintf("%d nodes, batch %d", nodes, batch), m, m.Start(t, r, shards, isolation(traintest.Wide(train.Options{Threads: 1}))), want, 1e-10)
		}
	}
}

// Labels of vertices that are not for training change nothing that is learnt.
func TestOtherLabelsTeachNothing(t *testing.T) {
	var want []string
	for _, change := range []bool{false, true} {
		shards := traintest.Communities(t, 900)
		if change {
			traintest.Remarked(shards, func(v int, label *int32, mark *graph.Mark) {
				if *mark != graph.Train {
					*label = (*label + int32(v)) % int32(shards[0].Classes)
				}
			})
		}
		r := traintest.Small("gcn")
		r.Batch, r.Fanouts, r.Epochs = 0, nil, 3
		r.Sharing = apart("loader=strict", "period=1")
		_, all := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		want = append(want, traintest.Hashes(all))
		if len(want) == 2 && (want[0] != want[1] || all[0].Scores.Val.Count == 0) {
			t.Errorf("%s and\n%s", want[0], want[1])
		}
	}
}

// Epochs are judged by the whole graph, as one node judges, by vertices without labels
// that lie between others, too.
func TestIsolatedGroupsAreJudgedByTheWholeGraph(t *testing.T) {
	shards := traintest.Communities(t, 900)
	traintest.Remarked(shards, func(v int, label *int32, _ *graph.Mark) {
		if v%3 == 0 {
			*label = graph.NoLabel
		}
	})
	r := traintest.Small("gcn")
	r.Epochs = 1
	r.Sharing = apart("loader=strict")
	r.Sharing.Deterministic = true
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	dir := t.TempDir()
	traintest.MustRun(t, r, shards, train.Options{Threads: 2, Dir: dir})
	_, three := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, isolation(train.Options{Threads: 1}))
	e := three[2][0].Scores
	if traintest.Learnt(three[2]) != traintest.Learnt(one) || e.Val.Count == 0 || e.Sent.Bytes[peer.Activation] == 0 {
		t.Errorf("%s and\n%s", traintest.Learnt(three[2]), traintest.Learnt(one))
	}
	// Who predicts from the checkpoint knows nothing of groups.
	_, at := traintest.Predicted(t, dir, shards, train.Options{Strategies: strategies.All, Threads: 1}, trained.PredictOptions{})
	if at.Epoch != 1 {
		t.Errorf("%+v", at)
	}
}

// However often a job is interrupted, while views are brought or steps are done, and on
// however many nodes it goes on: its weights are those of a job left alone.
func TestGroupsGoOnOnOtherNodes(t *testing.T) {
	shards := traintest.Communities(t, 600)
	for name, g := range map[string][]string{
		"strict":  {"period=1", "loader=strict", "swept=1", "correction=self-normalised"},
		"plateau": {"period=1", "switch=plateau", "loader=strict", "swept=1"},
		"full":    {"period=1", "loader=strict", "swept=1"},
	} {
		random := rand.New(rand.NewPCG(5, 4))
		r := traintest.Small("sage")
		if name == "full" { // one batch, drawn anew at each switch
			r.Batch, r.Fanouts = 0, nil
		}
		r.Epochs, r.Rate = 5, 0.2 // which brings validation up and down
		r.Sharing = apart(g...)
		r.Sharing.Deterministic = true
		_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
		folders := map[int]string{}
		for node := range 4 {
			folders[node] = t.TempDir()
		}
		reports := map[int]trained.Epoch{}
		runs, done := 0, false
		for ; !done; runs++ {
			if runs == 60 {
				t.Fatal("it gets nowhere")
			}
			nodes := []int{2, 4, 3}[runs%3]
			m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
			ctx := traintest.CancelAfter(t, m, int64(nodes*(nodes-1))*(8+random.Int64N(25)))
			_, epochs, err := m.Run(ctx, r, shards, isolation(train.Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}), func(node int) string {
				return folders[(node+runs)%4]
			})
			if done = err == nil; !done && !errors.Is(err, traintest.ErrEnough) {
				t.Fatal(err)
			}
			for _, e := range slices.Concat(epochs...) {
				reports[e.Epoch] = e
			}
		}
		var all []trained.Epoch
		for _, epoch := range slices.Sorted(maps.Keys(reports)) {
			all = append(all, reports[epoch])
			if e := reports[epoch]; e.Super != one[epoch-1].Super || e.Seen != one[epoch-1].Seen {
				t.Errorf("%s: epoch %d is told as super-epoch %d with %g of edges seen, and alone as %d with %g", name, epoch, e.Super, e.Seen, one[epoch-1].Super, one[epoch-1].Seen)
			}
		}
		if traintest.Learnt(all) != traintest.Learnt(one) || runs < 2 {
			t.Errorf("%s, after %d runs:\n%s\nand left alone\n%s", name, runs, traintest.Learnt(all), traintest.Learnt(one))
		}
		if name == "plateau" && one[len(one)-1].Super < 2 {
			t.Error("no super-epoch ended")
		}
	}
}

// A node that can't be reached while a view is brought ends the run of all, and what
// was learnt is kept.
func TestTroubleWhileASceneIsBrought(t *testing.T) {
	shards := traintest.Communities(t, 900)
	r := traintest.Small("sage")
	r.Epochs = 4
	r.Sharing = apart("period=2", "loader=strict", "swept=1")
	r.Sharing.Deterministic = true
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	folder := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	all := m.Start(t, r, shards, isolation(train.Options{Threads: 1, Dataset: "d"}))
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if q.Service == peer.Contexts {
			return errCut
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := m.Each(func(node int) error {
		traintest.KeepIn(all[node].Run, folder[node])
		err := all[node].Run.Train(ctx)
		cancel()
		return err
	})
	if !errors.Is(err, errCut) || !strings.Contains(err.Error(), "what the groups of this node see from epoch 3 on") {
		t.Fatal(err)
	}
	m = traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	_, reports, err := m.Run(t.Context(), r, shards, isolation(train.Options{Threads: 1, Dataset: "d", Resume: true}), func(node int) string { return folder[node] })
	if err != nil || traintest.Learnt(reports[1]) != traintest.Learnt(one[2:]) {
		t.Errorf("%v\n%s\nand left alone\n%s", err, traintest.Learnt(reports[1]), traintest.Learnt(one[2:]))
	}
}

// A node that says of each vertex that it has edges from all others is refused: there are not as
// many.
func TestMoreEdgesThanTheGraphHasAreRefused(t *testing.T) {
	shards := traintest.Communities(t, 900)
	r := traintest.Small("sage")
	r.Epochs = 4
	r.Sharing = apart("period=2", "loader=strict", "swept=1")
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	all := m.Start(t, r, shards, isolation(train.Options{Threads: 1}))
	le := binary.LittleEndian
	for node := range all {
		m.Net.Node(node).Answer(peer.Contexts, func(_ context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
			ranges := q.Body[4:][:8*le.Uint32(q.Body)] // of the sources that are asked for
			var sources []byte
			for ; len(ranges) > 0; ranges = ranges[8:] {
				for u := le.Uint32(ranges); u < le.Uint32(ranges[4:]); u++ {
					sources = le.AppendUint32(sources, u)
				}
			}
			head, n := []byte{1, 0, 0, 0, 0, 0, 0, 0}, uint32(len(sources)/4)
			return reply(head, le.AppendUint32(le.AppendUint32(nil, n), n), sources)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := m.Each(func(node int) error {
		err := all[node].Run.Train(ctx)
		cancel()
		return err
	})
	edges := 0
	for _, s := range shards {
		edges += len(s.Indices)
	}
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("edges with those before, of a graph of %d", edges)) {
		t.Error(err)
	}
}

// A view of which only a part has come leaves nothing in files, whether it was brought ahead
// or when it was due.
func TestTroubleLeavesNoFiles(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for _, prefetch := range []string{"off", "on"} {
		r := traintest.Small("sage")
		r.Epochs = 4
		r.Sharing = apart("period=2", "loader=strict", "swept=1", "prefetch="+prefetch)
		m, dir := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)), t.TempDir()
		all := m.Start(t, r, shards, isolation(train.Options{Threads: 1, Dir: dir}))
		m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
			if q.Service == peer.Contexts {
				return errCut
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := m.Each(func(node int) error {
			err := all[node].Run.Train(ctx)
			cancel()
			return err
		})
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		for _, l := range all {
			l.Run.Close()
		}
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(maps), dir); n > 0 {
			t.Errorf("prefetch=%s: %d arrays are left in files", prefetch, n)
		}
	}
}

// What can't be brought ahead is brought when it is due, if that can be by then.
func TestASceneThatDidNotComeAheadComesWhenItIsDue(t *testing.T) {
	shards := traintest.Communities(t, 900)
	r := traintest.Small("sage")
	r.Epochs = 4
	r.Sharing = apart("period=2", "loader=strict", "swept=1", "cache=off")
	r.Sharing.Deterministic = true
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	var asked [2][3]atomic.Int64 // questions for edges, without trouble and with
	for trouble := range asked {
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		all := m.Start(t, r, shards, isolation(train.Options{Threads: 1}))
		var cut [3]atomic.Bool // whose first question for features was
		m.Net.Trouble = func(_ context.Context, from, _ int, q peer.Query) error {
			if q.Service == peer.Contexts {
				asked[trouble][from].Add(1)
			}
			if trouble == 1 && q.Service == peer.Rows && q.Kind == peer.Shard && !cut[from].Swap(true) {
				return errCut
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := m.Each(func(node int) error {
			err := all[node].Run.Train(ctx)
			if err != nil {
				cancel() // the others would wait for it
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if trouble == 1 && !cut[0].Load() && !cut[1].Load() && !cut[2].Load() {
			t.Error("nobody asked for anything")
		}
		if reports, want := all[0].History[2].Sent.Bytes[peer.Shard], bringing(t, m, shards, &r)[1]; reports < want || trouble == 0 && reports > want {
			t.Errorf("the epoch tells of %d bytes, and what it sees takes %d", reports, want)
		}
		for node, l := range all {
			if traintest.Learnt(l.History) != traintest.Learnt(one) {
				t.Errorf("node %d:\n%s\nand left alone\n%s", node, traintest.Learnt(l.History), traintest.Learnt(one))
			}
		}
	}
	for node := range 3 { // edges that had come are not asked for again
		if once, again := asked[0][node].Load(), asked[1][node].Load(); once != again {
			t.Errorf("node %d asks for edges %d times, and %d times where rows did not come", node, once, again)
		}
	}
}

// That memory is too small for what comes ahead is said at once, and not when it is due.
func TestASceneThatMemoryIsTooSmallForIsToldAhead(t *testing.T) {
	r := traintest.Small("sage")
	r.Epochs = 9
	r.Sharing = apart("period=8", "loader=strict", "swept=1")
	tr := traintest.Started(t, r, traintest.Communities(t, 900), isolation(train.Options{Threads: 1}))
	traintest.IsolatedOf(tr).Memory = 1
	if err := tr.Run.Epoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-traintest.IsolatedOf(tr).Next.Done
	if err := tr.Run.Epoch(t.Context()); err == nil || !strings.Contains(err.Error(), "will see after epoch 2: what the groups of this node see of other nodes' shards takes") {
		t.Error(err)
	}
}

// What users should know before it begins is said.
func TestWhatIsSaidOfGroups(t *testing.T) {
	shards := traintest.Communities(t, 900)
	said := func(nodes int, g []string, epochs int, shards []*graph.Shard) string {
		r := traintest.Small("sage")
		r.Epochs = epochs
		r.Sharing = apart(g...)
		m, notes := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)), make([]string, nodes)
		err := m.Each(func(node int) error {
			held, o := m.Of(node, shards, isolation(train.Options{Threads: 1}))
			o.Announce = func(f train.Forecast) { notes[node] = strings.Join(f.Notes, "\n") }
			_, err := train.Run(t.Context(), r, held, o)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return notes[nodes-1]
	}
	if got := said(2, []string{"period=1"}, 4, shards); strings.Contains(got, "grappa") || strings.Contains(got, "group") {
		t.Errorf("%q", got)
	}
	for _, g := range [][]string{{"loader=strict", "correction=node"}, {"hops=all", "correction=batch", "shrink=0.5"}, {"correction=released"}} {
		if strings.Contains(said(1, append(g, "period=1"), 4, shards), "changes nothing") {
			t.Errorf("%v is said to change nothing", g)
		}
	}
	for want, got := range map[string]string{
		"grappa has 1 group, and nodes run whole ones: nodes n1, n2 train nothing": said(3, []string{"groups=1"}, 1, shards),
		"only help to compare epochs: choose {grappa.groups}=5 or more":            said(3, []string{"groups=3"}, 1, shards),
		"grappa.correction=node changes nothing":                                   said(1, []string{"period=1", "correction=node"}, 4, shards),
		"grappa.correction=batch changes nothing":                                  said(1, []string{"period=1", "correction=batch"}, 4, shards),
		"never meet: take more {epochs}, or a smaller {grappa.period}":             said(1, []string{"swept=1"}, 1, shards),
		"if that never comes, they see of other groups what they see now":          said(1, []string{"switch=plateau"}, 1, shards),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q, and not %q", got, want)
		}
	}
	traintest.Remarked(shards, func(v int, _ *int32, mark *graph.Mark) {
		if v >= int(shards[4].First) {
			*mark = graph.Test
		}
	})
	if got := said(3, []string{"groups=5"}, 2, shards); !strings.Contains(got, "group 4 has no training vertices") {
		t.Errorf("%q", got)
	}
	r := traintest.Small("sage")
	r.Sharing = apart("groups=6")
	errs := traintest.Ends(t, traintest.NewMesh(2, traintest.Uneven(len(shards), 2)), shards, func(_ int, to *recipe.Recipe, _ []*graph.Shard, o *train.Options) { *to, *o = r, isolation(*o) })
	for _, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "grappa.groups=6: each needs a shard of its own, and the dataset has 5") {
			t.Error(err)
		}
	}
}

// A super-epoch ends by what was judged: not by epochs that nobody looked at, and by one
// that was no better only when so many have brought nothing.
func TestOnlyWhatWasJudgedEndsASuperEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		period int
		better map[int]bool // the epochs that were judged
		want   []int        // those that end super-epochs
	}{
		"seldom judged":      {2, map[int]bool{8: true, 16: false, 24: true, 32: false}, []int{16, 32}},
		"always":             {2, map[int]bool{1: true, 2: false, 3: true, 4: false, 5: false, 6: false, 7: false, 8: true, 9: false, 10: false}, []int{5, 7, 10}},
		"the last was short": {5, map[int]bool{4: true, 8: false, 12: false}, []int{12}},
		"never":              {1, nil, nil},
	} {
		job := apart("switch=plateau", fmt.Sprint("period=", c.period))
		g := grappa.Of(&job)
		var s trained.State
		var got []int
		for epoch := 1; epoch <= 32; epoch++ {
			s.Last = trained.Epoch{}
			s.Last.Epoch = epoch
			if better, judged := c.better[epoch]; judged {
				s.Last.Eval = (&evaluate.Result{}).Record(recipe.Accuracy)
				if better {
					best := s.Last
					s.Best = &best
				}
			}
			super := s.Super
			if grappa.Plateau(&s, &g); s.Super > super {
				got = append(got, epoch)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: super-epochs end with epochs %v, and should with %v", name, got, c.want)
		}
	}
}

// What validation has to say can't end super-epochs without validation vertices, nor at
// different times for models that share batches.
func TestWhatPlateausNeed(t *testing.T) {
	shards := traintest.Communities(t, 900)
	r := traintest.Small("sage")
	r.Sharing = apart("switch=plateau")
	if err := traintest.Swept(r, "lr=0.1", "lr=0.2").Check(dataset.Describe(shards), strategies.All); err == nil || !strings.Contains(err.Error(), "{sweep}: with {grappa.switch}=plateau") {
		t.Error(err)
	}
	traintest.Remarked(shards, func(_ int, _ *int32, mark *graph.Mark) {
		if *mark == graph.Validation {
			*mark = graph.Test
		}
	})
	if err := r.Check(dataset.Describe(shards), strategies.All); err == nil || !strings.Contains(err.Error(), "needs validation vertices") {
		t.Error(err)
	}
}
