package train

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Steps of a sweep allocate no more than those of one model.
func TestStepsOfASweepAllocateNothing(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": communities(t, 3000), "sparse": coraShards(t)} {
		r := small("sage")
		r.Batch = 60
		tr := started(t, swept(r, "lr=0.01", "hidden=30", "hidden=5 optimizer=sgd"), shards, Options{Threads: 2}).trainer
		s, step := tr.batches.slots[0], 0
		one := func() {
			tr.batches.set(s, step%tr.batches.steps)
			if err := tr.batches.hands[0].fill(t.Context(), s, &tr.phases, 1); err != nil {
				t.Fatal(err)
			}
			tr.take(1, step) // all have done those before
			if err := tr.stepAll(t.Context(), s); err != nil || len(tr.turn) != 3 {
				t.Fatal(len(tr.turn), err)
			}
			tr.tell(false)
			step++
		}
		for range 2 * tr.batches.steps {
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
	shards := communities(t, 3000)
	r := small("gcn")
	r.Fanouts, r.Batch = nil, 0
	var forecast Forecast
	for _, sweep := range []Recipe{swept(r, "hidden=4", "hidden=300", "hidden=200"), swept(r, "hidden=500", "hidden=4")} {
		tr := started(t, sweep, shards, Options{Threads: 2, Announce: func(f Forecast) { forecast = f }}).trainer
		reserved := tr.work.Bytes()
		if err := tr.steps(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := tr.work.Bytes(); got > reserved {
			t.Errorf("passes take %d bytes, and %d were set aside", got, reserved)
		}
		if err := tr.epoch(t.Context()); err != nil {
			t.Fatal(err)
		}
		arenas := append([]tensor.Arena{tr.kept, tr.work, tr.infer.whole.rows}, tr.infer.whole.lanes[1:]...)
		for _, s := range tr.batches.slots {
			arenas = append(arenas, s.rows)
		}
		held, weights := uint64(0), 0
		for _, a := range arenas {
			if a != nil {
				held += uint64(a.Bytes())
			}
		}
		if most := forecast.Arenas - atHome + uint64(len(arenas))<<21; held > most {
			t.Errorf("arenas hold %s, and %s were announced", gib(held), gib(most))
		}
		for _, l := range tr.learners {
			weights += l.model.Size()
		}
		if forecast.Weights != weights {
			t.Errorf("%d weights are announced of %d", forecast.Weights, weights)
		}
	}
}

// Models whose first stages differ read the same vertices in evaluation: those with a
// linear map before their layers, too. Memory that is too small changes no bit.
func TestModelsOfASweepAreEvaluatedAsAlone(t *testing.T) {
	for name, shards := range map[string][]*graph.Shard{"dense": communities(t, 3*grain), "sparse": coraShards(t)} {
		r := short("gcn")
		r.Batch, r.Fanouts = 0, nil
		r = swept(r, "hidden=12", "hidden=9", "hidden=40")
		of := &r.Sweep[1].Recipe
		of.Model = nn.Defaults("gcnii")
		of.Model.Layers, of.Model.Hidden = 2, 9
		var want []string
		for _, alone := range r.Models() {
			_, all := mustRun(t, alone, shards, Options{Threads: 2})
			want = append(want, learnt(all))
		}
		const first = 2 // enough for the first model, and not for the last
		for _, memory := range []uint64{1 << 40, first, 1} {
			tr := started(t, r, shards, Options{Threads: 2, Dir: t.TempDir()}).trainer
			tr.infer.memory = memory
			if tr.infer.view = tr.learners[0].view; memory == first {
				tr.infer.memory = tr.infer.wholeBytes(len(tr.infer.stages))
			}
			if err := tr.epoch(t.Context()); err != nil {
				t.Fatal(err)
			}
			for k, l := range tr.learners {
				if got := learnt(l.history); got != want[k] {
					t.Errorf("%s, with %d bytes, model %d:\n%s\nand alone\n%s", name, memory, k, got, want[k])
				}
			}
			if tr.infer.whole.ready != (memory > first) {
				t.Errorf("%s, with %d bytes: it is not evaluated as it may be", name, memory)
			}
		}
		r = everywhere(r, func(of *Recipe) { of.Sharing = ways()["leap"]; of.Sharing.Deterministic = true })
		for _, memory := range []uint64{1 << 40, 1 << 20, 1} {
			all := newMesh(3, uneven(len(shards), 3)).start(t, r, shards, Options{Threads: 1, Dir: t.TempDir()})
			m := &mesh{names: []string{"n0", "n1", "n2"}}
			err := m.each(func(node int) error {
				all[node].infer.memory = memory
				return all[node].epoch(t.Context())
			})
			if err != nil {
				t.Fatal(err)
			}
			for k, alone := range r.Models() {
				alone.Sharing.Strategy = ""
				_, want := mustRun(t, alone, shards, Options{Threads: 2})
				for node, l := range all {
					if got := learnt(l.learners[k].history); got != learnt(want) {
						t.Errorf("%s, with %d bytes on node %d, model %d:\n%s\nand alone\n%s", name, memory, node, k, got, learnt(want))
					}
				}
			}
		}
	}
}

// All that a sweep took is told once: its models' times and bytes add up to the whole's.
func TestEachModelTellsWhatItTook(t *testing.T) {
	shards := communities(t, 1500)
	r := small("sage")
	r.Epochs, r.Sharing = 2, ways()["migrate"]
	r = swept(r, "lr=0.01", "hidden=24", "lr=0.03")
	_, told := newMesh(3, uneven(len(shards), 3)).mustRun(t, everywhere(r, func(of *Recipe) { of.Sharing = ways()["migrate"] }), shards, Options{Threads: 1})
	for _, e := range told[0] {
		p := e.Phases
		if p.Compute <= 0 || p.Reduce <= 0 || p.Compute+p.Reduce+p.Wait > e.Seconds+1e-9 || e.Slots != 2 || e.Strategy == "" {
			t.Errorf("told is %+v", e)
		}
		if shared := e.Rows > 0 && e.Edges > 0 && e.Remote > 0 && p.Sample > 0; shared != (e.Model == 0) {
			t.Errorf("model %d tells of %+v", e.Model, e)
		}
		sent := e.Sent.Requests
		if sent[strategy.Gradient] == 0 || sent[strategy.Model] != uint64(3*e.Steps) || (sent[strategy.Feature] > 0) != (e.Model == 0) {
			t.Errorf("model %d sent %+v", e.Model, e.Sent)
		}
	}
}
