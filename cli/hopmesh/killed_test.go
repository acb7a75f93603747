package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

// watched tells of each epoch of a job as soon as the daemon knows it, and returns the job as
// it ended.
func (d *daemon) watched(id string, epoch func(api.JobEpoch)) shownJob {
	d.t.Helper()
	client, err := api.NewClient("unix:" + filepath.Join(d.dir, "hopmesh.sock"))
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	end, err := client.WatchJob(ctx, id, func(e api.JobEvent) {
		if e.Epoch != nil {
			epoch(*e.Epoch)
		}
	})
	if err != nil || end.State != "done" {
		d.t.Fatalf("job %s is %s: %s (%v)", id, end.State, end.Error, err)
	}
	return d.job(id)
}

// A killing is of a node of three that share a job.
type killing struct {
	recipe string
	leader bool // dies, or else a node that does not lead
}

// outlivesAKill starts a job of each recipe twice, and kills a node with -9 in the middle of an
// epoch of the second: the others go on without it, and come to the weights of the first.
func outlivesAKill(t *testing.T, nodes []*daemon, epochs int, killings ...killing) {
	t.Helper()
	names := []string{"n1", "n2", "n3"}
	for _, c := range killings {
		until(t, "all own shards", func() bool {
			var d shownDataset
			nodes[0].must(&d, "dataset", "show", "g")
			owners := map[string]bool{}
			for _, s := range d.Shards {
				owners[s.Owner] = true
			}
			return len(owners) == len(names) && !owners[""]
		})
		ask := append([]string{"train", "start", "--dataset", "g", "--deterministic", "--hidden", "16", "--epochs", fmt.Sprint(epochs)}, strings.Fields(c.recipe)...)
		victim := slices.Index(names, nodes[0].leader())
		if !c.leader {
			victim = (victim + 1) % len(names)
		}
		witness := nodes[(victim+1)%len(names)]
		var calm, killed struct {
			ID string `json:"id"`
		}
		witness.must(&calm, ask...)
		want := witness.watched(calm.ID, func(api.JobEpoch) {})
		witness.must(&killed, ask...)
		dead := false
		got := witness.watched(killed.ID, func(e api.JobEpoch) {
			if !dead && e.Epoch >= 3 {
				nodes[victim].signal(syscall.SIGKILL)
				<-nodes[victim].done
				dead = true
			}
		})
		if len(got.Nodes) != 2 || slices.Contains(got.Nodes, names[victim]) || len(want.Nodes) != 3 || got.History[0].Generation == got.History[epochs-1].Generation {
			t.Errorf("%s: undisturbed on %v, and in the end on %v in generations %d to %d: too fast for this test?", c.recipe, want.Nodes, got.Nodes,
				got.History[0].Generation, got.History[epochs-1].Generation)
		}
		for i, w := range want.History {
			if g := got.History[i]; g.Epoch != i+1 || g.Weights != w.Weights || g.Loss != w.Loss || *g.ValAccuracy != *w.ValAccuracy {
				t.Fatalf("%s: epoch %d is %+v, and undisturbed it is %+v", c.recipe, i+1, g, w)
			}
		}
		nodes[victim] = start(t, nodes[victim].dir, "--listen", "127.0.0.1:0")
		until(t, "it is back", nodes[victim].ready)
	}
}
