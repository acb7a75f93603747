package node_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// What a given split of a graph's edges teaches is the same on any number of nodes, as are scores
// against the pairs that come with it; known edges of any part are no partners, while those pairs
// may be.
func TestAGivenSplitOfEdgesIsLearnt(t *testing.T) {
	folder := enginetest.DividedFolder(t, true)
	var want []string
	for _, nodes := range []int{1, 3} {
		nodetest.Virtual(t, nodes, func(t *testing.T, c *nodetest.Cluster) {
			n := c.Nodes[0]
			var notes []string
			r := api.ImportRequest{Name: "split", Source: folder, DatasetOptions: api.DatasetOptions{Shards: 3, Undirected: true}}
			d, err := n.API().ImportDataset(t.Context(), r, func(e api.DatasetEvent) { notes = append(notes, e.Note) })
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(notes, " "); !strings.Contains(text, "The split of the edges is given") || !strings.Contains(text, "Evaluations compare these with") || len(d.Relations) != 2 {
				t.Errorf("%s, relations %+v", text, d.Relations)
			}
			epochs, batch := 3, 40
			start := func(set ...api.Setting) (string, error) {
				return n.API().StartJob(t.Context(), api.TrainRequest{Dataset: "split", Task: "link", Model: "sage", Epochs: &epochs, Batch: &batch, Deterministic: true, Set: set})
			}
			_, err = start(api.Setting{Key: "train.metric", Value: "hits_at_50"})
			refused(t, "another rank", err, "it is one of roc_auc, average_precision, mrr, hits_at_1, hits_at_3, hits_at_10")
			_, err = n.API().StartJob(t.Context(), api.TrainRequest{Dataset: "split", Task: "class"})
			refused(t, "another task", err, "give --task link")
			id, err := start(api.Setting{Key: "link.hits", Value: "5,20,50"}, api.Setting{Key: "train.metric", Value: "hits_at_20"})
			if err != nil {
				t.Fatal(err)
			}
			j := waitState(c, n, id, "done")
			last := j.History[len(j.History)-1]
			if m := last.Metrics; last.Metric != "hits_at_20" || m == nil || len(m.Test) != 6 || m.Test["hits_at_5"] > m.Test["hits_at_50"] || len(m.Train) != 2 {
				t.Fatalf("%+v", last)
			}
			var out bytes.Buffer
			if err := n.API().Predict(t.Context(), id, api.PredictRequest{Format: ".csv", PairOptions: api.PairOptions{Top: 50}}, &out); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
			for _, line := range lines {
				var a, b uint32
				var score float64
				if _, err := fmt.Sscanf(line, "%d,%d,%g", &a, &b, &score); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if _, is := enginetest.DividedPart(a, b); is {
					t.Fatalf("%d is a partner of %d, with which it has an edge", b, a)
				}
			}
			// Of 60 vertices, each has edges with nine.
			if len(lines) != 50*60 {
				t.Errorf("%d partners", len(lines))
			}
			got := []string{fmt.Sprint(j.Best.Metrics), fmt.Sprint(last.Metrics), out.String()}
			if want == nil {
				want = got
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%d nodes learn otherwise than one:\n%v\nand\n%v", nodes, got, want)
			}
		})
	}
}

// Vertices without features have rows that are learnt, also where the edges have a given split. A
// part of it may be missing.
func TestAGivenSplitWithoutFeatures(t *testing.T) {
	folder := enginetest.DividedFolder(t, false)
	for _, name := range []string{"nodes.csv", "edges_valid.csv"} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		n := c.Nodes[0]
		r := api.ImportRequest{Name: "bare", Source: folder, DatasetOptions: api.DatasetOptions{Shards: 4, Undirected: true}}
		if _, err := n.API().ImportDataset(t.Context(), r, func(api.DatasetEvent) {}); err != nil {
			t.Fatal(err)
		}
		epochs, batch := 2, 40
		ask := api.TrainRequest{Dataset: "bare", Task: "link", Model: "sage", Epochs: &epochs, Batch: &batch, Deterministic: true}
		id, err := n.API().StartJob(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		j := waitState(c, n, id, "done")
		if last := j.History[len(j.History)-1]; last.Metrics == nil || len(last.Metrics.Test) != 6 || len(last.Metrics.Val) > 0 {
			t.Errorf("%+v", last)
		}
		ask.Set = []api.Setting{{Key: "link.ranks", Value: "given"}}
		_, err = n.API().StartJob(t.Context(), ask)
		refused(t, "no pairs to compare with", err, "this one has none: give all, 0, or a number of vertices")
	})
}
