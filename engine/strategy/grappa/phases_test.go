package grappa_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Phases change when groups are computed, and not what is learned, nor what is counted.
func TestPhasesDoNotChangeWeights(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for name, c := range map[string]struct {
		g             []string
		full, promise bool
		sweep         []string
	}{
		"halo":     {g: []string{"period=1", "swept=1"}},
		"strict":   {g: []string{"period=2", "swept=1", "loader=strict", "correction=self-normalised"}, promise: true},
		"full":     {g: []string{"period=1", "swept=1"}, full: true, promise: true},
		"one view": {g: []string{"sweep=off"}, full: true},
		"a sweep":  {g: []string{"period=1", "swept=1"}, sweep: []string{"lr=0.1", "lr=0.2"}},
	} {
		for _, nodes := range []int{1, 3} {
			var want string
			var edges, rows uint64
			for _, phases := range []int{1, 2, 4, 0} {
				r := traintest.Small("sage")
				r.Epochs, r.Batch = 3, 150
				if c.full {
					r.Batch, r.Fanouts = 0, nil
				}
				r.Sharing = apart(append(slices.Clone(c.g), "groups=5", fmt.Sprint("phases=", max(1, phases)))...)
				if phases == 0 {
					r.Sharing = apart(append(slices.Clone(c.g), "groups=5")...)
				}
				r.Sharing.Deterministic = c.promise
				if c.sweep != nil {
					r = traintest.Swept(r, c.sweep...)
				}
				_, reports := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, isolation(train.Options{Threads: 1}))
				got := traintest.Learnt(reports[0])
				if want == "" {
					want, edges, rows = got, reports[0][2].Edges, reports[0][2].Rows.Local
				}
				if got != want {
					t.Errorf("%s, %d nodes, %d phases:\n%s\nand one phase\n%s", name, nodes, phases, got, want)
				}
				if e := reports[0][2]; e.Edges != edges || e.Rows.Local != rows || edges == 0 {
					t.Errorf("%s, %d nodes, %d phases: %d edges and %d rows, in one phase %d and %d", name, nodes, phases, e.Edges, e.Rows.Local, edges, rows)
				}
			}
		}
	}
}

// A job in phases that is interrupted again and again, and goes on with more or fewer nodes,
// each with phases of its own, learns what it would have learned alone.
func TestPhasesGoOnOnOtherNodes(t *testing.T) {
	shards := traintest.Communities(t, 600)
	random := rand.New(rand.NewPCG(7, 4))
	r := traintest.Small("sage")
	r.Epochs = 4
	r.Sharing = apart("period=1", "swept=1", "groups=5")
	r.Sharing.Deterministic = true
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	reports := map[int]trained.Epoch{}
	runs, done := 0, false
	for ; !done; runs++ {
		if runs == 60 {
			t.Fatal("it gets nowhere")
		}
		nodes := []int{2, 4, 3}[runs%3]
		r.Sharing = apart("period=1", "swept=1", "groups=5", fmt.Sprint("phases=", 1+runs%3))
		r.Sharing.Deterministic = true
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
	}
	if traintest.Learnt(all) != traintest.Learnt(one) || runs < 2 {
		t.Errorf("after %d runs:\n%s\nand left alone\n%s", runs, traintest.Learnt(all), traintest.Learnt(one))
	}
}

// A step in phases that diverges says where, as others do.
func TestPhasesThatDiverge(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for _, nodes := range []int{1, 3} {
		where := map[string]bool{}
		for _, phases := range []int{1, 3} {
			r := traintest.Small("sage")
			r.Epochs, r.Rate = 3, 1e30
			r.Sharing = apart("period=1", "swept=1", "groups=5", fmt.Sprint("phases=", phases))
			r.Sharing.Deterministic = true
			_, _, err := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).Run(t.Context(), r, shards, isolation(train.Options{Threads: 1}), func(int) string { return "" })
			d, is := errors.AsType[*trained.Diverged](err)
			if !is {
				t.Fatalf("%d nodes, %d phases: %v", nodes, phases, err)
			}
			where[fmt.Sprint(d.Epoch, d.Step)] = true
		}
		if len(where) != 1 {
			t.Errorf("%d nodes: it diverges at %v", nodes, where)
		}
	}
}

// Where a step does not fit in memory, a node takes phases by itself, and says so.
func TestPhasesAreAsManyAsMemoryAsks(t *testing.T) {
	shards := widened(traintest.Communities(t, 6000), 256)
	r := traintest.Small("sage")
	r.Epochs, r.Batch, r.Fanouts = 2, 0, nil
	r.Sharing = apart("sweep=off", "groups=5")
	tr := traintest.Started(t, r, shards, isolation(train.Options{Threads: 1}))
	need, err := tr.Run.Forecast(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slots := need.Of(budget.Slots)
	hash := ""
	for _, memory := range []uint64{0, need.OnHost() - slots/20} {
		notes := ""
		o := isolation(train.Options{Threads: 1, Memory: memory, Announce: func(f train.Forecast) { notes = strings.Join(f.Notes, "\n") }})
		_, reports, err := traintest.NewMesh(1, traintest.Uneven(len(shards), 1)).Run(t.Context(), r, shards, o, func(int) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(notes, "so it computes its 5 groups in "); said != (memory > 0) {
			t.Errorf("%d bytes of %d: %q", memory, need.OnHost(), notes)
		}
		if got := traintest.Hashes(reports[0]); hash == "" {
			hash = got
		} else if got != hash {
			t.Errorf("phases learn\n%s\nand without\n%s", got, hash)
		}
	}
	r.Sharing = apart("sweep=off", "groups=5", "phases=5")
	tr = traintest.Started(t, r, shards, isolation(train.Options{Threads: 1}))
	phased, err := tr.Run.Forecast(t.Context())
	if err != nil || phased.Of(budget.Slots) > slots*9/10 {
		t.Errorf("five phases need %d bytes of slots, and one %d: %v", phased.Of(budget.Slots), slots, err)
	}
}

// A job is not refused in memory in which some number of phases fits, with nothing ahead but
// the next phase.
func TestPhasesGoAsFarAsTheyMust(t *testing.T) {
	shards := widened(traintest.Communities(t, 6000), 256)
	r := traintest.Small("sage")
	r.Epochs, r.Batch, r.Fanouts = 1, 100, []int{10, 10}
	o := isolation(train.Options{Threads: 2})
	needs := func(phases int) (base, each uint64) { // of a phase that is prepared
		r.Sharing = apart("sweep=off", "groups=4", fmt.Sprint("phases=", phases))
		tr := traintest.Started(t, r, shards, o)
		need, err := tr.Run.Forecast(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held := tr.Run.Batches.Depth
		if held < 2 {
			t.Fatalf("%d batches are prepared ahead", held)
		}
		if phases > 1 {
			held++ // the next phase
		}
		return need.OnHost() - need.Of(budget.Slots), need.Of(budget.Slots) / uint64(held)
	}
	_, whole := needs(1)
	base, each := needs(4)
	r.Sharing = apart("sweep=off", "groups=4")
	said := 0
	o.Announce = func(f train.Forecast) {
		if strings.Contains(strings.Join(f.Notes, " "), "so it computes its 4 groups in ") {
			said++
		}
	}
	const steps = 8
	for i := range uint64(steps) {
		o.Memory = base + 2*each + (whole-2*each)*i/steps + 64<<10
		if _, _, err := traintest.NewMesh(1, traintest.Uneven(len(shards), 1)).Run(t.Context(), r, shards, o, func(int) string { return "" }); err != nil {
			t.Errorf("%d of %d bytes: %v", o.Memory, base+whole, err)
		}
	}
	if whole < 2*each || said == 0 {
		t.Errorf("phases take %d bytes of %d, and %d jobs have some", each, whole, said)
	}
}
