package pipe_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// lastOf opens a node's checkpoint and closes it again.
func lastOf(t *testing.T, folder string) (m trained.Standing, digest string) {
	t.Helper()
	c, err := trained.OpenCheckpoint(filepath.Join(folder, train.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	m, digest = c.Models[0], fmt.Sprint(c.File.Digest())
	if best := m.State.Best; best != nil {
		model, err := nn.New(c.Recipe.Model, c.About.Features, c.About.Classes)
		if err != nil {
			t.Fatal(err)
		}
		row, err := c.File.Row(trained.BestPrefix, model.Params(), model.Size())
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(plain.Bytes(row)); hex.EncodeToString(sum[:]) != best.Hash {
			t.Errorf("the checkpoint of epoch %d has other weights for the best, of epoch %d", m.State.Epoch, best.Epoch)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return m, digest
}

// A run that ends without warning loses an epoch at most, though its stages have weights of
// their own and no checkpoint was due; and who goes on comes to the same. In virtual time
// marks cost nothing, so there is one after each epoch. Where weights are few, nodes share gradients
// and nothing is lost, however slowly they would send each other weights.
func TestLostStagesCostAnEpoch(t *testing.T) {
	few, many := traintest.Communities(t, 300), traintest.Communities(t, 6000)
	for _, c := range []struct {
		shards    []*graph.Shard
		every     int // epochs that are evaluated
		questions int64
		slow      uint32 // the first epoch in which stages send each other their weights slowly
	}{
		{few, 12, 250, 99}, {few, 12, 320, 99}, {few, 12, 400, 99}, {few, 3, 250, 99}, {few, 3, 340, 99}, {few, 1, 300, 99}, {few, 2, 400, 3},
		{many, 12, 250, 3}, {many, 3, 340, 3},
	} {
		shards, shared := c.shards, len(c.shards) == len(many) && &c.shards[0] == &many[0]
		r := staged()
		r.Epochs, r.EvalEvery = 12, c.every
		o := train.Options{Threads: 1, Interval: time.Hour, Resume: true, Dataset: "d", Strategies: traintest.Pipelines}
		calm := t.TempDir()
		_, want, err := traintest.NewMesh(1, traintest.Uneven(len(shards), 1)).Run(t.Context(), r, shards, o, func(int) string { return calm })
		if err != nil {
			t.Fatal(err)
		}
		_, digest := lastOf(t, calm)
		dir := t.TempDir()
		folder := func(node int) string { return filepath.Join(dir, fmt.Sprint(node)) }
		synctest.Test(t, func(t *testing.T) {
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			ctx := traintest.CancelInEpochs(t, m, c.questions)
			counted := m.Net.Trouble
			m.Net.Trouble = func(ctx context.Context, from, to int, q peer.Query) error {
				if q.Kind == peer.Model && q.Epoch >= c.slow {
					time.Sleep(time.Second)
				}
				return counted(ctx, from, to, q)
			}
			_, reports, err := m.Run(ctx, r, shards, o, folder)
			if !errors.Is(err, traintest.ErrEnough) || len(reports[0]) < 2 || len(reports[0]) == r.Epochs {
				t.Fatalf("after %d epochs: %v", len(reports[0]), err)
			}
			newest, reported := 0, 0
			for node := range 3 {
				reported = max(reported, len(reports[node]))
				m, _ := lastOf(t, folder(node))
				if len(m.History) != m.State.Epoch-1 {
					t.Errorf("node %d is in epoch %d, and its checkpoint lists %d", node, m.State.Epoch, len(m.History))
				}
				newest = max(newest, m.State.Epoch+m.State.Step-1)
			}
			if rare := newest < reported-1; rare != (int(c.slow) < reported && !shared) || shared && newest < reported {
				t.Errorf("%d epochs were reported, and the newest checkpoint is after %d", reported, newest)
			}
		})
		_, reports, err := traintest.NewMesh(2, traintest.Uneven(len(shards), 2)).Run(t.Context(), r, shards, o, folder)
		if err != nil {
			t.Fatal(err)
		}
		for node := range reports {
			if rest := traintest.Learnt(reports[node]); !strings.HasSuffix(traintest.Learnt(want[0]), rest) || len(reports[node]) == r.Epochs {
				t.Errorf("node %d went on to\n%s\nand undisturbed\n%s", node, rest, traintest.Learnt(want[0]))
			}
			if _, got := lastOf(t, folder(node)); got != digest {
				t.Errorf("node %d keeps %s, and undisturbed %s", node, got, digest)
			}
		}
	}
}
