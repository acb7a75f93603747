//go:build long

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

// flipped flips random bits of a daemon's files, one after the other.
func flipped(t *testing.T, random *rand.Rand, places int, files []string) {
	t.Helper()
	for i := range places {
		path := files[i%len(files)]
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a node that runs has found the damage, and dropped it
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		at := random.IntN(len(b))
		if _, err := f.WriteAt([]byte{b[at] ^ 1<<random.IntN(8)}, int64(at)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Three processes share a job of each strategy. One is killed with -9, and bits of its shards
// and its checkpoint flip before it is started again; in another job they flip while it trains,
// and in a third one its mapped shards are cut short. All jobs come to the same weights, and no
// daemon ends.
func TestDamagedFilesOfProcesses(t *testing.T) {
	nodes := meshOf(t, 3)
	nodes[0].must(new(any), "dataset", "generate", "g", "--kind", "sbm", "--vertices", "12000", "--edges", "60000", "--features", "32",
		"--classes", "4", "--shards", "12", "--replicas", "2")
	random := rand.New(rand.NewPCG(7, 8))
	const epochs = 20
	for _, recipe := range []string{
		"--strategy leap --batch 1500 --fanout 5,5", "--strategy p3 --batch 1500 --fanout 5,5", "--strategy graph --set pipe.ways=3 --layers 3",
		"--strategy grappa --set grappa.period=7 --batch 1500 --fanout 5,5", "--strategy pipe --set pipe.period=7 --layers 3",
	} {
		ask := append([]string{"train", "start", "--dataset", "g", "--deterministic", "--hidden", "16", "--epochs", fmt.Sprint(epochs)}, strings.Fields(recipe)...)
		var want shownJob
		for _, harm := range []string{"", "killed, 100 bits of shards and one of a checkpoint flipped", "100 bits of shards flipped while it trains", "shards cut short while it trains"} {
			for _, n := range nodes { // whoever is asked to start the job
				until(t, "all shards are whole and owned by three", func() bool {
					var d shownDataset
					n.must(&d, "dataset", "show", "g")
					owners := map[string]bool{}
					for _, s := range d.Shards {
						owners[s.Owner] = len(s.Replicas) == 2
					}
					return len(owners) == 3 && !slices.ContainsFunc([]string{"n1", "n2", "n3"}, func(n string) bool { return !owners[n] })
				})
			}
			victim := (slices.Index([]string{"n1", "n2", "n3"}, nodes[0].leader()) + 1) % 3
			witness := nodes[(victim+1)%3]
			var job struct {
				ID string `json:"id"`
			}
			witness.must(&job, ask...)
			done := false
			got := witness.watched(job.ID, func(e api.JobEpoch) {
				if done || harm == "" || e.Epoch < 3 {
					return
				}
				done = true
				hurt := nodes[victim]
				switch {
				case strings.HasPrefix(harm, "killed"):
					hurt.signal(syscall.SIGKILL)
					<-hurt.done
					flipped(t, random, 100, shardFiles(t, hurt.dir))
					checkpoints, err := filepath.Glob(filepath.Join(hurt.dir, "jobs", job.ID+"-*", "last.safetensors"))
					if err != nil {
						t.Fatal(err)
					}
					if len(checkpoints) > 0 {
						flipped(t, random, 1, checkpoints)
					}
					nodes[victim] = start(t, hurt.dir, "--listen", "127.0.0.1:0")
				case strings.HasPrefix(harm, "100 bits"):
					flipped(t, random, 100, shardFiles(t, hurt.dir))
				default:
					for _, file := range shardFiles(t, hurt.dir) {
						if err := os.Truncate(file, 8192); err != nil {
							t.Fatal(err)
						}
					}
				}
			})
			if harm == "" {
				want = got
				continue
			}
			wrong := 0
			for i, w := range want.History {
				if g := got.History[i]; g.Weights != w.Weights || g.Loss != w.Loss {
					wrong++
				}
			}
			if wrong > 0 {
				t.Errorf("%s, %s: %d of %d epochs are wrong", recipe, harm, wrong, epochs)
			}
			until(t, "the node is there", nodes[victim].ready)
			until(t, "all is verified", func() bool {
				var v any
				return nodes[0].json(&v, "dataset", "verify", "g") == 0
			})
			generations := map[uint64]bool{}
			for _, e := range got.History {
				generations[e.Generation] = true
			}
			t.Logf("%s, %s: %d of %d epochs have the same weights, in %d generations", recipe, harm, epochs-wrong, epochs, len(generations))
		}
	}
}
