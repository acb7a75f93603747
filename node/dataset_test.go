package node_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// tiny is a graph of eight shards that is made in an instant.
func tiny(name string, replicas int) api.GenerateRequest {
	return api.GenerateRequest{
		Name: name, Kind: "sbm", Vertices: 400, Edges: 1600, Features: 4, Classes: 2,
		DatasetOptions: api.DatasetOptions{Shards: 8, Partitioner: "random", Replicas: &replicas},
	}
}

func quiet(api.DatasetEvent) {}

func generated(t *testing.T, on *nodetest.Instance, r api.GenerateRequest) api.Dataset {
	t.Helper()
	d, err := on.API().GenerateDataset(t.Context(), r, quiet)
	if err != nil {
		t.Fatalf("generate %s on %s: %v", r.Name, on.Name, err)
	}
	return d
}

// owned counts the shards by owner.
func owned(d api.Dataset) map[string]int {
	n := map[string]int{}
	for _, s := range d.Shards {
		n[s.Owner]++
	}
	return n
}

// ownersOf lists the shards' owners.
func ownersOf(d api.Dataset) []string {
	var list []string
	for _, s := range d.Shards {
		list = append(list, s.Owner)
	}
	return list
}

// copied reports whether every shard has an owner and so many replicas, all of them
// on these nodes.
func copied(d api.Dataset, replicas int, nodes ...*nodetest.Instance) bool {
	for _, s := range d.Shards {
		holders := append([]string{s.Owner}, s.Replicas...)
		for _, h := range holders {
			if !slices.ContainsFunc(nodes, func(n *nodetest.Instance) bool { return n.Name == h }) {
				return false
			}
		}
		if len(s.Replicas) != replicas {
			return false
		}
	}
	return len(d.Shards) > 0
}

// sound fails the test when the plan names a shard that is not there.
func sound(t *testing.T, c *nodetest.Cluster) {
	t.Helper()
	if err := c.CheckHolders(); err != nil {
		t.Error(err)
	}
}

// clean waits until all nodes have read the same plan, and each of these has the files
// of the shards that it holds, and no others.
func clean(t *testing.T, c *nodetest.Cluster, nodes ...*nodetest.Instance) {
	t.Helper()
	c.WaitEqual(2 * time.Minute)
	for _, n := range nodes {
		c.Wait(n.Name+" has its shards and nothing else", 2*time.Minute, func() bool { return n.CheckFiles() == nil })
	}
	sound(t, c)
}

func TestDatasetIsPlaced(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		importer := c.Others(c.Leader())[0]
		var forecast *api.Forecast
		var placed *api.Progress
		d, err := importer.API().GenerateDataset(t.Context(), tiny("g", 1), func(e api.DatasetEvent) {
			if e.Forecast != nil {
				forecast = e.Forecast
			}
			if e.Progress != nil && e.Progress.Stage == "placing shards" {
				placed = e.Progress
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if forecast == nil || forecast.Shards != 8 || forecast.Replicas != 1 {
			t.Errorf("forecast %+v", forecast)
		}
		if placed == nil || placed.Total == 0 || placed.Done != placed.Total {
			t.Errorf("placed %+v", placed)
		}
		if d.Stage != "ready" || d.Vertices != 400 || len(d.Problems) > 0 || !copied(d, 1, c.Nodes...) {
			t.Errorf("got %+v", d)
		}
		for name, n := range owned(d) {
			if n < 2 || n > 3 {
				t.Errorf("%s owns %d shards of 8", name, n)
			}
		}
		clean(t, c, c.Nodes...)
		for _, n := range c.Nodes {
			of := n.Dataset("g")
			for _, s := range of.Shards {
				_, err := os.Stat(filepath.Join(of.Folder, graph.ShardFile(s.ID)))
				if holds := s.Owner == n.Name || slices.Contains(s.Replicas, n.Name); !filepath.IsAbs(of.Folder) || holds != (err == nil) {
					t.Errorf("shard %d in the folder %q of %s: %v", s.ID, of.Folder, n.Name, err)
				}
			}
		}
		if here := importer.Dataset("g").Folder; d.Folder != here {
			t.Errorf("the import names the folder %q, and it is %q", d.Folder, here)
		}
		for _, m := range c.Leader().Members() {
			if m.Shards != owned(d)[m.Name] {
				t.Errorf("%s is said to own %d shards", m.Name, m.Shards)
			}
		}
		for _, n := range c.Nodes {
			if p := n.Status().Problems; len(p) > 0 {
				t.Errorf("%s: %q", n.Name, p)
			}
		}
		if err := c.Nodes[0].API().RemoveDataset(t.Context(), "g", false); err != nil {
			t.Fatal(err)
		}
		if len(c.Nodes[0].Datasets()) > 0 {
			t.Error("the node that removed it still shows it")
		}
		clean(t, c, c.Nodes...)
		if err := c.Nodes[0].API().RemoveDataset(t.Context(), "g", false); status404(err) != 404 {
			t.Errorf("removed twice: %v", err)
		}
	})
}

func status404(err error) int {
	e, _ := errors.AsType[*api.Error](err)
	if e == nil {
		return 0
	}
	return e.Status
}

// A node joins: as few shards move as can. It leaves: it gives them away first.
func TestShardsFollowTheMesh(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		before := owned(generated(t, c.Nodes[0], tiny("g", 1)))
		joined := c.Grow(1)[0]
		c.Wait("the new node has its share", time.Minute, func() bool { return owned(joined.Dataset("g"))[joined.Name] == 2 })
		c.Wait("all copies are there", time.Minute, func() bool { return copied(joined.Dataset("g"), 1, c.Nodes...) })
		moved := 0
		for name, n := range owned(joined.Dataset("g")) {
			moved += max(0, n-before[name])
		}
		if moved != 2 {
			t.Errorf("%d shards moved for a share of 2", moved)
		}
		clean(t, c, c.Nodes...)
		// The owners' whole copies are with the node that leaves until others have them.
		for _, s := range joined.Dataset("g").Shards {
			if s.Owner == "" {
				t.Errorf("shard %d has no owner", s.ID)
			}
		}
		stray := filepath.Join(joined.Options.DataDir, "datasets", "stray")
		if err := os.WriteFile(stray, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := joined.API().Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Wait("it has gone", time.Minute, func() bool {
			for _, n := range c.Nodes[:3] {
				for _, s := range n.Dataset("g").Shards {
					if s.Owner == "" {
						t.Fatalf("shard %d has no owner", s.ID)
					}
				}
			}
			return len(c.Nodes[0].Plan().Members) == 3
		})
		if d := c.Nodes[0].Dataset("g"); !copied(d, 1, c.Nodes[:3]...) {
			t.Errorf("it left before all copies were with others: %+v", d.Shards)
		}
		if err := joined.Exited(time.Minute); !errors.Is(err, node.ErrLeft) {
			t.Errorf("ended with %v", err)
		}
		if got := joined.Files(); len(got) > 0 {
			t.Errorf("it keeps %v", got)
		}
		clean(t, c, c.Nodes[:3]...)
	})
}

// An owner dies: its shards are owned by holders in seconds, copied in a minute or
// so, and when it is back it has a share again.
func TestOwnerDies(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		generated(t, c.Nodes[0], tiny("g", 1))
		dead := c.Others(c.Leader())[0]
		dead.Kill()
		rest := c.Others(dead)
		c.Wait("its failure is known", time.Minute, func() bool { return status(c.Leader(), dead.Name) == "failed" })
		took := c.Wait("the others own all", time.Minute, func() bool {
			n := owned(rest[0].Dataset("g"))
			return len(n) == 2 && n[dead.Name] == 0
		})
		if took < 2*time.Second || took > 10*time.Second {
			t.Errorf("promoted %s after the failure was known", took)
		}
		problems := strings.Join(rest[0].Status().Problems, "\n")
		if !strings.Contains(problems, "dataset g") {
			t.Errorf("nobody says that copies are missing: %s", problems)
		}
		took = c.Wait("all is copied again", 3*time.Minute, func() bool { return copied(rest[0].Dataset("g"), 1, rest...) })
		if took < 30*time.Second {
			t.Errorf("copied after %s, as if a restart took longer", took)
		}
		clean(t, c, rest...)
		dead.Restart()
		dead.WaitReady()
		c.Wait("it has its share", 2*time.Minute, func() bool { return owned(dead.Dataset("g"))[dead.Name] >= 2 })
		c.Wait("all is copied", time.Minute, func() bool { return copied(dead.Dataset("g"), 1, c.Nodes...) })
		clean(t, c, c.Nodes...)
	})
}

// A restart, of one or of all, copies nothing.
func TestRestartKeepsShards(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		generated(t, c.Nodes[0], tiny("g", 1))
		clean(t, c, c.Nodes...)
		written := func() time.Time {
			var last time.Time
			for _, n := range c.Nodes {
				for _, f := range n.Files() {
					if info, err := os.Stat(filepath.Join(n.Options.DataDir, "datasets", f)); err == nil && info.ModTime().After(last) {
						last = info.ModTime()
					}
				}
			}
			return last
		}
		before := written()
		one := c.Others(c.Leader())[0]
		one.Kill()
		<-time.After(20 * time.Second)
		one.Restart()
		one.WaitReady()
		// One that has just started may still read of how it was before.
		c.Wait("it has its share again", time.Minute, func() bool { return owned(c.Leader().Dataset("g"))[one.Name] >= 2 })
		c.Wait("all is well", time.Minute, func() bool { return len(c.Leader().Status().Problems) == 0 })
		c.WaitEqual(time.Minute)
		owners := ownersOf(one.Dataset("g"))
		for _, n := range c.Nodes {
			n.Kill()
		}
		for _, n := range c.Nodes {
			n.Restart()
		}
		for _, n := range c.Nodes {
			n.WaitReady()
		}
		<-time.After(30 * time.Second)
		c.Wait("all is well", time.Minute, func() bool { return len(c.Leader().Status().Problems) == 0 })
		clean(t, c, c.Nodes...)
		if after := written(); !after.Equal(before) {
			t.Error("files were written")
		}
		// The first leader knew of nobody, and yet took nothing from anybody.
		if now := ownersOf(one.Dataset("g")); !slices.Equal(now, owners) {
			t.Errorf("owners were %v and are %v", owners, now)
		}
	})
}

func TestTwoImportsOfOneName(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		first, second := c.Nodes[1], c.Nodes[2]
		reserved, release := make(chan struct{}), make(chan struct{})
		done := make(chan error, 1)
		go func() {
			_, err := first.API().GenerateDataset(context.Background(), tiny("g", 0), holdAt("", reserved, release))
			done <- err
		}()
		<-reserved
		c.Wait("the other knows of it", time.Minute, func() bool { return len(second.Datasets()) == 1 })
		_, err := second.API().GenerateDataset(t.Context(), tiny("g", 0), quiet)
		if status404(err) != 409 || !strings.Contains(err.Error(), first.Name) {
			t.Errorf("the second import ended with %v", err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.Wait("the other has read that it is done", time.Minute, func() bool { return second.Dataset("g").Stage == "ready" })
		_, err = second.API().GenerateDataset(t.Context(), tiny("g", 0), quiet)
		if status404(err) != 409 || !strings.Contains(err.Error(), "already") {
			t.Errorf("the third import ended with %v", err)
		}
		clean(t, c, c.Nodes...)
	})
}

// holdAt stops an import once it comes to a stage ("": the first of building) and
// closes reached, until release is closed.
func holdAt(stage string, reached chan<- struct{}, release <-chan struct{}) func(api.DatasetEvent) {
	forecast, held := false, false
	return func(e api.DatasetEvent) {
		forecast = forecast || e.Forecast != nil
		if !held && forecast && e.Progress != nil && (stage == "" || e.Progress.Stage == stage) {
			held = true
			close(reached)
			<-release
		}
	}
}
