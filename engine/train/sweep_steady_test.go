package train_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Steps of a sweep allocate no more than those of one model.
func TestStepsOfASweepAllocateNothing(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": traintest.Communities(t, 3000), "sparse": traintest.CoraShards(t)} {
		r := traintest.Small("sage")
		r.Batch = 60
		tr := traintest.Started(t, traintest.Swept(r, "lr=0.01", "hidden=30", "hidden=5 optimizer=sgd"), shards, train.Options{Threads: 2}).Run
		s, step := tr.Batches.Slots[0], 0
		one := func() {
			tr.Batches.Set(s, step%tr.Batches.Steps)
			if err := tr.Method.Prepare(t.Context(), tr.Batches.Workers[0], s, 1); err != nil {
				t.Fatal(err)
			}
			tr.Take(1, step) // all have done those before
			if err := tr.StepAll(t.Context(), s, nil); err != nil || len(tr.Turn) != 3 {
				t.Fatal(len(tr.Turn), err)
			}
			tr.Progress(false)
			step++
		}
		for range 2 * tr.Batches.Steps {
			one()
		}
		if n := testing.AllocsPerRun(20, one); n > 0 {
			t.Errorf("%s: a step allocates %g times", name, n)
		}
	}
}

// What a sweep will take is forecast, with the weights of all models and the largest of
// their passes.
func TestMemoryOfASweepIsForecast(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	r := traintest.Small("gcn")
	r.Fanouts, r.Batch = nil, 0
	var forecast train.Forecast
	for _, sweep := range []recipe.Recipe{traintest.Swept(r, "hidden=4", "hidden=300", "hidden=200"), traintest.Swept(r, "hidden=500", "hidden=4")} {
		tr := traintest.Started(t, sweep, shards, train.Options{Threads: 2, Announce: func(f train.Forecast) { forecast = f }}).Run
		reserved := tr.Work.Bytes()
		if err := tr.Steps(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := tr.Work.Bytes(); got > reserved {
			t.Errorf("passes take %d bytes, and %d were set aside", got, reserved)
		}
		if err := tr.Epoch(t.Context()); err != nil {
			t.Fatal(err)
		}
		arenas := []tensor.Arena{tr.Kept, tr.Work}
		for _, s := range tr.Batches.Slots {
			arenas = append(arenas, s.Rows)
		}
		held, weights := tr.Infer.Held(), 0
		for _, a := range arenas {
			if a != nil {
				held += uint64(a.Bytes())
			}
		}
		if most := forecast.Arenas - budget.Program + uint64(len(arenas)+4)<<21; held > most {
			t.Errorf("arenas hold %s, and %s were announced", budget.Format(held), budget.Format(most))
		}
		for _, l := range tr.Learners {
			weights += l.Model.Size()
		}
		if forecast.Weights != weights {
			t.Errorf("%d weights are announced of %d", forecast.Weights, weights)
		}
	}
}

// Models whose first stages differ read the same vertices in evaluation: those with a
// linear map before their layers, too. Memory that is too small changes no bit.
func TestModelsOfASweepAreEvaluatedAsAlone(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": traintest.Communities(t, 3000), "sparse": traintest.CoraShards(t)} {
		r := traintest.Short("gcn")
		r.Batch, r.Fanouts = 0, nil
		r = traintest.Swept(r, "hidden=12", "hidden=9", "hidden=40")
		of := &r.Sweep[1].Recipe
		of.Model = nn.Defaults("gcnii")
		of.Model.Layers, of.Model.Hidden = 2, 9
		var want []string
		for _, alone := range r.Models() {
			_, all := traintest.MustRun(t, alone, shards, train.Options{Threads: 2})
			want = append(want, traintest.Learnt(all))
		}
		const first = 2 // enough for the first model, and not for the last
		for _, memory := range []uint64{1 << 40, first, 1} {
			tr := traintest.Started(t, r, shards, train.Options{Threads: 2, Dir: t.TempDir()}).Run
			tr.Infer.Limit(memory)
			if memory == first {
				tr.Infer.Limit(tr.Infer.Takes(1<<40) - 1)
			}
			if err := tr.Epoch(t.Context()); err != nil {
				t.Fatal(err)
			}
			for k, l := range tr.Learners {
				if got := traintest.Learnt(l.History); got != want[k] {
					t.Errorf("%s, with %d bytes, model %d:\n%s\nand alone\n%s", name, memory, k, got, want[k])
				}
			}
			if (tr.Infer.Held() > 0) != (memory > first) {
				t.Errorf("%s, with %d bytes: it is not evaluated as it may be", name, memory)
			}
		}
		r = everywhere(r, func(of *recipe.Recipe) { of.Sharing = traintest.Ways()["leap"]; of.Sharing.Deterministic = true })
		for _, memory := range []uint64{1 << 40, 1 << 20, 1} {
			all := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Start(t, r, shards, train.Options{Threads: 1, Dir: t.TempDir()})
			m := &traintest.Mesh{Names: []string{"n0", "n1", "n2"}}
			err := m.Each(func(node int) error {
				all[node].Run.Infer.Limit(memory)
				return all[node].Run.Epoch(t.Context())
			})
			if err != nil {
				t.Fatal(err)
			}
			for k, alone := range r.Models() {
				alone.Sharing.Strategy = ""
				_, want := traintest.MustRun(t, alone, shards, train.Options{Threads: 2})
				for node, l := range all {
					if got := traintest.Learnt(l.Run.Learners[k].History); got != traintest.Learnt(want) {
						t.Errorf("%s, with %d bytes on node %d, model %d:\n%s\nand alone\n%s", name, memory, node, k, got, traintest.Learnt(want))
					}
				}
			}
		}
	}
}

// All that a sweep took is told once: its models' times and bytes add up to the whole's.
func TestEachModelTellsWhatItTook(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("sage")
	r.Epochs, r.Sharing = 2, traintest.Ways()["migrate"]
	r = traintest.Swept(r, "lr=0.01", "hidden=24", "lr=0.03")
	_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, everywhere(r, func(of *recipe.Recipe) { of.Sharing = traintest.Ways()["migrate"] }), shards, train.Options{Threads: 1})
	for _, e := range reports[0] {
		p := e.Phases
		if p.Compute <= 0 || p.Reduce <= 0 || p.Compute+p.Reduce+p.Wait > e.Seconds+1e-9 || e.Slots != 2 || e.Strategy == "" {
			t.Errorf("told is %+v", e)
		}
		// Once a node keeps what it reads, no row need come.
		if shared := e.Rows.Local > 0 && e.Edges > 0 && e.Rows.Remote+e.Rows.Kept > 0 && p.Sample > 0; shared != (e.Model == 0) {
			t.Errorf("model %d tells of %+v", e.Model, e)
		}
		sent := e.Sent.Requests
		mayCome := e.Model == 0 && e.Epoch > 1
		if sent[peer.Gradient] == 0 || sent[peer.Model] != uint64(3*e.Steps) || !mayCome && (sent[peer.Feature] > 0) != (e.Model == 0) {
			t.Errorf("model %d sent %+v", e.Model, e.Sent)
		}
	}
}
