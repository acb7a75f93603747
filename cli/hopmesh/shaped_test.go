package main

import (
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

// Nodes behind slow links train together; one that is killed is missed, and nothing is
// left of the others.
func TestCrewOnAShapedNetwork(t *testing.T) {
	t.Parallel()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	f, err := shape.New(t.Context(), 2, shape.Link{Rate: 200_000_000, Delay: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(f.Notes())
	c, err := f.Start(t.Context(), path, box(t))
	if err != nil {
		t.Fatal(err)
	}
	on, none, epochs, batch := c.Nodes[1].API, 0, 2, 64
	_, err = on.GenerateDataset(t.Context(), api.GenerateRequest{
		Name: "g", Kind: "sbm", Vertices: 600, Edges: 4000, Features: 8, Classes: 4, DatasetOptions: api.DatasetOptions{Shards: 4, Replicas: &none},
	}, func(api.DatasetEvent) {})
	if err != nil {
		t.Fatal(err)
	}
	id, err := on.StartJob(t.Context(), api.TrainRequest{Dataset: "g", Strategy: "leap", Epochs: &epochs, Batch: &batch, Fanout: []int{4, 4}})
	if err != nil {
		t.Fatal(err)
	}
	j, err := on.WatchJob(t.Context(), id.ID, func(api.JobEvent) {})
	if err != nil || j.State != "done" || len(j.Nodes) != 2 {
		t.Fatalf("%+v, %v", j, err)
	}
	// Each of 6 steps waits for an answer, which and whose question are delayed.
	if seconds := j.History[1].Seconds; seconds < 6*0.1 {
		t.Errorf("an epoch took %g s, as if there were no delay", seconds)
	}
	if err := c.Nodes[0].Kill(); err != nil {
		t.Error(err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestCrewThatCanNotStart(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	f, err := shape.New(t.Context(), 1, shape.Link{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Start(t.Context(), path, "/dev/null"); err == nil || !strings.Contains(err.Error(), "log of n1") {
		t.Error(err)
	}
	t.Setenv("HOPMESH_MEMORY", "much")
	if _, err := f.Start(t.Context(), path, box(t)); err == nil || !strings.Contains(err.Error(), "n1 ended before it was ready") || !strings.Contains(err.Error(), "memory") {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
