package node_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// One node of a mesh is restored, with shards that it had not held. The others come back, one with
// what it had, and one as a new node.
func TestMeshIsBegunAnewFromABackup(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		c.WaitVoters(3)
		first := c.Nodes[0]
		generated(t, first, tiny("g", 0))
		epochs := 2
		id, err := first.API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Epochs: &epochs})
		if err != nil {
			t.Fatal(err)
		}
		first = named(c, waitState(c, first, id, "done").Nodes[0])
		others := c.Others(first)
		back, fresh := others[0], others[1]
		said, model, err := taken(t.Context(), first, id)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		var about api.Backup
		err = first.API().Backup(t.Context(), api.BackupRequest{Datasets: true, Jobs: true}, &file, func(b api.Backup) error {
			about = b
			return nil
		})
		if err != nil || !slices.Equal(about.Datasets, []string{"g"}) || !slices.Equal(about.Jobs, []string{id}) || len(about.Missing) != 0 {
			t.Fatalf("%+v: %v", about, err)
		}
		generated(t, first, tiny("later", 0))
		c.WaitEqual(time.Minute)
		for _, n := range c.Nodes {
			n.Kill()
		}
		first.Reset()
		fresh.Reset()
		path := filepath.Join(t.TempDir(), "mesh.tar")
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := node.Restore(t.Context(), node.Options{DataDir: first.Options.DataDir}, path); err != nil {
			t.Fatal(err)
		}
		first.KeepOnDisk()
		first.Restart()
		first.WaitReady()
		if n := first.Voters(); n != 1 {
			t.Errorf("%d nodes vote", n)
		}
		if err := first.API().VerifyDataset(t.Context(), "g", quiet); err != nil {
			t.Error(err)
		}
		again, same, err := taken(t.Context(), first, id)
		if err != nil || !bytes.Equal(again.Bytes(), said.Bytes()) || !bytes.Equal(same.Bytes(), model.Bytes()) {
			t.Errorf("%d bytes of predictions, %d of the model: %v", again.Len(), same.Len(), err)
		}
		back.Restart()
		back.WaitReady()
		if _, err := first.API().ForceLeave(t.Context(), api.ForceLeaveRequest{Name: fresh.Name}); err != nil {
			t.Fatal(err)
		}
		c.Enter([]*nodetest.Instance{fresh})
		c.WaitVoters(3)
		c.WaitEqual(time.Minute)
		for _, n := range c.Nodes {
			if list := n.Datasets(); len(list) != 1 || list[0].Name != "g" {
				t.Errorf("%s has %+v", n.Name, list)
			}
		}
		c.Wait("the shards are spread", 5*time.Minute, func() bool { return len(owned(first.Dataset("g"))) == 3 })
	})
}
