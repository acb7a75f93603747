package train_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/schedule"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// slotted is the schedule of a job that leap trains: how many slots a step has, for good, from
// each of some epochs on.
func slotted(r *recipe.Recipe, slots map[int]int) *traintest.Board {
	b := new(traintest.Board)
	for from := range r.Epochs + 1 {
		if n, changes := slots[from]; changes {
			b.Entries = append(b.Entries, schedule.Entry{From: from, Strategy: "leap", Rate: r.Rate, Part: fmt.Appendf(nil, `{"slots":%d,"frozen":true}`, n)})
		}
	}
	return b
}

// touring is a recipe by which models travel, in fewer slots if that is faster.
func touring(epochs int) recipe.Recipe {
	r := traintest.Small("gcn")
	r.Epochs, r.Sharing = epochs, traintest.Ways()["tuned"]
	return r
}

func slotsOf(epochs []trained.Epoch) (all []int) {
	for _, e := range epochs {
		all = append(all, e.Slots)
	}
	return all
}

// A run deals as its schedule says, epoch by epoch, whatever its nodes would choose.
func TestRunsFollowTheirSchedule(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := touring(5)
	full := r
	full.Batch, full.Fanouts = 0, nil // a batch that is prepared once
	hashes := map[string]bool{}
	for _, r := range []recipe.Recipe{r, full} {
		for _, c := range []struct {
			slots map[int]int
			want  []int
		}{
			{map[int]int{1: 3}, []int{3, 3, 3, 3, 3}},
			{map[int]int{1: 3, 3: 1, 4: 2}, []int{3, 3, 1, 2, 2}},
		} {
			board := slotted(&r, c.slots)
			_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1, Schedule: board})
			if got := slotsOf(reports[0]); !slices.Equal(got, c.want) || len(board.Proposed()) > 0 {
				t.Errorf("batch %d, by the schedule %v: slots %v, proposed from %v", r.Batch, c.slots, got, board.Proposed())
			}
			hashes[reports[0][4].Hash] = true
		}
	}
	if len(hashes) != 4 {
		t.Error("slots make no difference here: nothing is shown")
	}
}

// Nodes that go on where others had taken over have no entry of theirs from then on. The plan adds
// none that says what holds already, and the run goes on all the same.
func TestWhatHeldBeforeOtherNodesHoldsAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shards := traintest.Communities(t, 1500)
	r := touring(4)
	board := slotted(&r, map[int]int{1: 3, 3: 2})
	board.Entries[1].Rate++
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	err := m.Each(func(node int) error {
		held, own := m.Of(node, shards, train.Options{Threads: 1, Schedule: board})
		_, err := train.Run(ctx, r, held, own)
		return err
	})
	if err != nil || len(board.Entries) != 1 || !slices.Equal(board.Proposed(), []int{3}) {
		t.Errorf("%v; entries %+v, proposed from %v", err, board.Entries, board.Proposed())
	}
}

// What a run decides is agreed on while the epoch before is trained, and begins then.
func TestTheScheduleChangesAheadOfItsEpochs(t *testing.T) {
	was := train.CommitTakes
	train.CommitTakes = 0
	defer func() { train.CommitTakes = was }()
	shards := traintest.Communities(t, 1500)
	r := touring(8)
	fifth := make(chan struct{})
	board := &traintest.Board{Hold: func(e schedule.Entry) {
		if e.From > 1 {
			<-fifth
		}
	}}
	var once sync.Once
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if q.Epoch == 5 {
			once.Do(func() { close(fifth) })
		}
		return nil
	}
	reports := reported(t, m, r, shards, train.Options{Threads: 1, Schedule: board}, nil)
	// The first epoch does not count, the next three are timed.
	if got, want := slotsOf(reports[0]), []int{3, 3, 3, 3, 3, 2, 2, 2}; !slices.Equal(got, want) || !slices.Equal(board.Proposed(), []int{1, 6}) {
		t.Errorf("slots %v, not %v; proposed from %v", got, want, board.Proposed())
	}
	if e := board.Entries[1]; e.Why != "as epochs until 4 took" || !strings.HasPrefix(string(e.Part), `{"slots":2,"best":`) {
		t.Errorf("%+v %s", e, e.Part)
	}
}

// reported is what all nodes report, of a run that may be interrupted after an epoch.
func reported(t *testing.T, m *traintest.Mesh, r recipe.Recipe, shards []*graph.Shard, o train.Options, folders []string) [][]trained.Epoch {
	t.Helper()
	reports := make([][]trained.Epoch, len(m.Names))
	err := m.Each(func(node int) error {
		held, own := m.Of(node, shards, o)
		if folders != nil {
			own.Dir, own.Resume = folders[node], true
		}
		own.Report = func(e trained.Epoch) {
			reports[node] = append(reports[node], e)
			if o.Report != nil {
				o.Report(e)
			}
		}
		_, err := train.Run(t.Context(), r, held, own)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

// A job that is interrupted goes on by the schedule to the same bits, with what was decided
// before that, also on a node that joins late and has nothing of the job.
func TestWhoGoesOnFollowsTheSchedule(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := touring(7)
	entries := map[int]int{1: 3, 6: 2}
	want := reported(t, traintest.NewMesh(3, traintest.Uneven(len(shards), 3)), r, shards, train.Options{Threads: 1, Dataset: "d", Schedule: slotted(&r, entries)}, nil)
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	board := slotted(&r, entries)
	ctx, stop := context.WithCancelCause(t.Context())
	err := m.Each(func(node int) error {
		held, o := m.Of(node, shards, train.Options{Threads: 1, Dataset: "d", Dir: folders[node], Resume: true, Interval: 1, Schedule: board})
		o.Report = func(e trained.Epoch) {
			if e.Epoch == 4 {
				stop(traintest.ErrEnough)
			}
		}
		_, err := train.Run(ctx, r, held, o)
		return err
	})
	if !errors.Is(err, traintest.ErrEnough) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folders[2]); err != nil {
		t.Fatal(err)
	}
	folders[2] = t.TempDir()
	got := reported(t, traintest.NewMesh(3, traintest.Uneven(len(shards), 3)), r, shards, train.Options{Threads: 1, Dataset: "d", Schedule: board}, folders)
	for node := range got {
		if n := len(got[node]); n == 0 || n == r.Epochs || slotsOf(got[node])[n-1] != 2 || traintest.Learnt(got[node]) != traintest.Learnt(want[node][r.Epochs-n:]) {
			t.Errorf("node %d goes on as\n%s and not as\n%s", node, traintest.Learnt(got[node]), traintest.Learnt(want[node]))
		}
	}
	if len(board.Proposed()) > 0 {
		t.Errorf("the schedule is changed from epochs %v on, and it was decided", board.Proposed())
	}
}

// A node that follows another schedule than the others, as one that joins late and ignores it,
// is found before an epoch is trained by two.
func TestWhoIgnoresTheScheduleIsFound(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := touring(3)
	right, wrong := slotted(&r, map[int]int{1: 3, 2: 2}), slotted(&r, map[int]int{1: 3})
	for name, boards := range map[string][3]*traintest.Board{
		"from the start": {right, right, slotted(&r, map[int]int{1: 2})},
		"a change":       {right, right, wrong},
		"the first one":  {wrong, right, right},
	} {
		last := 0
		errs := traintest.Ends(t, traintest.NewMesh(3, traintest.Uneven(len(shards), 3)), shards, func(node int, to *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
			*to, o.Schedule = r, boards[node]
			if node == 1 {
				o.Report = func(e trained.Epoch) { last = e.Epoch }
			}
		})
		for node, err := range errs {
			if _, agreed := errors.AsType[*session.Agreed](err); !agreed || !strings.Contains(err.Error(), "follow different schedules") {
				t.Errorf("%s: node %d ends with %v", name, node, err)
			}
		}
		if last > 1 {
			t.Errorf("%s: %d epochs were trained", name, last)
		}
	}
}

// What the schedule says is checked: it may be of another version.
func TestSchedulesThatCannotBeFollowed(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for name, c := range map[string]struct {
		strategy, part, want string
	}{
		"another strategy":  {"centric", "", "it is for {strategy} centric, and the job trains by leap"},
		"no part":           {"leap", "", "can't be read"},
		"more than a part":  {"leap", `{"slots":2}{}`, "can't be read"},
		"another's":         {"leap", `{"stages":2}`, "can't be read"},
		"too many slots":    {"leap", `{"slots":4}`, "in 4 slots on 3 nodes"},
		"models that stay":  {"leap", `{"slots":0}`, "has the models of leap stay"},
		"a time before now": {"leap", `{"slots":2,"best":-1}`, "in -1 s"},
	} {
		r := touring(1)
		board := &traintest.Board{Entries: []schedule.Entry{{From: 1, Strategy: c.strategy, Part: []byte(c.part), Rate: r.Rate}}}
		errs := traintest.Ends(t, traintest.NewMesh(3, traintest.Uneven(len(shards), 3)), shards, func(_ int, to *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
			*to, o.Schedule = r, board
		})
		for node, err := range errs {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: node %d ends with %v", name, node, err)
			}
		}
	}
}

// A strategy that deals as leap does has no part of its own.
func TestStrategiesWithoutAPart(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for part, want := range map[string]string{"": "", `{"slots":0}`: "more of p3 than there is to say"} {
		r := traintest.Short("sage")
		r.Sharing = strategy.Given("p3")
		b := &traintest.Board{Entries: []schedule.Entry{{From: 1, Strategy: "p3", Rate: r.Rate, Part: []byte(part)}}}
		_, _, err := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).Run(t.Context(), r, shards, train.Options{Threads: 1, Strategies: strategies.All, Schedule: b}, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with the part %q: %v", part, err)
		}
		own := new(traintest.Board)
		traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: strategies.All, Schedule: own})
		if len(own.Entries) != 1 || len(own.Entries[0].Part) > 0 {
			t.Errorf("p3 proposes %+v", own.Entries)
		}
	}
}

// A pipeline is arranged as the schedule says, and what its nodes choose is proposed.
func TestPipelinesFollowTheSchedule(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Batch, r.Fanouts, r.Epochs = 0, nil, 2
	run := func(s strategy.Settings, b *traintest.Board) string {
		r := r
		r.Sharing = s
		_, reports := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).MustRun(t, r, shards, train.Options{Threads: 1, Strategies: strategies.All, Schedule: b})
		return reports[0][1].Hash
	}
	hashes := map[string]string{}
	for _, given := range []string{"pipe.ways=1", "pipe.ways=2"} {
		b := new(traintest.Board)
		want := run(strategy.Given("pipe", given), b)
		if !slices.Equal(b.Proposed(), []int{1}) {
			t.Fatalf("%s: proposed from %v", given, b.Proposed())
		}
		b = &traintest.Board{Entries: b.Entries}
		if got := run(strategy.Given("pipe", "pipe.ways=auto"), b); got != want || len(b.Proposed()) > 0 {
			t.Errorf("by the schedule of %s a pipeline learns %s, not %s, and proposes entries from %v on", given, got, want, b.Proposed())
		}
		hashes[want] = given
	}
	if len(hashes) != 2 {
		t.Error("ways make no difference here: nothing is shown")
	}
}
