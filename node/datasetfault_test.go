package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// moments are the stages of an import at which it is interrupted.
var moments = []string{"", "placing shards"}

// interrupted runs an import until a moment, does something to it, and returns
// how it ended.
func interrupted(on *nodetest.Instance, r api.GenerateRequest, moment string, harm func(cancel func())) error {
	reached, release := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := on.API().GenerateDataset(ctx, r, holdAt(moment, reached, release))
		done <- err
	}()
	<-reached
	go func() {
		<-time.After(time.Second) // while the harm is being done
		close(release)
	}()
	harm(cancel)
	return <-done
}

// absent waits until no running node knows of a dataset, nor has any of its files.
func absent(t *testing.T, c *nodetest.Cluster) {
	t.Helper()
	c.Wait("the dataset is gone, with its files", 2*time.Minute, func() bool {
		for _, n := range c.Nodes {
			if n.Running() && len(n.Datasets())+len(n.Files()) > 0 {
				return false
			}
		}
		return true
	})
}

func TestImportIsInterrupted(t *testing.T) {
	for _, moment := range moments {
		t.Run("cancelled at "+moment, func(t *testing.T) {
			threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
				n := c.Others(c.Leader())[0]
				err := interrupted(n, tiny("g", 1), moment, func(cancel func()) { cancel() })
				if err == nil {
					t.Error("it was not interrupted")
				}
				absent(t, c)
				generated(t, n, tiny("g", 1)) // the name is free
				clean(t, c, c.Nodes...)
			})
		})
		t.Run("removed at "+moment, func(t *testing.T) {
			threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
				n, other := c.Nodes[1], c.Nodes[2]
				err := interrupted(n, tiny("g", 1), moment, func(func()) {
					c.Wait("the other knows of it", time.Minute, func() bool { return len(other.Datasets()) == 1 })
					if err := other.API().RemoveDataset(t.Context(), "g", false); err != nil {
						t.Error(err)
					}
				})
				if err == nil || !strings.Contains(err.Error(), "removed while") {
					t.Errorf("ended with %v", err)
				}
				absent(t, c)
			})
		})
		t.Run("stopped at "+moment, func(t *testing.T) {
			threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
				n := c.Others(c.Leader())[0]
				err := interrupted(n, tiny("g", 1), moment, func(func()) {
					begin := time.Now()
					if err := n.Stop(); err != nil {
						t.Error(err)
					}
					if took := time.Since(begin); took > 10*time.Second {
						t.Errorf("the stop took %s", took)
					}
				})
				if err == nil || !strings.Contains(err.Error(), "stopping") {
					t.Errorf("ended with %v", err)
				}
				absent(t, c)
				n.Restart()
				n.WaitReady()
				absent(t, c)
			})
		})
	}
}

// kill -9 of the importer: the dataset ends whole or absent, whether the importer
// comes back or not.
func TestImporterDies(t *testing.T) {
	for _, moment := range moments {
		for _, back := range []time.Duration{time.Second, time.Minute, 0} {
			t.Run(fmt.Sprintf("at %s, back after %s", moment, back), func(t *testing.T) {
				threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
					n := c.Others(c.Leader())[0]
					_ = interrupted(n, tiny("g", 1), moment, func(func()) { n.Crash() })
					if back > 0 {
						<-time.After(back)
						n.Restart()
						n.WaitReady()
					}
					wholeOrAbsent(t, c)
				})
			})
		}
	}
}

func wholeOrAbsent(t *testing.T, c *nodetest.Cluster) {
	t.Helper()
	l := c.Leader()
	c.Wait("the dataset is whole or absent", 3*time.Minute, func() bool {
		list := l.Datasets()
		return len(list) == 0 || list[0].Stage == "ready" && list[0].Problems == 0
	})
	c.WaitEqual(time.Minute)
	if len(l.Datasets()) == 0 {
		absent(t, c)
		return
	}
	if err := l.API().VerifyDataset(t.Context(), "g", quiet); err != nil {
		t.Error(err)
	}
	var running []*nodetest.Instance
	for _, n := range c.Nodes {
		if n.Running() {
			running = append(running, n)
		}
	}
	clean(t, c, running...)
}

// The leader dies while shards are being placed; another goes on.
func TestLeaderDiesDuringPlacement(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		leader := c.Leader()
		n := c.Others(leader)[0]
		if err := interrupted(n, tiny("g", 1), "placing shards", func(func()) { leader.Kill() }); err != nil {
			t.Fatal(err)
		}
		leader.Restart()
		leader.WaitReady()
		c.Wait("all is well", 3*time.Minute, func() bool { return len(c.Leader().Status().Problems) == 0 })
		clean(t, c, c.Nodes...)
	})
}

func TestPartitionDuringPlacement(t *testing.T) {
	for _, importer := range []bool{true, false} {
		t.Run(fmt.Sprintf("of the importer %v", importer), func(t *testing.T) {
			threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
				others := c.Others(c.Leader())
				n, cut := others[0], others[1]
				if importer {
					cut = n
				}
				err := interrupted(n, tiny("g", 1), "placing shards", func(func()) {
					c.Isolate(cut)
					go func() {
						<-time.After(30 * time.Second)
						c.Network.Heal()
					}()
				})
				t.Logf("the import ended with %v", err)
				<-time.After(time.Minute)
				wholeOrAbsent(t, c)
				if err == nil && len(n.Datasets()) == 0 {
					t.Error("it said that it was ready, and it is gone")
				}
			})
		})
	}
}

// A bit flips on a disk: verify says where, the copy is replaced, and verify is
// content.
func TestVerifyFindsAndRepairHeals(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		generated(t, c.Nodes[0], tiny("g", 1))
		clean(t, c, c.Nodes...)
		asked, bad := c.Nodes[0], c.Nodes[1]
		var last *api.Progress
		err := asked.API().VerifyDataset(t.Context(), "g", func(e api.DatasetEvent) { last = e.Progress })
		if err != nil || last == nil || last.Done != 16 || last.Total != 16 {
			t.Fatalf("verified with %v, at %+v", err, last)
		}
		flip(t, bad)
		err = asked.API().VerifyDataset(t.Context(), "g", quiet)
		if status404(err) != 409 || !strings.Contains(err.Error(), bad.Name) || !strings.Contains(err.Error(), "being replaced") {
			t.Errorf("verified with %v", err)
		}
		c.Wait("it is whole again", time.Minute, func() bool { return c.CheckHolders() == nil && copied(bad.Dataset("g"), 1, c.Nodes...) })
		c.WaitEqual(time.Minute)
		if err := asked.API().VerifyDataset(t.Context(), "g", quiet); err != nil {
			t.Error(err)
		}
		if status404(asked.API().VerifyDataset(t.Context(), "h", quiet)) != 404 {
			t.Error("verified what does not exist")
		}
	})
}

func TestVerifyWithoutAnotherCopy(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		generated(t, c.Nodes[0], tiny("g", 0))
		clean(t, c, c.Nodes...)
		flip(t, c.Nodes[2])
		err := c.Nodes[0].API().VerifyDataset(t.Context(), "g", quiet)
		if err == nil || !strings.Contains(err.Error(), "import it again") {
			t.Errorf("verified with %v", err)
		}
		c.Wait("status says so", time.Minute, func() bool {
			return strings.Contains(strings.Join(c.Nodes[0].Status().Problems, "\n"), "dataset g has lost 1 shard")
		})
		c.Wait("all know", time.Minute, func() bool { return c.CheckHolders() == nil })
	})
}

// flip changes one byte of one shard on a node's disk.
func flip(t *testing.T, on *nodetest.Instance) {
	t.Helper()
	path := filepath.Join(on.Options.DataDir, "datasets", on.Files()[0])
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-5] ^= 1
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A node whose only copy of a shard is damaged can leave: who fetches it notices,
// and the node is made to look.
func TestLeaveWithADamagedCopy(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		generated(t, c.Nodes[0], tiny("g", 0))
		clean(t, c, c.Nodes...)
		flip(t, c.Nodes[2])
		if err := c.Nodes[2].API().Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Wait("it has left", time.Minute, func() bool { return len(c.Nodes[0].Status().Problems) > 0 && c.Nodes[0].Status().Members == 2 })
	})
}

// One node says what a second would bring; the second brings it.
func TestReplicasWaitForNodes(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		d := generated(t, c.Nodes[0], tiny("g", 1))
		if d.Stage != "ready" {
			t.Errorf("it is %s", d.Stage)
		}
		if p := strings.Join(c.Nodes[0].Status().Problems, "\n"); !strings.Contains(p, "takes 2 nodes and the mesh has 1") {
			t.Errorf("problems: %s", p)
		}
		c.Grow(1)
		c.Wait("all is copied", time.Minute, func() bool { return copied(c.Nodes[1].Dataset("g"), 1, c.Nodes...) })
		c.Wait("all is well", time.Minute, func() bool { return len(c.Nodes[0].Status().Problems) == 0 })
		clean(t, c, c.Nodes...)
	})
}

func TestImportRefuses(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		many, n := 99, c.Nodes[0]
		for name, r := range map[string]api.GenerateRequest{
			"a bad name":        {Name: "../g", Kind: "rmat", Vertices: 100, Edges: 100},
			"no such kind":      {Name: "g", Kind: "tree", Vertices: 100, Edges: 100},
			"too many replicas": {Name: "g", Kind: "rmat", Vertices: 100, Edges: 100, DatasetOptions: api.DatasetOptions{Replicas: &many}},
			"too many shards":   {Name: "g", Kind: "rmat", Vertices: 100, Edges: 100, DatasetOptions: api.DatasetOptions{Shards: 101}},
			"too many vertices": {Name: "g", Kind: "rmat", Vertices: 1 << 40, Edges: 100},
			"no partitioner":    {Name: "g", Kind: "rmat", Vertices: 100, Edges: 100, DatasetOptions: api.DatasetOptions{Partitioner: "x"}},
		} {
			if _, err := n.API().GenerateDataset(t.Context(), r, quiet); status404(err) != 400 {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := n.API().ImportDataset(t.Context(), api.ImportRequest{Name: "g", Source: filepath.Join(t.TempDir(), "none.npz")}, quiet)
		if status404(err) != 400 || !strings.Contains(err.Error(), "none.npz") {
			t.Errorf("a source that is not there: %v", err)
		}
		absent(t, c)
	})
}
