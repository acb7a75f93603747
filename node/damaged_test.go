package node_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// flips changes so many random bits, spread over files.
func flips(t *testing.T, random *rand.Rand, places int, files ...string) {
	t.Helper()
	for i := range places {
		path := files[i%len(files)]
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		at := random.Int64N(info.Size())
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 1 << random.IntN(8)
		if _, err := f.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// shardFiles lists a node's shard files.
func shardFiles(n *nodetest.Instance) (paths []string) {
	for _, name := range n.Files() {
		if strings.HasSuffix(name, ".safetensors") {
			paths = append(paths, filepath.Join(n.Options.DataDir, "datasets", name))
		}
	}
	return paths
}

// checkpointFiles lists a node's checkpoints of a name.
func checkpointFiles(t *testing.T, n *nodetest.Instance, name string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(n.Options.DataDir, "jobs", "*", name))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// learning starts a deterministic job.
func learning(t *testing.T, on *nodetest.Instance, strategy string, epochs int) string {
	t.Helper()
	hidden, batch := 8, 64
	id, err := on.API().StartJob(t.Context(), api.TrainRequest{
		Dataset: "g", Strategy: strategy, Deterministic: true, Epochs: &epochs, Hidden: &hidden, Batch: &batch, Fanout: []int{4, 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// wrong counts the epochs of a job whose weights are not those of another.
func wrong(j, want api.Job) (n int) {
	for i, e := range want.History {
		if i >= len(j.History) || j.History[i].Weights != e.Weights {
			n++
		}
	}
	return n
}

// told waits until every node names damage of this kind of a node, or that it was repaired.
func told(c *nodetest.Cluster, kind string, of *nodetest.Instance) {
	c.Wait("all nodes name damage of "+of.Name, time.Minute, func() bool {
		return !slices.ContainsFunc(c.Nodes, func(n *nodetest.Instance) bool {
			return !slices.ContainsFunc(n.Status().Damage, func(d api.Damage) bool { return d.Kind == kind && d.Node == of.Name })
		})
	})
}

// Shards whose bits flip, that are removed or cut short, while their node is stopped or while it
// trains: jobs end with the weights that they would have had, and all files are whole again.
func TestDamagedShardsLeaveNoTrace(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	removed := func(t *testing.T, files []string) {
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	cut := func(t *testing.T, files []string) {
		for i, f := range files {
			if err := os.Truncate(f, int64(i%2)*4096); err != nil {
				t.Fatal(err)
			}
		}
	}
	flipped := func(t *testing.T, files []string) { flips(t, random, 100, files...) }
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 1))
		whole := func() {
			t.Helper()
			c.Wait("all shards are whole again", 5*time.Minute, func() bool {
				return copied(c.Nodes[0].Dataset("g"), 1, c.Nodes...) && c.Nodes[0].API().VerifyDataset(t.Context(), "g", quiet) == nil
			})
			clean(t, c, c.Nodes...)
		}
		whole()
		const epochs = 30
		want := map[string]api.Job{}
		for _, strategy := range []string{"leap", "p3"} {
			want[strategy] = waitState(c, c.Nodes[0], learning(t, c.Nodes[0], strategy, epochs), "done")
		}
		for _, n := range c.Nodes { // so that there is time for what follows
			c.Network.Slow(n.IP(), 5*time.Millisecond)
		}
		for _, x := range []struct {
			name     string
			strategy string
			harm     func(t *testing.T, files []string)
		}{{"100 bits flipped", "leap", flipped}, {"100 bits flipped", "p3", flipped}, {"all removed", "leap", removed}, {"all cut short", "leap", cut}} {
			hurt := c.Others(c.Leader())[0]
			other := c.Others(hurt)[0]
			if err := hurt.Stop(); err != nil {
				t.Fatal(err)
			}
			files := shardFiles(hurt)
			x.harm(t, files)
			hurt.Restart()
			hurt.WaitReady()
			j := waitState(c, other, learning(t, other, x.strategy, epochs), "done")
			if n := wrong(j, want[x.strategy]); n > 0 {
				t.Errorf("stopped, %s in %d files: %d of %d epochs of %s are wrong", x.name, len(files), n, epochs, x.strategy)
			}
			told(c, "shard", hurt)
			whole()
			t.Logf("stopped, %s in %d files: %s came to the same weights in %d generations, and all is whole", x.name, len(files), x.strategy, len(ages(j)))

			id := learning(t, other, x.strategy, epochs)
			under(c, other, id, 3)
			files = shardFiles(hurt)
			x.harm(t, files)
			j = waitState(c, other, id, "done")
			if n := wrong(j, want[x.strategy]); n > 0 {
				t.Errorf("training, %s in %d files: %d of %d epochs of %s are wrong", x.name, len(files), n, epochs, x.strategy)
			}
			if !hurt.Running() {
				t.Fatal("the node has died of it")
			}
			whole()
			t.Logf("training, %s in %d files: %s came to the same weights in %d generations, and all is whole", x.name, len(files), x.strategy, len(ages(j)))
		}
	})
}

// A job that one node does alone waits until its damaged shards are fetched anew. Without
// another copy it ends with a sentence on what is damaged, where, and what to do.
func TestDamagedShardsOfAJobAlone(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		generated(t, c.Nodes[0], tiny("g", 1))
		c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), 1, c.Nodes...) })
		want := waitState(c, c.Nodes[0], learning(t, c.Nodes[0], "single", 10), "done")
		for _, n := range c.Nodes {
			flips(t, random, 50, shardFiles(n)[:4]...)
			if n == c.Nodes[0] {
				j := waitState(c, n, learning(t, n, "single", 10), "done")
				if n := wrong(j, want); n > 0 {
					t.Errorf("%d epochs are wrong", n)
				}
				c.Wait("they are whole again", time.Minute, func() bool { return n.API().VerifyDataset(t.Context(), "g", quiet) == nil })
			}
		}
	})
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		n := c.Nodes[0]
		generated(t, n, tiny("g", 0))
		flips(t, random, 1, shardFiles(n)[3])
		j := waitState(c, n, learning(t, n, "single", 10), "failed")
		if want := "shard 3 of dataset g can't be used"; !strings.Contains(j.Error, want) || !strings.Contains(j.Error, "no other node has a copy: remove the dataset and import it again") {
			t.Errorf("it ended with %q", j.Error)
		}
		told(c, "shard", n)
		refused(t, "the verification", n.API().VerifyDataset(t.Context(), "g", quiet), "shard 3 is gone", "import it again")
	})
}

// A node whose last checkpoint is damaged goes on from the one before, or from another node's.
func TestDamagedCheckpointsLeaveNoTrace(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("g", 1))
		c.Wait("all hold the dataset", time.Minute, func() bool { return copied(c.Nodes[0].Dataset("g"), 1, c.Nodes...) })
		const epochs = 120 // many more than end before the third kill
		want := waitState(c, c.Nodes[0], learning(t, c.Nodes[0], "leap", epochs), "done")
		for _, n := range c.Nodes {
			c.Network.Slow(n.IP(), 5*time.Millisecond)
		}
		id := learning(t, c.Nodes[0], "leap", epochs)
		for range 3 {
			hurt := c.Others(c.Leader())[0]
			other := c.Others(hurt)[0]
			under(c, other, id, len(jobOn(other, id).History)+3)
			hurt.Kill()
			for _, path := range checkpointFiles(t, hurt, "last.safetensors") {
				flips(t, random, 1, path)
			}
			c.Wait("it goes on without", time.Minute, func() bool { return len(jobOn(other, id).Nodes) == 2 || jobOn(other, id).State == "done" })
			hurt.Restart()
			hurt.WaitReady()
		}
		j := waitState(c, c.Nodes[0], id, "done")
		if n := wrong(j, want); n > 0 {
			t.Errorf("%d of %d epochs are wrong", n, epochs)
		}
		// The model that is left: a node with a damaged one takes that of another.
		c.Wait("all know", time.Minute, func() bool {
			return !slices.ContainsFunc(c.Nodes, func(n *nodetest.Instance) bool { return jobOn(n, id).State != "done" })
		})
		hurt := named(c, j.Nodes[0])
		said, model, err := taken(t.Context(), hurt, id)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			paths := checkpointFiles(t, hurt, "last.safetensors")
			flips(t, random, 1, paths[len(paths)-1])
			var out strings.Builder
			if err := hurt.API().ExportJob(t.Context(), id, api.ExportRequest{}, &out); err != nil || out.String() != model.String() {
				t.Fatalf("place %d: %d bytes of the model, %v", i, out.Len(), err)
			}
		}
		again, _, err := taken(t.Context(), hurt, id)
		if err != nil || again.String() != said.String() {
			t.Errorf("%d bytes of predictions, %v", again.Len(), err)
		}
		told(c, "model", hurt)
		t.Log("100 bits flipped in a model, one after the other: 100 exports gave the same model")
	})
}
