package node_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Scores of pairs and best partners are the same bytes on any number of nodes, and on each of
// them, also after a node died that trained the model or holds shards.
func TestPairsAreTheSameOnAnyNodes(t *testing.T) {
	pairs := filepath.Join(t.TempDir(), "pairs.csv")
	if err := os.WriteFile(pairs, []byte("3,4\n59,0\n3,4\n7,7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asks := []api.PredictRequest{
		{Format: ".csv", PairOptions: api.PairOptions{Pairs: pairs}},
		{Format: ".json", PairOptions: api.PairOptions{Task: "link", Top: 4}},
		{Format: ".parquet", PairOptions: api.PairOptions{Top: 7, Neighbours: true}},
	}
	answers := func(t *testing.T, n *nodetest.Instance, id string) (all []string) {
		t.Helper()
		for _, r := range asks {
			var out bytes.Buffer
			if err := n.API().Predict(t.Context(), id, r, &out); err != nil {
				t.Fatalf("on %s: %v", n.Name, err)
			}
			all = append(all, out.String())
		}
		return all
	}
	wants := map[string][]string{}
	for _, run := range []struct {
		decoder string
		nodes   int
	}{{"dot", 1}, {"dot", 2}, {"dot", 3}, {"mlp", 1}, {"mlp", 2}} {
		nodes := run.nodes
		nodetest.Virtual(t, nodes, func(t *testing.T, c *nodetest.Cluster) {
			on := c.Nodes[0]
			file := targetsFile(t, readtest.Of("(60, 2)", make([]int8, 120)))
			if _, err := on.API().ImportDataset(t.Context(), api.ImportRequest{Name: "g", Source: file, DatasetOptions: api.DatasetOptions{Shards: 6}}, func(api.DatasetEvent) {}); err != nil {
				t.Fatal(err)
			}
			epochs, batch := 3, 40
			r := api.TrainRequest{Dataset: "g", Task: "link", EdgeSplit: []float64{0.6, 0.2, 0.2}, Epochs: &epochs, Batch: &batch, Deterministic: true, Set: []api.Setting{{Key: "link.decoder", Value: run.decoder}}}
			id, err := on.API().StartJob(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if j := waitState(c, on, id, "done"); len(j.Nodes) != nodes {
				t.Errorf("it ran on %v", j.Nodes)
			}
			if nodes == 1 {
				wants[run.decoder] = answers(t, on, id)
				checkAnswers(t, wants[run.decoder])
			}
			want := wants[run.decoder]
			for _, n := range c.Nodes {
				waitState(c, n, id, "done")
				if got := answers(t, n, id); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s of %d nodes answers otherwise than one node", n.Name, nodes)
				}
			}
			if nodes < 3 {
				return
			}
			c.Wait("shards have copies", 5*time.Minute, func() bool { return copied(on.Dataset("g"), 1, c.Nodes...) })
			lost := c.Others(on)[0]
			c.Isolate(lost)
			failed(c, lost)
			if got := answers(t, on, id); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("without %s, %s answers otherwise", lost.Name, on.Name)
			}
		})
	}
}

// checkAnswers checks the form of what is asked in TestPairsAreTheSameOnAnyNodes.
func checkAnswers(t *testing.T, answers []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(answers[0]), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[1], "3,4,") || lines[3] != lines[1] || !strings.HasPrefix(lines[4], "7,7,") {
		t.Errorf("%q", lines)
	}
	var best struct {
		Pairs []struct{ Source, Target int }
	}
	if err := json.Unmarshal([]byte(answers[1]), &best); err != nil || len(best.Pairs) != 4*60 || best.Pairs[4].Source != 1 {
		t.Errorf("%d pairs, %v", len(best.Pairs), err)
	}
}

// Pairs are scored by models of links only, and files are those of the node that is asked.
func TestPairsOfJobsThatLearnNone(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		n := c.Nodes[0]
		generated(t, n, tiny("g", 0))
		epochs := 1
		id, err := n.API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Epochs: &epochs})
		if err != nil {
			t.Fatal(err)
		}
		waitState(c, n, id, "done")
		for want, r := range map[string]api.PredictRequest{
			"learns the task class, and pairs are scored by a model of task link: train one with `hopmesh train start --task link`": {Format: ".csv", PairOptions: api.PairOptions{Top: 2}},
			"learns the task class, and --task is link: leave it out":                                                               {Format: ".npy", PairOptions: api.PairOptions{Task: "link"}},
		} {
			refused(t, "no links", n.API().Predict(t.Context(), id, r, new(bytes.Buffer)), want)
		}
		id, err = n.API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Task: "link", Epochs: &epochs, Batch: new(50)})
		if err != nil {
			t.Fatal(err)
		}
		waitState(c, n, id, "done")
		refused(t, "no file", n.API().Predict(t.Context(), id, api.PredictRequest{Format: ".csv", PairOptions: api.PairOptions{Pairs: "/nonexistent/pairs.csv"}}, new(bytes.Buffer)), "there is no file or folder /nonexistent/pairs.csv")
	})
}
