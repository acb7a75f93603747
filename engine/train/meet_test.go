package train_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A node that stands behind, though with the same weights, is brought to where the
// others are, with its file.
func TestNodesBeginWhereTheFurthestStands(t *testing.T) {
	r := traintest.Small("gcn")
	r.Sharing, r.EvalEvery = traintest.Ways()["leap"], 1000
	folders := traintest.Left(t, traintest.NewMesh(4, traintest.Uneven(5, 4)), r, func(node int, tr *train.Learner) {
		switch node {
		case 1: // as if it had ended before it told of the epoch
			tr.At.Epoch, tr.At.Step, tr.History = 1, tr.At.Last.Steps, nil
		case 3: // as if it had trained with others since
			tr.Run.Device.Write32(tr.Weights.View(0, 1, 3, 1), []float32{0.01})
		}
	})
	if err := os.Remove(filepath.Join(folders[2], train.CheckpointFile)); err != nil {
		t.Fatal(err)
	}
	all := traintest.Again(t, traintest.NewMesh(4, traintest.Uneven(5, 4)), r, folders)
	want, err := os.ReadFile(filepath.Join(folders[0], train.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	for node, tr := range all {
		if tr.At.Epoch != 2 || tr.At.Step != 0 || len(tr.History) != 1 || tr.Hash() != all[0].Hash() {
			t.Errorf("node %d begins at step %d of epoch %d", node, tr.At.Step, tr.At.Epoch)
		}
		path := filepath.Join(folders[node], train.CheckpointFile)
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("node %d does not have the file that it goes on from: %v", node, err)
		}
		if _, err := os.Stat(path + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("node %d: %v", node, err)
		}
	}
}

// What depends on the times of epochs is the same for all, though some have heard of the
// last one's and some not.
func TestNodesDealAlikeAfterMeeting(t *testing.T) {
	r := traintest.Small("gcn")
	r.Sharing = traintest.Ways()["tuned"]
	who := session.Members(traintest.NewMesh(3, nil).Names)
	tunings := []deal.Tuning{
		{Nodes: 3, Members: who, Slots: 2, Best: 1.5, Epochs: 3}, {Nodes: 3, Members: who, Slots: 3, Best: 1.5, Epochs: 2, Frozen: true}, {},
	}
	folders := traintest.Left(t, traintest.NewMesh(3, traintest.Uneven(5, 3)), r, func(node int, tr *train.Learner) {
		if tr.At.Tuning != tr.Run.Sharing.Dealer.Tuning() || tr.At.Tuning.Epochs != 1 {
			t.Errorf("node %d keeps %+v", node, tr.At.Tuning)
		}
		tr.At.Tuning = tunings[node]
	})
	for node, tr := range traintest.Again(t, traintest.NewMesh(3, traintest.Uneven(5, 3)), r, folders) {
		if tr.At.Tuning != tunings[0] || tr.Run.Sharing.Dealer.Tuning() != tunings[0] {
			t.Errorf("node %d deals by %+v", node, tr.Run.Sharing.Dealer.Tuning())
		}
	}
}

// An epoch that another run began says nothing of how fast this one is.
func TestOnlyWholeEpochsAreTimed(t *testing.T) {
	r := traintest.Small("gcn")
	r.Sharing = traintest.Ways()["tuned"]
	m := traintest.NewMesh(2, traintest.Uneven(5, 2))
	all := m.Start(t, r, traintest.Communities(t, 1500), train.Options{Threads: 1})
	err := m.Each(func(node int) error {
		tr := all[node]
		tr.At.Step = 2
		if err := tr.Run.Epoch(t.Context()); err != nil {
			return err
		}
		if tr.At.Tuning.Epochs != 0 {
			t.Errorf("node %d has noted a part of an epoch", node)
		}
		return tr.Run.Epoch(t.Context())
	})
	if err != nil || all[0].At.Tuning.Epochs != 1 || all[1].At.Tuning != all[0].At.Tuning {
		t.Errorf("%v, %+v", err, all[0].At.Tuning)
	}
}

// While a run goes on, some of the nodes keep checkpoints; at its end all do.
func TestWhoKeepsCheckpoints(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Epochs, r.Sharing = 2, traintest.Ways()["leap"]
	folders := make([]string, 5)
	for i := range folders {
		folders[i] = t.TempDir()
	}
	kept := func(node int) bool {
		_, err := os.Stat(filepath.Join(folders[node], train.CheckpointFile))
		return err == nil
	}
	m := traintest.NewMesh(5, traintest.Uneven(len(shards), 5))
	err := m.Each(func(node int) error {
		held, o := m.Of(node, shards, train.Options{Threads: 1, Dir: folders[node], Interval: 1})
		o.Report = func(e trained.Epoch) {
			if kept(node) != (node < train.Keepers) {
				t.Errorf("after epoch %d, node %d has a checkpoint: %v", e.Epoch, node, kept(node))
			}
		}
		_, err := train.Run(t.Context(), r, held, o)
		if !kept(node) {
			t.Errorf("node %d has no checkpoint in the end", node)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A batch that is the same in each epoch is gathered once, and counted once.
func TestTheFullBatchIsGatheredOnce(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Batch, r.Fanouts, r.Epochs, r.Sharing = 0, nil, 3, traintest.Ways()["leap"]
	_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 2})
	for i, e := range reports[0] {
		if first := i == 0; (e.Rows.Remote > 0) != first || (e.Rows.Total() > 0) != first || (e.Sent.Requests[peer.Feature] > 0) != first || e.Sent.Requests[peer.Gradient] == 0 {
			t.Errorf("epoch %d: %+v", e.Epoch, e)
		}
	}
}
