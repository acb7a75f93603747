//go:build long

package train_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Nodes are interrupted in the middle of steps, some models of which are done: whoever is
// furthest is followed. Models of local updates go back to their last average.
func TestAnInterruptedSweepGoesOnOnThreeNodes(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for way, sharing := range map[string]strategy.Settings{"migrate": traintest.Ways()["migrate"], "centric": traintest.Ways()["centric"], "local": traintest.Updating("off", 3)} {
		random := rand.New(rand.NewPCG(3, 4))
		r := everywhere(interrupted(), func(of *recipe.Recipe) { of.Sharing = sharing })
		_, alone := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
		want := byModel{}
		for _, e := range alone[0] {
			want.hear(e)
		}
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		reports := byModel{}
		runs, apart, done := 0, 0, false
		for ; !done; runs++ {
			if runs == 100 {
				t.Fatal("it gets nowhere")
			}
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			ctx := traintest.CancelAfter(t, m, 300+random.Int64N(900))
			if runs < 4 {
				ctx = cancelBefore(t, m, exchange.Tag{Epoch: uint32(1 + runs/2), Step: []uint32{5, 11}[runs%2], Index: 3})
			}
			_, epochs, err := m.Run(ctx, r, shards, train.Options{Threads: 1, Resume: true, Dataset: "d", Interval: time.Nanosecond}, func(node int) string {
				return folders[(node+runs)%3]
			})
			if err != nil && !errors.Is(err, traintest.ErrEnough) {
				t.Fatal(way, err)
			}
			for _, of := range epochs {
				for _, e := range of {
					reports.hear(e)
				}
			}
			done = err == nil
			for _, folder := range folders {
				c, err := trained.OpenCheckpoint(filepath.Join(folder, train.CheckpointFile))
				if err != nil {
					continue // none yet
				}
				if a, b := c.Models[1].State, c.Models[3].State; a.Step != b.Step {
					apart++
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := traintest.Learnt(reports.all()); runs < 5 || got != traintest.Learnt(want.all()) || apart < 4 {
			t.Errorf("%s: after %d runs, with %d checkpoints within steps,\n%s\nand undisturbed\n%s", way, runs, apart, got, traintest.Learnt(want.all()))
		}
	}
}

func TestModelsOfASweepOnThreeNodesAreThoseOfRunsOfTheirOwn(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for way, sharing := range sweepSharings() {
		for _, deterministic := range []bool{false, true} {
			if deterministic && sharing.Values["leap.sync_every"] != "" {
				continue // there is no such thing
			}
			r := traintest.Small("sage")
			r.Epochs, r.EvalEvery = 3, 2
			r.Sharing = sharing
			r.Sharing.Deterministic = deterministic
			if way == "tuned" { // by how long epochs take
				r.Sharing = r.Sharing.With("leap.merge=off")
			}
			r = traintest.Swept(r, "lr=0.01", "lr=0.003 hidden=5", "lr=0.03", "lr=0.1 optimizer=sgd")
			run := func(r recipe.Recipe) [][]trained.Epoch {
				_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
				return reports
			}
			alone := soloists(t, r, func(r recipe.Recipe) []trained.Epoch { return run(r)[0] })
			reports := run(r)
			for node := range reports {
				asAlone(t, fmt.Sprintf("%s, deterministic %v, node %d", way, deterministic, node), reports[node], alone)
			}
			if sharing.Values["leap.mode"] == "migrate" {
				hops := func(all []trained.Epoch) (n uint64) {
					for _, e := range all {
						n += e.Sent.Requests[peer.Model]
					}
					return n
				}
				if got, want := hops(reports[0]), uint64(len(r.Sweep))*hops(alone[0]); got != want || got == 0 {
					t.Errorf("%s: %d models took %d hops, and one of them a fourth of %d", way, len(r.Sweep), got, want)
				}
			}
		}
	}
}
