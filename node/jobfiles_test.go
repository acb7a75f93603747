package node_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// jobEntries lists what lies in a node's folder for jobs.
func jobEntries(t *testing.T, n *nodetest.Instance) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(n.Options.DataDir, "jobs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// taken is what a job's model says on a node, and the model.
func taken(ctx context.Context, n *nodetest.Instance, id string) (said, model bytes.Buffer, err error) {
	if err = n.API().Predict(ctx, id, api.PredictRequest{Format: ".npy"}, &said); err == nil {
		err = n.API().ExportJob(ctx, id, api.ExportRequest{}, &model)
	}
	return said, model, err
}

// A job that one node has trained, on shards of which none has all any more, is at
// hand on each node as long as all of it is somewhere.
func TestPredictAnywhere(t *testing.T) {
	nodetest.Virtual(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		first := c.Nodes[0]
		generated(t, first, tiny("g", 0))
		epochs := 2
		id, err := first.API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Epochs: &epochs})
		if err != nil {
			t.Fatal(err)
		}
		waitState(c, first, id, "done")
		said, model, err := taken(t.Context(), first, id)
		if err != nil || said.Len() < 400*2*4 || model.Len() == 0 {
			t.Fatalf("%d and %d bytes, %v", said.Len(), model.Len(), err)
		}
		c.Grow(2)
		c.Wait("the shards are spread", 5*time.Minute, func() bool {
			for _, n := range c.Nodes {
				if len(owned(n.Dataset("g"))) != 3 || !copied(n.Dataset("g"), 0, c.Nodes...) {
					return false
				}
			}
			return true
		})
		clean(t, c, c.Nodes...) // nobody reads of holders that have given a shard away
		for _, n := range c.Nodes {
			again, same, err := taken(t.Context(), n, id)
			if err != nil || !bytes.Equal(again.Bytes(), said.Bytes()) || !bytes.Equal(same.Bytes(), model.Bytes()) {
				t.Errorf("on %s: %d bytes of predictions, %d of the model, %v", n.Name, again.Len(), same.Len(), err)
			}
			if left := jobEntries(t, n); len(left) > 1 || n != first && len(left) != 0 {
				t.Errorf("%s keeps %q", n.Name, left)
			}
		}
		second, third := c.Nodes[1], c.Nodes[2]
		c.Isolate(third)
		failed(c, third)
		_, _, err = taken(t.Context(), second, id)
		refused(t, "without a holder", err, "which is not here: node "+third.Name+": does not answer")
		if left := jobEntries(t, second); len(left) != 0 {
			t.Errorf("%s keeps %q", second.Name, left)
		}
		c.Network.Heal()
		c.Isolate(first)
		failed(c, first)
		_, _, err = taken(t.Context(), second, id)
		refused(t, "without the model", err, "the model of job "+id+" is on node "+first.Name+", and can't be had now", "does not answer", "start that node again")
	})
}

// A damaged checkpoint is found where it arrives.
func TestBorrowedModelIsChecked(t *testing.T) {
	inSchool(t, 2, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		id := started(t, c.Nodes[0], 3)
		runner := named(c, waitState(c, c.Nodes[0], id, "done").Nodes[0])
		other := c.Others(runner)[0]
		waitState(c, other, id, "done")
		refused(t, "a damaged model", other.API().ExportJob(t.Context(), id, api.ExportRequest{}, nil), "the model of job "+id+" is damaged")
		folders := jobEntries(t, runner)
		if len(folders) != 1 || !strings.HasPrefix(folders[0], id+"-") {
			t.Fatalf("%s has %q", runner.Name, folders)
		}
		if err := os.Remove(filepath.Join(runner.Options.DataDir, "jobs", folders[0], train.CheckpointFile)); err != nil {
			t.Fatal(err)
		}
		refused(t, "no model at all", other.API().ExportJob(t.Context(), id, api.ExportRequest{}, nil), "job "+id+" ended before it had a checkpoint")
		if left := jobEntries(t, other); len(left) != 0 {
			t.Errorf("%s keeps %q", other.Name, left)
		}
	})
}

// A node that can't keep a model for a while says that its own disk is why.
func TestAModelThatThisNodeHasNoRoomFor(t *testing.T) {
	inSchool(t, 2, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		id := started(t, c.Nodes[0], 3)
		runner := named(c, waitState(c, c.Nodes[0], id, "done").Nodes[0])
		other := c.Others(runner)[0]
		waitState(c, other, id, "done")
		folder := filepath.Join(other.Options.DataDir, "jobs")
		if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		err := other.API().Predict(t.Context(), id, api.PredictRequest{Format: ".npy"}, io.Discard)
		refused(t, "without room", err, "node "+other.Name+" can't keep the model of job "+id+", which it takes from node "+runner.Name+", on its own disk for a while: mkdir ",
			"free some space in its data directory, or ask node "+runner.Name)
	})
}
