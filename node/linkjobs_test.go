package node_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Links are learnt of any dataset with edges and features, by several nodes, and are shown,
// predicted and exported as what they are.
func TestJobsOfLinks(t *testing.T) {
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		on := c.Nodes[0]
		file := targetsFile(t, readtest.Of("(60, 2)", make([]int8, 120)))
		if _, err := on.API().ImportDataset(t.Context(), api.ImportRequest{Name: "g", Source: file, DatasetOptions: api.DatasetOptions{Shards: 4}}, func(api.DatasetEvent) {}); err != nil {
			t.Fatal(err)
		}
		epochs, batch := 3, 40
		r := api.TrainRequest{Dataset: "g", Task: "link", EdgeSplit: []float64{0.6, 0.2, 0.2}, Epochs: &epochs, Batch: &batch, Set: []api.Setting{{Key: "link.width", Value: "3"}, {Key: "link.decoder", Value: "mlp"}}}
		by := r
		by.Strategy = "p3"
		_, err := on.API().StartJob(t.Context(), by)
		refused(t, "p3", err, "--strategy p3 learns no links, and the task is link: choose one of single, centric, leap, grappa")
		id, err := on.API().StartJob(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		j := waitState(c, on, id, "done")
		last := j.History[len(j.History)-1]
		if j.Task != "link" || j.Strategy != "leap" || len(j.Nodes) != 2 || last.ValAccuracy != nil || last.Metric != "roc_auc" || last.Metrics == nil || j.Best == nil || j.Best.Metric != "roc_auc" {
			t.Fatalf("%+v, best %+v, last %+v", j, j.Best, last)
		}
		for part, metrics := range map[string]map[string]float64{"train": last.Metrics.Train, "val": last.Metrics.Val, "test": last.Metrics.Test} {
			for _, name := range []string{"roc_auc", "average_precision"} {
				if x, ok := metrics[name]; !ok || x <= 0 || x > 1 {
					t.Errorf("%s of %s is %g in %v", name, part, x, metrics)
				}
			}
			if x, ok := metrics["mrr"]; ok != (part != "train") || ok && (x <= 0 || x > 1 || metrics["hits_at_10"] < metrics["hits_at_1"]) {
				t.Errorf("%s: %v", part, metrics)
			}
		}
		var npy, parquet, model bytes.Buffer
		if err := on.API().Predict(t.Context(), id, api.PredictRequest{Format: ".npy"}, &npy); err != nil || npy.Len() < 60*3*4 {
			t.Errorf("%d bytes, %v", npy.Len(), err)
		}
		if err := on.API().Predict(t.Context(), id, api.PredictRequest{Format: ".parquet"}, &parquet); err != nil || !strings.Contains(parquet.String(), "embedding_2") || strings.Contains(parquet.String(), "probability") {
			t.Errorf("%d bytes, %v", parquet.Len(), err)
		}
		if err := on.API().ExportJob(t.Context(), id, api.ExportRequest{}, &model); err != nil || !strings.Contains(model.String(), `"task":"link"`) || !strings.Contains(model.String(), `"decoder":"mlp"`) || !strings.Contains(model.String(), `"decoder.0.weight":`) {
			t.Errorf("exported %.600q, %v", model.String(), err)
		}
		by.Strategy = "grappa"
		if id, err = on.API().StartJob(t.Context(), by); err != nil {
			t.Fatal(err)
		}
		j = waitState(c, on, id, "done")
		if last := j.History[len(j.History)-1]; j.Strategy != "grappa" || last.Metrics == nil || !(last.Loss > 0) || last.Bytes.Feature > 0 {
			t.Errorf("%+v, last %+v", j, last)
		}
	})
}
