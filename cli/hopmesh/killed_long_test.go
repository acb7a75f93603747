//go:build long

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

// Strategies that keep more than weights between epochs outlive a kill, too.
func TestTrainingByAnyStrategyOutlivesAKill(t *testing.T) {
	nodes := meshOf(t, 3)
	nodes[0].must(new(any), "dataset", "generate", "g", "--kind", "sbm", "--vertices", "12000", "--edges", "60000", "--features", "32",
		"--classes", "4", "--shards", "12", "--replicas", "2")
	outlivesAKill(t, nodes, 40,
		killing{recipe: "--strategy grappa --set grappa.period=7 --batch 1500 --fanout 5,5"},
		killing{recipe: "--strategy pipe --set pipe.period=7 --layers 3", leader: true},
		killing{recipe: "--strategy graph --set pipe.ways=3 --layers 3"},
	)
}

// Three processes share a job, the leader is killed with -9 in the middle of an epoch, and the
// others come to the same weights without it. A delay makes epochs last.
func TestSharedTrainingOutlivesAKill(t *testing.T) {
	t.Parallel() // it mostly waits
	nodes := meshAs(t, 3, "bench", "node", "--delay", "5ms")
	nodes[0].must(new(any), "dataset", "generate", "g", "--kind", "sbm", "--vertices", "1200", "--edges", "6000", "--features", "8",
		"--classes", "4", "--shards", "6", "--replicas", "1")
	outlivesAKill(t, nodes, 20, killing{recipe: "--strategy leap --batch 150 --fanout 5,5", leader: true})
}

// A first calls do before the first byte is taken.
type first struct {
	got bytes.Buffer
	do  func()
}

func (f *first) Write(p []byte) (int, error) {
	if f.do != nil {
		f.do()
		f.do = nil
	}
	return f.got.Write(p)
}

// predicted asks the daemon for a job's predictions, and does something while they come.
func (d *daemon) predicted(id string, do func()) ([]byte, error) {
	d.t.Helper()
	return d.predictedAs(id, api.PredictRequest{Format: ".npy"}, do)
}

func (d *daemon) predictedAs(id string, r api.PredictRequest, do func()) ([]byte, error) {
	d.t.Helper()
	client, err := api.NewClient("unix:" + filepath.Join(d.dir, "hopmesh.sock"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	to := first{do: do}
	err = client.Predict(ctx, id, r, &to)
	return to.got.Bytes(), err
}

// kill ends the daemon as kill -9 does.
func (d *daemon) kill() {
	d.signal(syscall.SIGKILL)
	<-d.done
}

// While predictions come, the death of a node that gave shards for them is not noticed, and
// that of the node that makes them ends them, leaves nothing, and hinders no later ones.
func TestPredictionsWhileNodesAreKilled(t *testing.T) {
	nodes := meshOf(t, 3)
	nodes[0].must(new(any), "dataset", "generate", "g", "--kind", "sbm", "--vertices", "100000", "--edges", "400000", "--features", "16",
		"--classes", "20", "--shards", "6", "--replicas", "1")
	id := nodes[0].asked("--dataset g --strategy leap --hidden 16 --batch 8192 --fanout 5,5 --epochs 1")
	if j := nodes[0].ended(id); j.State != "done" || len(j.Nodes) != 3 {
		t.Fatalf("the job on %v is %s: %s", j.Nodes, j.State, j.Error)
	}
	want, err := nodes[0].predicted(id, nil)
	if err != nil || len(want) < 100000*20*4 {
		t.Fatalf("%d bytes of predictions: %v", len(want), err)
	}
	for _, victim := range []int{1, 2} {
		if got, err := nodes[0].predicted(id, nodes[victim].kill); err != nil || !bytes.Equal(got, want) {
			t.Errorf("while another node dies, %d bytes come of %d: %v", len(got), len(want), err)
		}
		nodes[victim] = start(t, nodes[victim].dir, "--listen", "127.0.0.1:0")
		until(t, "it is back", nodes[victim].ready)
	}
	if got, err := nodes[0].predicted(id, nodes[0].kill); err == nil {
		t.Errorf("its node dies, and all is well with %d bytes of %d", len(got), len(want))
	} else if strings.Contains(err.Error(), "\n") {
		t.Errorf("its node dies: %v", err)
	}
	nodes[0] = start(t, nodes[0].dir, "--listen", "127.0.0.1:0")
	until(t, "it is back", nodes[0].ready)
	if h := nodes[0].halves(); len(h) > 0 {
		t.Errorf("%s are left", h)
	}
	var got []byte
	until(t, "it reaches the others, and predicts", func() bool {
		got, err = nodes[0].predicted(id, nil)
		return err == nil
	})
	if !bytes.Equal(got, want) {
		t.Errorf("afterwards %d bytes come of %d, and others", len(got), len(want))
	}
}

// The same is true of the best partners of all vertices, which are found while they come.
func TestPartnersWhileNodesAreKilled(t *testing.T) {
	nodes := meshOf(t, 3)
	nodes[0].must(new(any), "dataset", "generate", "g", "--kind", "sbm", "--vertices", "20000", "--edges", "80000", "--features", "16",
		"--classes", "4", "--shards", "6", "--replicas", "1")
	id := nodes[0].asked("--dataset g --task link --strategy leap --hidden 16 --batch 8192 --fanout 5,5 --epochs 1 --set link.width=16")
	if j := nodes[0].ended(id); j.State != "done" || len(j.Nodes) != 3 {
		t.Fatalf("the job on %v is %s: %s", j.Nodes, j.State, j.Error)
	}
	r := api.PredictRequest{Format: ".csv", PairOptions: api.PairOptions{Top: 10}}
	want, err := nodes[0].predictedAs(id, r, nil)
	if err != nil || bytes.Count(want, []byte("\n")) != 1+10*20000 {
		t.Fatalf("%d bytes of partners: %v", len(want), err)
	}
	if got, err := nodes[0].predictedAs(id, r, nodes[1].kill); err != nil || !bytes.Equal(got, want) {
		t.Errorf("while another node dies, %d bytes come of %d: %v", len(got), len(want), err)
	}
	nodes[1] = start(t, nodes[1].dir, "--listen", "127.0.0.1:0")
	until(t, "it is back", nodes[1].ready)
	if got, err := nodes[0].predictedAs(id, r, nodes[0].kill); err == nil {
		t.Errorf("its node dies, and all is well with %d bytes of %d", len(got), len(want))
	}
	nodes[0] = start(t, nodes[0].dir, "--listen", "127.0.0.1:0")
	until(t, "it is back", nodes[0].ready)
	if h := nodes[0].halves(); len(h) > 0 {
		t.Errorf("%s are left", h)
	}
	var got []byte
	until(t, "it reaches the others, and finds partners", func() bool {
		got, err = nodes[0].predictedAs(id, r, nil)
		return err == nil
	})
	if !bytes.Equal(got, want) {
		t.Errorf("afterwards %d bytes come of %d, and others", len(got), len(want))
	}
}

// A job that gave something up to fit outlives a kill as others do.
func TestAJobThatFellBackOutlivesAKill(t *testing.T) {
	dir, ports := box(t), freePorts(t, 3)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	with := func(more ...string) []*daemon {
		return meshIn(t, dir, ports, func(args []string) *exec.Cmd { return exec.Command(path, append(args, more...)...) })
	}
	nodes := with()
	generatedOn(t, nodes[0], "--vertices", "60000", "--edges", "900000", "--features", "64", "--classes", "8", "--shards", "6", "--replicas", "1")
	const recipe = "--strategy leap --deterministic --hidden 64 --batch 4096 --fanout 10,10 --epochs "
	type shown struct {
		Memory struct {
			Forecast uint64   `json:"forecast"`
			FellBack []string `json:"fell_back"`
		} `json:"memory"`
	}
	fell := func(d *daemon, epochs string, epoch func(api.JobEpoch)) (j shownJob, s shown) {
		t.Helper()
		id := d.asked("--dataset g " + recipe + epochs)
		j = d.watched(id, epoch)
		d.must(&s, "train", "show", id)
		return j, s
	}
	_, free := fell(nodes[0], "1", func(api.JobEpoch) {})
	for _, d := range nodes {
		d.signal(os.Interrupt)
		d.exit()
	}
	bound := fmt.Sprint(free.Memory.Forecast * 9 / 10)
	nodes = with("--memory", bound)
	want, calm := fell(nodes[0], "8", func(api.JobEpoch) {})
	t.Logf("of %d MiB it takes %s bytes: %q", free.Memory.Forecast>>20, bound, calm.Memory.FellBack)
	if len(calm.Memory.FellBack) == 0 || len(free.Memory.FellBack) > 0 {
		t.Errorf("nothing is given up with %s bytes, or with more: %q", bound, free.Memory.FellBack)
	}
	dead := false
	got, _ := fell(nodes[0], "8", func(e api.JobEpoch) {
		if !dead && e.Epoch >= 2 {
			nodes[1].kill()
			dead = true
		}
	})
	if len(got.Nodes) != 2 || got.History[0].Generation == got.History[7].Generation {
		t.Errorf("it ended on %v: too fast for this test?", got.Nodes)
	}
	for i, w := range want.History {
		if g := got.History[i]; g.Weights != w.Weights || g.Loss != w.Loss || *g.ValAccuracy != *w.ValAccuracy {
			t.Fatalf("epoch %d is %+v, and undisturbed it is %+v", i+1, g, w)
		}
	}
}
