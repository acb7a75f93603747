package auto_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/auto"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// strategiesOf lists by what each epoch was trained.
func strategiesOf(epochs []trained.Epoch) (all []string) {
	for _, e := range epochs {
		all = append(all, e.Strategy)
	}
	return all
}

// toOne is a strategy by which one node computes everything.
func toOne(name string, node int) train.Descriptor {
	return train.Descriptor{
		Declaration: strategy.Declaration{Name: name, Exact: true},
		Deal: func(l peer.Layout, _ strategy.Settings) (deal.Dealer, error) {
			return &oneDealer{deal.NewAlone(&l, false), node}, nil
		},
		New: batched.Plain,
	}
}

type oneDealer struct {
	*deal.Alone

	node int
}

func (d *oneDealer) Deal(to []deal.Group, batch []uint32, node int) []deal.Group {
	if node != d.node {
		return to[:0]
	}
	return d.Alone.Deal(to, batch, node)
}

// The fastest strategy is kept until epochs take longer by it. All of that is in the schedule, and
// whoever repeats the run follows it before anything is measured, whatever would be chosen now.
func TestAChoiceIsInTheSchedule(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := automatic()
	r.Epochs, r.EvalEvery, r.Sharing = 24, 24, strategy.Settings{Strategy: strategy.Auto}
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	all := train.Strategies{auto.Strategy, batched.Single, toOne("left", 0), toOne("right", 1)}
	var measured atomic.Int64
	// run has rows take their time to one node until an epoch, and to the other one from then on.
	run := func(b *traintest.Board, slow func(epoch uint32) int) (epochs []trained.Epoch) {
		measured.Store(0)
		synctest.Test(t, func(t *testing.T) {
			m := traintest.NewMesh(2, []int{0, 0, 0, 1, 1, 1}[:len(shards)])
			m.Net.Trouble = func(ctx context.Context, from, _ int, q peer.Query) error {
				switch {
				case q.Kind == peer.Control && q.Limit == 1<<20:
					measured.Add(1)
				case q.Service == peer.Rows && from == slow(q.Epoch):
					<-time.After(time.Second)
				case q.Service == peer.Rows:
					<-time.After(10 * time.Millisecond)
				}
				return nil
			}
			_, reports := m.MustRun(t, r, shards, train.Options{Threads: 1, Schedule: b, Strategies: all})
			if err := alike(reports, one); err != nil {
				t.Error(err)
			}
			epochs = reports[0]
		})
		return epochs
	}
	b := new(traintest.Board)
	const turns = 8
	epochs := run(b, func(epoch uint32) int {
		if epoch < turns {
			return 1
		}
		return 0
	})
	var by []string
	for _, e := range b.Entries {
		by = append(by, e.Strategy)
	}
	if want := []string{"auto", "left", "auto", "right"}; !slices.Equal(by, want) {
		t.Fatalf("the schedule has %v", by)
	}
	from := b.Proposed()
	if from[0] != 1 || from[1] > 4 || from[2] <= turns || from[2] > turns+5 || measured.Load() == 0 {
		t.Errorf("the nodes propose entries from %v on", from)
	}
	for i, e := range epochs {
		want, known := b.At(i+1, r.Rate)
		if !known || e.Why != want.Why || want.Strategy != "auto" && e.Strategy != want.Strategy {
			t.Errorf("epoch %d is trained by %s (%s), and the schedule has %+v", i+1, e.Strategy, e.Why, want)
		}
	}
	if why := b.Entries[2].Why; !strings.HasPrefix(why, "left and right are tried for 8 steps each again, since epochs take ") {
		t.Error(why)
	}
	if why := b.Entries[3].Why; !strings.HasPrefix(why, "right: a step took 10 ms where it was tried, and left took 1.0 s") {
		t.Error(why)
	}

	again := &traintest.Board{Entries: slices.Clone(b.Entries)}
	repeated := run(again, func(uint32) int { return 1 })
	if len(again.Proposed()) > 0 || measured.Load() > 0 {
		t.Errorf("again the nodes propose entries from %v on, and measure the network by %d questions", again.Proposed(), measured.Load())
	}
	if traintest.Learnt(repeated) != traintest.Learnt(epochs) || !slices.Equal(strategiesOf(repeated), strategiesOf(epochs)) {
		t.Errorf("again the nodes train by %v, not %v, and learn\n%s\nand not\n%s", strategiesOf(repeated), strategiesOf(epochs), traintest.Learnt(repeated), traintest.Learnt(epochs))
	}

	// What was tried before is not tried again where nothing changes.
	calm := &traintest.Board{Entries: slices.Clone(b.Entries[:2])}
	if run(calm, func(uint32) int { return 1 }); len(calm.Proposed()) > 0 {
		t.Errorf("the nodes propose entries from %v on", calm.Proposed())
	}
}

// Rows that stay come in the first epoch, to whoever has the first turn. So nothing is tried before they
// have come. That holds for a run that was interrupted until then, too.
func TestNothingIsTriedWhileRowsCome(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := automatic()
	r.Sharing = strategy.Settings{Strategy: strategy.Auto}
	r.Epochs, r.EvalEvery = 80, 80
	owners := lopsided(len(shards), 3)
	for _, again := range []uint32{0, 1, 2} { // the epoch in which it is interrupted
		synctest.Test(t, func(t *testing.T) {
			b, interrupted := new(traintest.Board), again
			folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
			dir := func(node int) string { return folders[node] }
			ctx, cancel := context.WithCancelCause(t.Context())
			lost := errors.New("a node is lost")
			run := func() ([][]trained.Epoch, error) {
				m := traintest.NewMesh(3, owners)
				slowRows(m, time.Millisecond)
				slow := m.Net.Trouble
				m.Net.Trouble = func(ctx context.Context, from, to int, q peer.Query) error {
					if q.Service == peer.Offers && q.Epoch == interrupted && q.Step == 5 {
						cancel(lost)
					}
					return slow(ctx, from, to, q)
				}
				_, reports, err := m.Run(ctx, r, shards, train.Options{Threads: 1, Schedule: b, Resume: len(b.Entries) > 0}, dir)
				return reports, err
			}
			reports, err := run()
			if interrupted > 0 {
				if !errors.Is(err, lost) {
					t.Fatal(err)
				}
				interrupted, ctx = 0, t.Context()
				reports, err = run()
			}
			if err != nil {
				t.Fatal(err)
			}
			from, last := b.Proposed(), reports[0][len(reports[0])-1]
			if b.Entries[0].Strategy != "centric" || b.Entries[1].Strategy != "auto" || from[1] < 2 || from[1] > 5 || last.Strategy != "centric" ||
				again == 0 && strings.Contains(b.Entries[1].Why, "for 8 steps") || // turns are longer where steps are short
				!strings.HasSuffix(b.Entries[1].Why, map[bool]string{true: " now that rows of other nodes have come", false: " since no trial has ended yet"}[again == 0]) {
				t.Errorf("the schedule has %+v, entries from %v on were proposed, and the last epoch is trained by %s", b.Entries, from, last.Strategy)
			}
		})
	}
}

// A run that is ended amid a trial has the rest of the turns when it goes on, so it comes to the
// same bits. One that is ended later tries nothing again.
func TestATrialGoesOn(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for _, c := range []struct {
		batch        int
		steps, epoch uint32
		at           []uint32
	}{
		{95, 10, 1, []uint32{3, 9}}, // turns of eight steps
		{120, 8, 2, []uint32{3}},    // each is an epoch
		{95, 10, 14, []uint32{3}},   // after the trial
	} {
		r := automatic()
		r.Batch, r.Epochs, r.EvalEvery = c.batch, 30, 30
		goesOn(t, shards, r, c.steps, c.epoch, c.at)
	}
}

// goesOn has a run end at some steps of an epoch and go on, and compares it with one that does not.
func goesOn(t *testing.T, shards []*graph.Shard, r recipe.Recipe, steps, epoch uint32, at []uint32) {
	owners := lopsided(len(shards), 3)
	b := new(traintest.Board)
	var want []trained.Epoch
	synctest.Test(t, func(t *testing.T) {
		m := traintest.NewMesh(3, owners)
		slowRows(m, time.Millisecond)
		_, reports := m.MustRun(t, r, shards, train.Options{Threads: 1, Schedule: b})
		want = reports[0]
	})
	if want[0].Steps != int(steps) || len(b.Entries) != 2 || (b.Entries[1].From > int(epoch)+1) != (epoch < 3) || b.Entries[1].Strategy != "leap" {
		t.Fatalf("an epoch has %d steps, and the schedule has %+v", want[0].Steps, b.Entries)
	}
	for _, step := range at {
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		dir := func(node int) string { return folders[node] }
		again := &traintest.Board{Entries: slices.Clone(b.Entries)}
		ctx, cancel := context.WithCancelCause(t.Context())
		lost := errors.New("a node is lost")
		m := traintest.NewMesh(3, owners)
		m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
			if q.Service == peer.Offers && q.Epoch == epoch && q.Step == step {
				cancel(lost)
			}
			return nil
		}
		if _, _, err := m.Run(ctx, r, shards, train.Options{Threads: 1, Schedule: again}, dir); !errors.Is(err, lost) {
			t.Fatal(err)
		}
		var got []trained.Epoch
		synctest.Test(t, func(t *testing.T) {
			m := traintest.NewMesh(3, owners)
			slowRows(m, time.Millisecond)
			_, reports, err := m.Run(t.Context(), r, shards, train.Options{Threads: 1, Schedule: again, Resume: true}, dir)
			if err != nil {
				t.Fatal(err)
			}
			got = reports[0]
		})
		last := len(want) - 1
		if len(again.Proposed()) > 0 || got[len(got)-1].Hash != want[last].Hash || got[len(got)-1].Strategy != want[last].Strategy {
			t.Errorf("stopped at step %d of epoch %d: the nodes train by %v, propose entries from %v on and come to %s, not %s", step, epoch, strategiesOf(got), again.Proposed(), got[len(got)-1].Hash, want[last].Hash)
		}
	}
}

// A run that goes on amid a trial and so has not seen all turns chooses none: the strategies are tried
// again.
func TestHalfATrialDecidesNothing(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := automatic()
	r.Batch, r.Epochs, r.EvalEvery = 240, 40, 40
	owners := lopsided(len(shards), 3)
	for _, last := range []uint32{3, 4} { // the trial ends with epoch 4
		halfATrial(t, shards, r, owners, last)
	}
}

// halfATrial has a run end in an epoch of a trial and go on.
func halfATrial(t *testing.T, shards []*graph.Shard, r recipe.Recipe, owners []int, last uint32) {
	b := new(traintest.Board)
	synctest.Test(t, func(t *testing.T) {
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		dir := func(node int) string { return folders[node] }
		ctx, cancel := context.WithCancelCause(t.Context())
		lost := errors.New("a node is lost")
		m := traintest.NewMesh(3, owners)
		m.Net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
			if q.Service == peer.Offers && q.Epoch == last && q.Step == 1 { // amid the second turn
				cancel(lost)
			}
			return nil
		}
		if _, _, err := m.Run(ctx, r, shards, train.Options{Threads: 1, Schedule: b}, dir); !errors.Is(err, lost) {
			t.Fatal(err)
		}
		m = traintest.NewMesh(3, owners)
		slowRows(m, time.Millisecond)
		_, reports, err := m.Run(t.Context(), r, shards, train.Options{Threads: 1, Schedule: b, Resume: true}, dir)
		if err != nil {
			t.Fatal(err)
		}
		if steps := reports[0][0].Steps; steps != 4 {
			t.Fatalf("an epoch has %d steps", steps)
		}
		var by []string
		for _, e := range b.Entries {
			by = append(by, e.Strategy)
		}
		if want := []string{"auto", "auto", "leap"}; !slices.Equal(by, want) || !strings.HasSuffix(b.Entries[1].Why, " since no trial has ended yet") {
			t.Errorf("ended in epoch %d: the schedule has %+v", last, b.Entries)
		}
	})
}
