package train

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// left are the folders of the nodes of a mesh after an epoch, in which each has left
// what change makes of it.
func left(t *testing.T, m *mesh, r Recipe, change func(node int, tr *learner)) []string {
	t.Helper()
	shards := communities(t, 1500)
	folders := make([]string, len(m.names))
	for i := range folders {
		folders[i] = t.TempDir()
	}
	all := m.start(t, r, shards, Options{Threads: 1, Dataset: "d"})
	err := m.each(func(node int) error {
		tr := all[node]
		tr.options.Dir = folders[node]
		if err := tr.epoch(t.Context()); err != nil {
			return err
		}
		change(node, tr)
		tr.saved = saved{}
		return tr.save()
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// again are the models of a mesh that goes on from such folders.
func again(t *testing.T, m *mesh, r Recipe, folders []string) []*learner {
	t.Helper()
	shards := communities(t, 1500)
	all := make([]*learner, len(m.names))
	err := m.each(func(node int) error {
		held, o := m.of(node, shards, Options{Threads: 1, Dataset: "d", Resume: true, Dir: folders[node]})
		tr, err := newTrainer(t.Context(), r, held, o)
		if err != nil {
			return err
		}
		all[node] = tr.learners[0]
		return tr.meet(t.Context())
	})
	t.Cleanup(func() {
		for _, tr := range all {
			if tr != nil {
				tr.close()
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A node that stands behind, though with the same weights, is brought to where the
// others are, with its file.
func TestNodesBeginWhereTheFurthestStands(t *testing.T) {
	defer func(n uint64) { mostPiece = n }(mostPiece)
	mostPiece = 1000
	r := small("gcn")
	r.Sharing, r.EvalEvery = ways()["leap"], 1000
	folders := left(t, newMesh(4, uneven(5, 4)), r, func(node int, tr *learner) {
		switch node {
		case 1: // as if it had ended before it told of the epoch
			tr.at.Epoch, tr.at.Step, tr.history = 1, tr.at.Last.Steps, nil
		case 3: // as if it had trained with others since
			tr.device.Write32(tr.weights.View(0, 1, 3, 1), []float32{0.01})
		}
	})
	if err := os.Remove(filepath.Join(folders[2], CheckpointFile)); err != nil {
		t.Fatal(err)
	}
	all := again(t, newMesh(4, uneven(5, 4)), r, folders)
	want, err := os.ReadFile(filepath.Join(folders[0], CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	for node, tr := range all {
		if tr.at.Epoch != 2 || tr.at.Step != 0 || len(tr.history) != 1 || tr.hash() != all[0].hash() {
			t.Errorf("node %d begins at step %d of epoch %d", node, tr.at.Step, tr.at.Epoch)
		}
		path := filepath.Join(folders[node], CheckpointFile)
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
	r := small("gcn")
	r.Sharing = ways()["tuned"]
	who := members(newMesh(3, nil).names)
	tunings := []strategy.Tuning{
		{Nodes: 3, Members: who, Slots: 2, Best: 1.5, Epochs: 3}, {Nodes: 3, Members: who, Slots: 3, Best: 1.5, Epochs: 2, Frozen: true}, {},
	}
	folders := left(t, newMesh(3, uneven(5, 3)), r, func(node int, tr *learner) {
		if tr.at.Tuning != tr.shared.dealer.Tuning() || tr.at.Tuning.Epochs != 1 {
			t.Errorf("node %d keeps %+v", node, tr.at.Tuning)
		}
		tr.at.Tuning = tunings[node]
	})
	for node, tr := range again(t, newMesh(3, uneven(5, 3)), r, folders) {
		if tr.at.Tuning != tunings[0] || tr.shared.dealer.Tuning() != tunings[0] {
			t.Errorf("node %d deals by %+v", node, tr.shared.dealer.Tuning())
		}
	}
}

// An epoch that another run began says nothing of how fast this one is.
func TestOnlyWholeEpochsAreTimed(t *testing.T) {
	r := small("gcn")
	r.Sharing = ways()["tuned"]
	m := newMesh(2, uneven(5, 2))
	all := m.start(t, r, communities(t, 1500), Options{Threads: 1})
	err := m.each(func(node int) error {
		tr := all[node]
		tr.at.Step = 2
		if err := tr.epoch(t.Context()); err != nil {
			return err
		}
		if tr.at.Tuning.Epochs != 0 {
			t.Errorf("node %d has noted a part of an epoch", node)
		}
		return tr.epoch(t.Context())
	})
	if err != nil || all[0].at.Tuning.Epochs != 1 || all[1].at.Tuning != all[0].at.Tuning {
		t.Errorf("%v, %+v", err, all[0].at.Tuning)
	}
}

// While a run goes on, some of the nodes keep checkpoints; at its end all do.
func TestWhoKeepsCheckpoints(t *testing.T) {
	shards := communities(t, 1500)
	r := small("gcn")
	r.Epochs, r.Sharing = 2, ways()["leap"]
	folders := make([]string, 5)
	for i := range folders {
		folders[i] = t.TempDir()
	}
	kept := func(node int) bool {
		_, err := os.Stat(filepath.Join(folders[node], CheckpointFile))
		return err == nil
	}
	m := newMesh(5, uneven(len(shards), 5))
	err := m.each(func(node int) error {
		held, o := m.of(node, shards, Options{Threads: 1, Dir: folders[node], Interval: 1})
		o.Report = func(e Epoch) {
			if kept(node) != (node < keepers) {
				t.Errorf("after epoch %d, node %d has a checkpoint: %v", e.Epoch, node, kept(node))
			}
		}
		_, err := Run(t.Context(), r, held, o)
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
	shards := communities(t, 1500)
	r := small("gcn")
	r.Batch, r.Fanouts, r.Epochs, r.Sharing = 0, nil, 3, ways()["leap"]
	_, told := newMesh(3, uneven(len(shards), 3)).mustRun(t, r, shards, Options{Threads: 2})
	for i, e := range told[0] {
		if first := i == 0; (e.Remote > 0) != first || (e.Rows > 0) != first || (e.Sent.Requests[strategy.Feature] > 0) != first || e.Sent.Requests[strategy.Gradient] == 0 {
			t.Errorf("epoch %d: %+v", e.Epoch, e)
		}
	}
}
