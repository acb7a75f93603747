package node_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// ringFile writes an archive with a graph of so many vertices, whose class is in the first of
// their features. by are the steps of its edges around the ring.
func ringFile(t *testing.T, vertices, features int, by ...int64) string {
	t.Helper()
	n := int64(vertices)
	var sources, targets []int64
	var x []float32
	masks := make([][]int64, 3)
	labels := make([]int64, 0, n)
	for v := range n {
		for _, step := range by {
			sources, targets = append(sources, (v+step*2)%n), append(targets, v) // of the same class
		}
		labels = append(labels, v%2)
		x = append(x, float32(v%2), float32(v%7)/7, 1)
		x = append(x, make([]float32, features-3)...)
		for part := range masks {
			masks[part] = append(masks[part], map[bool]int64{true: 1}[v/2%3 == int64(part)])
		}
	}
	shape := fmt.Sprintf("(%d,)", n)
	return readtest.Arrays{
		"edge_index": readtest.Of(fmt.Sprintf("(2, %d)", len(sources)), append(sources, targets...)),
		"x":          readtest.Of(fmt.Sprintf("(%d, %d)", n, features), x), "y": readtest.Of(shape, labels),
		"train_mask": readtest.Of(shape, masks[0]), "val_mask": readtest.Of(shape, masks[1]), "test_mask": readtest.Of(shape, masks[2]),
	}.File(t, zip.Store)
}

func importRing(t *testing.T, on *nodetest.Instance, name, file string) {
	t.Helper()
	_, err := on.API().ImportDataset(t.Context(), api.ImportRequest{Name: name, Source: file, DatasetOptions: api.DatasetOptions{Shards: 4}}, func(api.DatasetEvent) {})
	if err != nil {
		t.Fatal(err)
	}
}

// A model is used on another graph of the mesh, and evaluated there and on its own.
func TestModelsOnOtherGraphs(t *testing.T) {
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		on, ctx := c.Nodes[0], t.Context()
		importRing(t, on, "july", ringFile(t, 60, 3, 1, 4))
		importRing(t, on, "august", ringFile(t, 90, 3, 2, 3, 5))
		importRing(t, on, "wide", ringFile(t, 60, 5, 1, 4))
		id, err := on.API().StartJob(ctx, api.TrainRequest{Dataset: "july", Model: "sage", Epochs: new(30), Rate: new(0.05)})
		if err != nil {
			t.Fatal(err)
		}
		j := waitState(c, on, id, "done")
		for _, asked := range c.Nodes {
			own, err := asked.API().Evaluate(ctx, id, api.EvaluateRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if own.Dataset != "july" || own.Task != "class" || own.Epoch != j.Best.Epoch || *own.ValAccuracy != *j.Best.ValAccuracy || *own.TestAccuracy != *j.Best.TestAccuracy ||
				own.Metrics.Test["accuracy"] != *own.TestAccuracy || own.Counts.Train != 20 {
				t.Errorf("%+v, and in training %+v", own, j.Best)
			}
			other, err := asked.API().Evaluate(ctx, id, api.EvaluateRequest{Dataset: "august"})
			if err != nil || other.Dataset != "august" || other.Counts.Test != 30 || *other.TestAccuracy < 0.95 {
				t.Errorf("%+v, %v", other, err)
			}
			var whole, part bytes.Buffer
			err = asked.API().Predict(ctx, id, api.PredictRequest{Format: ".npy", Dataset: "august"}, &whole)
			if err != nil || !strings.Contains(whole.String()[:128], "(90, 2)") {
				t.Errorf("%d bytes, %v", whole.Len(), err)
			}
			if err := asked.API().Predict(ctx, id, api.PredictRequest{Format: ".npy"}, &part); err != nil || !strings.Contains(part.String()[:128], "(60, 2)") {
				t.Errorf("%d bytes, %v", part.Len(), err)
			}
			err = asked.API().Predict(ctx, id, api.PredictRequest{Format: ".npy", Dataset: "wide"}, &whole)
			refused(t, "wide", err, "the model reads 3 columns of features, and the dataset has 5")
			err = asked.API().Predict(ctx, id, api.PredictRequest{Format: ".npy", Dataset: "may"}, &whole)
			refused(t, "none", err, "there is no dataset may")
			_, err = asked.API().Evaluate(ctx, id, api.EvaluateRequest{Split: new(7)})
			refused(t, "split", err, "--split is 7, and the dataset has the splits 0 to 0")
		}
	})
}

// A job starts from the model of another, which other nodes fetch: on one, two and three nodes it
// comes to the same bits. Once it has begun it does without that one.
func TestJobsStartFromModels(t *testing.T) {
	hashes := map[string]bool{}
	for nodes := 1; nodes <= 3; nodes++ {
		nodetest.Virtual(t, nodes, func(t *testing.T, c *nodetest.Cluster) {
			on, ctx := c.Nodes[0], t.Context()
			importRing(t, on, "july", ringFile(t, 60, 3, 1, 4))
			importRing(t, on, "august", ringFile(t, 90, 3, 2, 3, 5))
			first, err := on.API().StartJob(ctx, api.TrainRequest{Dataset: "july", Model: "sage", Hidden: new(7), Strategy: "single", Epochs: new(5), Deterministic: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = on.API().StartJob(ctx, api.TrainRequest{Dataset: "august", From: first})
			if err == nil || !strings.Contains(err.Error(), "so its model may still change") {
				t.Errorf("of a job that has not ended: %v", err)
			}
			waitState(c, on, first, "done")
			for want, r := range map[string]api.TrainRequest{
				"the model of job " + first + " has 7 for hidden":    {Dataset: "august", From: first, Hidden: new(8)},
				"has sage for model":                                 {Dataset: "august", From: first, Model: "gcn"},
				"has learned the task class, and this job's is link": {Dataset: "august", From: first, Task: "link"},
				"there is no job j77":                                {Dataset: "august", From: "j77"},
			} {
				_, err := on.API().StartJob(ctx, r)
				refused(t, want, err, strings.TrimPrefix(want, "the model of job "+first+" "))
			}
			strategy := "leap"
			if nodes == 1 {
				strategy = "single"
			}
			id, err := c.Nodes[nodes-1].API().StartJob(ctx, api.TrainRequest{Dataset: "august", From: first, Strategy: strategy, Batch: new(8), Epochs: new(6), Deterministic: true, Rate: new(0.02)})
			if err != nil {
				t.Fatal(err)
			}
			if err := on.API().RemoveJob(ctx, first); err != nil && !strings.Contains(err.Error(), "begins with the model of job "+first) {
				t.Error(err)
			}
			j := waitState(c, on, id, "done")
			if j.From != first || j.Model != "sage" || len(j.Nodes) != nodes || !strings.Contains(string(j.Recipe), `"hidden":7`) {
				t.Errorf("%+v", j)
			}
			hashes[j.History[len(j.History)-1].Weights] = true
			if err := on.API().RemoveJob(ctx, first); err != nil && !strings.Contains(err.Error(), "there is no job") {
				t.Error(err)
			}
			if _, err := on.API().Evaluate(ctx, id, api.EvaluateRequest{}); err != nil {
				t.Error(err)
			}
			left, err := filepath.Glob(filepath.Join(on.Options.DataDir, "jobs", "*borrowed*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
	if len(hashes) != 1 {
		t.Errorf("the weights depend on the number of nodes: %v", hashes)
	}
}

// A job that has begun with another's model outlives that job: it goes on without a node that
// dies, and comes to the same bits as if nothing had happened.
func TestJobsOutliveTheModelsThatTheyStartFrom(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		on, ctx := c.Nodes[0], t.Context()
		importRing(t, on, "july", ringFile(t, 60, 3, 1, 4))
		first, err := on.API().StartJob(ctx, api.TrainRequest{Dataset: "july", Model: "sage", Hidden: new(5), Strategy: "leap", Epochs: new(3)})
		if err != nil {
			t.Fatal(err)
		}
		waitState(c, on, first, "done")
		r := api.TrainRequest{Dataset: "july", From: first, Strategy: "leap", Batch: new(10), Epochs: new(12), EvalEvery: new(6), Deterministic: true}
		start := func() string {
			id, err := on.API().StartJob(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		undisturbed := start()
		whole := waitState(c, on, undisturbed, "done")
		for _, n := range c.Nodes { // so that there is time for what follows
			c.Network.Slow(n.IP(), 10*time.Millisecond)
		}
		id := start()
		err = on.API().RemoveJob(ctx, first)
		refused(t, "too early", err, "begins with the model of job "+first+": remove this one when that has done an epoch")
		err = on.API().ResumeJob(ctx, first, api.ResumeRequest{})
		refused(t, "resume", err, "begins with the model of job "+first+" as it is")
		under(c, on, id, 2)
		if err := on.API().RemoveJob(ctx, first); err != nil {
			t.Fatal(err)
		}
		dead := c.Others(c.Leader())[0]
		if dead == on {
			dead = c.Others(c.Leader())[1]
		}
		dead.Kill()
		j := waitState(c, on, id, "done")
		if got, want := j.History[len(j.History)-1].Weights, whole.History[len(whole.History)-1].Weights; got != want {
			t.Errorf("it came to %s, and undisturbed to %s", got, want)
		}
		if len(ages(j)) < 2 {
			t.Error("the node died too late")
		}
	})
}
