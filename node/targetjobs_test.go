package node_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// targetsFile writes an archive whose vertices have two columns of targets.
func targetsFile(t *testing.T, y readtest.NPY) string {
	t.Helper()
	const n = 60
	var sources, targets, marks []int64
	var x []float32
	for v := range int64(n) {
		for _, by := range []int64{1, 7, 11} {
			sources, targets = append(sources, (v+by)%n), append(targets, v)
		}
		x = append(x, float32(v%5), float32(v%3), 1)
	}
	mask := func(part int) readtest.NPY {
		marks = marks[:0]
		for v := range n {
			of := int64(0)
			if v%3 == part {
				of = 1
			}
			marks = append(marks, of)
		}
		return readtest.Of("(60,)", append([]int64(nil), marks...))
	}
	return readtest.Arrays{
		"edge_index": readtest.Of(fmt.Sprintf("(2, %d)", len(sources)), append(sources, targets...)), "x": readtest.Of("(60, 3)", x), "y": y,
		"train_mask": mask(0), "val_mask": mask(1), "test_mask": mask(2),
	}.File(t, zip.Store)
}

// Targets with columns come from a file, are learnt by several nodes, and are shown, predicted and
// exported as what they are.
func TestJobsOfTargets(t *testing.T) {
	var labels []int8
	var values []float32
	for v := range 120 {
		labels = append(labels, int8(v%5%2))
		values = append(values, float32(v%7)/2)
	}
	labels[3], values[4] = -1, float32(math.NaN())
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		on := c.Nodes[0]
		for _, k := range []struct {
			task, metric, column string
			all                  []string
			y                    readtest.NPY
		}{
			{"multilabel", "micro_f1", "label_1", []string{"average_precision", "macro_f1", "micro_f1", "roc_auc"}, readtest.Of("(60, 2)", labels)},
			{"regression", "rmse", "value_1", []string{"mae", "r2", "rmse"}, readtest.Of("(60, 2)", values)},
		} {
			d, err := on.API().ImportDataset(t.Context(), api.ImportRequest{Name: k.task, Source: targetsFile(t, k.y), DatasetOptions: api.DatasetOptions{Shards: 4}}, func(api.DatasetEvent) {})
			if err != nil || d.Task != k.task || d.Targets != 2 || d.Classes != 0 {
				t.Fatalf("%v: %+v", err, d)
			}
			epochs := 3
			_, err = on.API().StartJob(t.Context(), api.TrainRequest{Dataset: k.task, Strategy: "pipe"})
			refused(t, "pipe", err, "--strategy pipe learns one class of each vertex, and the task is "+k.task)
			_, err = on.API().StartJob(t.Context(), api.TrainRequest{Dataset: k.task, Task: "class"})
			refused(t, "class", err, "--task is class, and the dataset has targets of "+k.task+": leave it out, or import the dataset again with --task class")
			_, err = on.API().StartJob(t.Context(), api.TrainRequest{Dataset: k.task, Loss: "softmax"})
			refused(t, "softmax", err, `--set train.loss is "softmax": it is one of`)
			id, err := on.API().StartJob(t.Context(), api.TrainRequest{Dataset: k.task, Model: "sage", Strategy: "leap", Task: k.task, Epochs: &epochs})
			if err != nil {
				t.Fatal(err)
			}
			for _, strategy := range []string{"", "local"} {
				other, err := on.API().StartJob(t.Context(), api.TrainRequest{Dataset: k.task, Strategy: strategy, Epochs: &epochs})
				if err != nil {
					t.Fatal(err)
				}
				if j := waitState(c, on, other, "done"); j.Best == nil || j.Best.Metric != k.metric {
					t.Errorf("%s: %+v", strategy, j.Best)
				}
			}
			j := waitState(c, on, id, "done")
			last := j.History[len(j.History)-1]
			if j.Task != k.task || len(j.Nodes) != 2 || last.ValAccuracy != nil || last.Metric != k.metric || last.Metrics == nil || j.Best == nil || j.Best.ValAccuracy != nil || j.Best.Metric != k.metric {
				t.Fatalf("%+v, best %+v, last %+v", j, j.Best, last)
			}
			for _, name := range k.all {
				if _, ok := last.Metrics.Val[name]; !ok {
					t.Errorf("%s: no %s in %v", k.task, name, last.Metrics.Val)
				}
			}
			if len(last.Metrics.Test) != len(k.all) || len(last.Metrics.Train) == 0 {
				t.Errorf("%s: %+v", k.task, last.Metrics)
			}
			var npy, parquet, model bytes.Buffer
			if err := on.API().Predict(t.Context(), id, api.PredictRequest{Format: ".npy"}, &npy); err != nil || npy.Len() < 60*2*4 {
				t.Errorf("%d bytes, %v", npy.Len(), err)
			}
			if err := on.API().Predict(t.Context(), id, api.PredictRequest{Format: ".parquet"}, &parquet); err != nil || !strings.Contains(parquet.String(), k.column) || strings.Contains(parquet.String(), "probability") {
				t.Errorf("%d bytes, %v", parquet.Len(), err)
			}
			if err := on.API().ExportJob(t.Context(), id, api.ExportRequest{}, &model); err != nil || !strings.Contains(model.String(), `"task":"`+k.task+`"`) {
				t.Errorf("exported %.600q, %v", model.String(), err)
			}
		}
	})
}

// Tables with columns of labels give the same dataset as an archive, and keep the names of the
// columns: in what is shown, predicted and exported.
func TestTargetsFromTables(t *testing.T) {
	folder := t.TempDir()
	var edges, nodes strings.Builder
	nodes.WriteString("id,ill,f0,f1,f2,smokes,split\n")
	var labels []float32
	for v := range 60 {
		for _, by := range []int{1, 7, 11} {
			fmt.Fprintf(&edges, "%d,%d\n", (v+by)%60, v)
		}
		ill, smokes := strconv.Itoa(v%5%2), strconv.Itoa(v%4%2)
		labels = append(labels, float32(v%5%2), float32(v%4%2))
		if v%9 == 0 {
			ill, labels[2*v] = "", float32(math.NaN())
		}
		fmt.Fprintf(&nodes, "%d,%s,%d,%d,1,%s,%s\n", v, ill, v%5, v%3, smokes, []string{"train", "val", "test"}[v%3])
	}
	for name, text := range map[string]string{"edges.csv": edges.String(), "nodes.csv": nodes.String()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		on := c.Nodes[0]
		columns := []string{"ill", "smokes"}
		var hashes []string
		for _, r := range []api.ImportRequest{
			{Name: "archive", Source: targetsFile(t, readtest.Of("(60, 2)", labels))},
			{Name: "tables", Source: folder, LabelColumns: columns},
		} {
			r.Shards = 4
			d, err := on.API().ImportDataset(t.Context(), r, func(api.DatasetEvent) {})
			if err != nil || d.Task != "multilabel" || d.Targets != 2 || d.Features != 3 || r.LabelColumns != nil && !slices.Equal(d.ClassNames, columns) {
				t.Fatalf("%v: %+v", err, d)
			}
			epochs := 2
			id, err := on.API().StartJob(t.Context(), api.TrainRequest{Dataset: r.Name, Model: "sage", Strategy: "leap", Epochs: &epochs})
			if err != nil {
				t.Fatal(err)
			}
			j := waitState(c, on, id, "done")
			hashes = append(hashes, j.History[1].Weights)
			var parquet, model bytes.Buffer
			if err := on.API().Predict(t.Context(), id, api.PredictRequest{Format: ".parquet"}, &parquet); err != nil {
				t.Fatal(err)
			}
			if err := on.API().ExportJob(t.Context(), id, api.ExportRequest{}, &model); err != nil {
				t.Fatal(err)
			}
			named := r.LabelColumns != nil
			if strings.Contains(parquet.String(), "label_smokes") != named || strings.Contains(model.String(), `"class_names":"[\"ill\",\"smokes\"]"`) != named {
				t.Errorf("%s: exported %.900q", r.Name, model.String())
			}
		}
		if hashes[0] != hashes[1] || hashes[0] == "" {
			t.Errorf("weights %v", hashes)
		}
		_, err := on.API().ImportDataset(t.Context(), api.ImportRequest{Name: "wrong", Source: folder, LabelColumns: []string{"ill", "drinks"}}, func(api.DatasetEvent) {})
		refused(t, "drinks", err, "nodes.csv has no column called drinks among id, ill, f0, f1, f2, smokes, split: check --label-columns")
	})
}
