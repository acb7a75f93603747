package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// A jobKind is what a job learns, beside classes of a graph without types.
type jobKind struct {
	name    string
	dataset string // of kindsOfDatasets
	ask     api.TrainRequest
	quick   bool     // trained by leap without build tag long
	batch   int      // about a third of what is learnt, so that an epoch has several steps
	by      []string // the strategies beside leap that come to the same weights on any nodes
}

func jobKinds() []jobKind {
	relation := []api.Setting{{Key: "link.relation", Value: "writes"}}
	most := []string{"centric", "grappa"}
	return []jobKind{
		{"links", "roads", api.TrainRequest{Task: "link", Model: "sage"}, true, 280, most},
		{"links and features of edges", "roads", api.TrainRequest{Task: "link", Model: "mpnn"}, false, 280, most},
		{"links of a relation", "library", api.TrainRequest{Task: "link", Model: "rgcn", Set: relation}, false, 140, most},
		{"triples", "facts", api.TrainRequest{Task: "link", Model: "rgcn", Loss: "sampled_softmax"}, false, 250, most},
		{"relations, rgcn", "library", api.TrainRequest{Model: "rgcn"}, false, 18, most},
		{"relations, hgt", "library", api.TrainRequest{Model: "hgt"}, true, 18, most},
		{"relations, hetero:sage", "library", api.TrainRequest{Model: "hetero:sage", Set: []api.Setting{{Key: "hetero.across", Value: "attention"}}}, false, 18, most},
		{"features of edges", "roads", api.TrainRequest{Model: "mpnn"}, true, 30, most},
		{"several labels", "labels", api.TrainRequest{Model: "sage"}, true, 30, append([]string{"p3"}, most...)},
		{"numbers", "numbers", api.TrainRequest{Model: "gcn", Loss: "huber"}, false, 30, append([]string{"p3"}, most...)},
	}
}

// tables writes files of a folder, and returns its path.
func tables(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// towns returns a folder with a graph whose vertices have targets of all tasks, and whose edges have
// features.
func towns(t *testing.T) string {
	t.Helper()
	const n = 240
	edges, nodes := new(strings.Builder), new(strings.Builder)
	fmt.Fprintln(edges, "src,dst,length,toll")
	fmt.Fprintln(nodes, "id,group,port,market,height,income,f0,f1,split")
	for v := range n {
		for _, by := range []int{1, 7, 11, 50} {
			fmt.Fprintf(edges, "%d,%d,%g,%g\n", (v+by)%n, v, float64(by)/50, float64(v%4)/4)
		}
		fmt.Fprintf(nodes, "%d,%d,%d,%d,%g,%g,%d,%d,%s\n", v, v/3%4, v%5%2, v%4%2, float64(v%7)/7, float64(v%11)/11, v%5, v%2, []string{"train", "val", "test"}[v%3])
	}
	return tables(t, map[string]string{"edges.csv": edges.String(), "nodes.csv": nodes.String()})
}

// library returns a folder with a graph of authors, who write and edit papers.
func library(t *testing.T) string {
	t.Helper()
	const papers, authors = 150, 40
	paper, author, writes, edits := new(strings.Builder), new(strings.Builder), new(strings.Builder), new(strings.Builder)
	fmt.Fprintln(paper, "id,label,pages,split")
	fmt.Fprintln(author, "id,age,prizes")
	fmt.Fprintln(writes, "src,dst")
	fmt.Fprintln(edits, "src,dst")
	for p := range papers {
		fmt.Fprintf(paper, "%d,%d,%d,%s\n", p, p/3%4, p%5, []string{"train", "val", "test"}[p%3])
		for k := range 3 {
			fmt.Fprintf(writes, "%d,%d\n", (7*p+11*k)%authors, p)
			fmt.Fprintf(edits, "%d,%d\n", (3*p+5*k+1)%authors, p)
		}
	}
	for a := range authors {
		fmt.Fprintf(author, "%d,%d,%d\n", a, a%6, a%2)
	}
	return tables(t, map[string]string{
		"nodes/paper.csv": paper.String(), "nodes/author.csv": author.String(),
		"edges/author-writes-paper.csv": writes.String(), "edges/author-edits-paper.csv": edits.String(),
	})
}

// kindsOfDatasets imports the datasets of jobKinds, a copy of each shard on every node.
func kindsOfDatasets(t *testing.T, on *nodetest.Instance) {
	t.Helper()
	copies, towns := 2, towns(t)
	for _, r := range []api.ImportRequest{
		{Name: "roads", Source: towns, LabelColumns: []string{"group"}, EdgeFeatures: []string{"length", "toll"}},
		{Name: "labels", Source: towns, LabelColumns: []string{"port", "market"}},
		{Name: "numbers", Source: towns, LabelColumns: []string{"height", "income"}},
		{Name: "library", Source: library(t), DatasetOptions: api.DatasetOptions{Undirected: true}},
		{Name: "facts", Source: enginetest.TripleFolder(t)},
	} {
		r.Shards, r.Replicas, r.Partitioner = 6, &copies, "random"
		if _, err := on.API().ImportDataset(t.Context(), r, quiet); err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
	}
}

// kindsOutliveANode trains what jobs learn by the strategies that by returns of it, undisturbed and
// with a node that is lost within an epoch: the others go on, and come to the same weights.
func kindsOutliveANode(t *testing.T, by func(jobKind) []string) {
	t.Helper()
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		kindsOfDatasets(t, c.Nodes[0])
		lost := 0
		for _, k := range jobKinds() {
			for _, strategy := range by(k) {
				k.outlivesANode(t, c, strategy, c.Nodes[lost%3])
				lost++
			}
		}
	})
}

func (k *jobKind) outlivesANode(t *testing.T, c *nodetest.Cluster, strategy string, victim *nodetest.Instance) {
	t.Helper()
	name, on := k.name+" by "+strategy, c.Others(victim)[0]
	const epochs = 12
	start := func() string {
		c.WaitVoters(3)
		c.Wait("all are there, hold and own shards", 2*time.Minute, func() bool {
			for _, n := range c.Nodes { // for some seconds a node that was lost owns what it did
				if all := n.Members(); len(all) < 3 || slices.ContainsFunc(all, func(m api.Member) bool { return m.Status != "alive" }) {
					return false
				}
			}
			d := on.Dataset(k.dataset)
			return copied(d, 2, c.Nodes...) && len(owned(d)) == 3
		})
		ask, hidden, total := k.ask, 8, epochs
		ask.Dataset, ask.Strategy, ask.Deterministic = k.dataset, strategy, true
		ask.Hidden, ask.Epochs, ask.Batch, ask.Fanout = &hidden, &total, &k.batch, []int{4, 4}
		if strategy == "grappa" { // as many groups whoever is there
			ask.Set = append(slices.Clone(ask.Set), api.Setting{Key: "grappa.groups", Value: "3"}, api.Setting{Key: "grappa.period", Value: "3"})
		}
		id, err := on.API().StartJob(t.Context(), ask)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return id
	}
	calm := start()
	want := waitState(c, on, calm, "done")
	if len(want.Nodes) != 3 || want.Strategy != strategy || len(want.History) != epochs {
		t.Fatalf("%s: %s trains %d epochs on %v", name, want.Strategy, len(want.History), want.Nodes)
	}
	for _, n := range c.Nodes { // so that there is time for what follows
		c.Network.Slow(n.IP(), 10*time.Millisecond)
	}
	id := start()
	c.Wait(name+" is within an epoch", time.Minute, func() bool {
		j := jobOn(on, id)
		if j.State == "done" || j.State == "failed" {
			t.Fatalf("%s is %s: %s", name, j.State, j.Error)
		}
		return len(j.History) >= 3 && j.Epoch > len(j.History) && j.Step > 0 && j.Step < j.Steps
	})
	victim.Kill()
	c.Wait(name+" goes on without "+victim.Name, time.Minute, func() bool {
		j := jobOn(on, id)
		return j.State == "done" || len(j.Nodes) == 2 && !slices.Contains(j.Nodes, victim.Name)
	})
	j := waitState(c, on, id, "done")
	if len(j.History) != epochs || len(ages(j)) < 2 {
		t.Fatalf("%s: %d epochs in generations %v", name, len(j.History), ages(j))
	}
	for i, e := range j.History {
		if w := want.History[i]; e.Weights != w.Weights || e.Loss != w.Loss || fmt.Sprint(e.Metrics) != fmt.Sprint(w.Metrics) {
			t.Fatalf("%s: %s was lost: epoch %d is %+v, and undisturbed it is %+v", name, victim.Name, i+1, e, w)
		}
	}
	for _, n := range c.Nodes {
		c.Network.Slow(n.IP(), 0)
	}
	victim.Restart()
	victim.WaitReady()
	for _, done := range []string{calm, id} { // a mesh keeps so many jobs only
		if err := on.API().RemoveJob(t.Context(), done); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a job learns, a node that is lost within an epoch changes nothing of it.
func TestJobsOfEachKindOutliveANode(t *testing.T) {
	kindsOutliveANode(t, func(k jobKind) []string {
		if k.quick {
			return []string{"leap"}
		}
		return nil
	})
}
