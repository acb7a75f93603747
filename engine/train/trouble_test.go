package train_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

func said(t *testing.T, errs []error, want ...string) {
	t.Helper()
	for node, err := range errs {
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("node %d ends with %v, and not with %q", node, err, w)
			}
		}
	}
}

func TestNodesThatWereToldOtherThingsDontTrain(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for want, change := range map[string]func(node int, r *recipe.Recipe, o *train.Options){
		"node n0 and node n2 can't share this job, since each has another recipe": func(node int, r *recipe.Recipe, _ *train.Options) {
			if node == 2 {
				r.Rate = 0.02
			}
		},
		"node n0 and node n1 can't share this job, since each has another content of the dataset": func(node int, _ *recipe.Recipe, o *train.Options) {
			if node == 1 {
				o.Dataset = "e"
			}
		},
	} {
		errs := traintest.Ends(t, traintest.NewMesh(3, traintest.Uneven(len(shards), 3)), shards, func(node int, r *recipe.Recipe, _ []*graph.Shard, o *train.Options) { change(node, r, o) })
		said(t, errs, want)
	}
}

func TestAJobThatCannotBeShared(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for want, change := range map[string]func(r *recipe.Recipe, held []*graph.Shard, o *train.Options){
		"the strategy single trains on one node, and the job has 2":    func(r *recipe.Recipe, _ []*graph.Shard, _ *train.Options) { r.Sharing.Strategy = strategy.Single },
		`there is no strategy "p3" for several nodes: take one of cen`: func(r *recipe.Recipe, _ []*graph.Shard, _ *train.Options) { r.Sharing.Strategy = "p3" },
		`there is no strategy "cleverer"`:                              func(r *recipe.Recipe, _ []*graph.Shard, _ *train.Options) { r.Sharing.Strategy = "cleverer" },
		"for this job and doesn't hold it":                             func(_ *recipe.Recipe, held []*graph.Shard, _ *train.Options) { clear(held) },
		"{split} is 5, and the dataset has one only":                   func(r *recipe.Recipe, _ []*graph.Shard, _ *train.Options) { r.Split = 5 },
		"{leap.mode}=fly": func(r *recipe.Recipe, _ []*graph.Shard, _ *train.Options) {
			r.Sharing = r.Sharing.With("leap.mode=fly")
		},
		"names the owners of 4 shards, and its dataset has 5": func(_ *recipe.Recipe, _ []*graph.Shard, o *train.Options) { o.Work.Owners = o.Work.Owners[:4] },
		"is owned by node 7 of a job's 2 nodes": func(_ *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
			o.Work.Owners = slices.Clone(o.Work.Owners)
			o.Work.Owners[4] = 7
		},
	} {
		errs := traintest.Ends(t, traintest.NewMesh(2, traintest.Uneven(len(shards), 2)), shards, func(_ int, r *recipe.Recipe, held []*graph.Shard, o *train.Options) { change(r, held, o) })
		said(t, errs, want)
	}
	if _, err := train.Run(t.Context(), traintest.Short("gcn"), []*graph.Shard{shards[0], nil}, train.Options{Strategies: strategies.All}); err == nil || !strings.Contains(err.Error(), "shard 1 is not on this node") {
		t.Error(err)
	}
}

// Where one node finds that numbers are not finite, all end with that, in that step.
func TestAllNodesDivergeTogether(t *testing.T) {
	shards := traintest.Spoilt(traintest.Communities(t, 1500), 1) // of the last node
	for _, deterministic := range []bool{false, true} {
		start := time.Now()
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		errs := traintest.Ends(t, traintest.NewMesh(3, traintest.Uneven(len(shards), 3)), shards, func(node int, r *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
			r.Sharing.Deterministic, o.Dir = deterministic, folders[node]
		})
		said(t, errs, "in epoch 1, step 1,", "is not finite")
		for node := range folders {
			// Whatever goes on from the first weights ends so, too.
			if left, err := os.ReadDir(folders[node]); err != nil || len(left) > 0 {
				t.Errorf("node %d keeps %v (%v)", node, left, err)
			}
		}
		for node, err := range errs {
			if d, ok := errors.AsType[*trained.Diverged](err); !ok || d.Features && d.Node != "" {
				t.Errorf("node %d: %v", node, err)
			}
		}
		if time.Since(start) > session.LeaveAfter {
			t.Error("the nodes waited for each other in vain")
		}
	}
}

// Weights that differ are found out after the epoch, and both nodes named.
func TestWeightsThatDifferEndTheJob(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Sharing = traintest.Ways()["centric"]
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	all := m.Start(t, r, shards, train.Options{Threads: 1})
	errs := make([]error, len(all))
	m.Each(func(node int) error { //nolint:errcheck // each node's error is looked at by itself
		tr := all[node]
		if node == 1 {
			tr.Run.Device.Write32(tr.Weights.View(0, 1, 3, 1), []float32{0.01})
		}
		errs[node] = tr.Run.Epoch(t.Context())
		return nil
	})
	said(t, errs, "after epoch 1, node n0 and node n1 have different weights", "faulty memory")
	if _, ok := errors.AsType[*train.Differing](errs[2]); !ok {
		t.Error(errs[2])
	}
}

// Of a sweep, the model is named.
func TestModelWhoseWeightsDifferIsNamed(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Swept(traintest.Small("gcn"), "lr=0.01", "lr=0.03")
	r = everywhere(r, func(of *recipe.Recipe) { of.Sharing = traintest.Ways()["centric"] })
	m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
	all := m.Start(t, r, shards, train.Options{Threads: 1})
	errs := make([]error, len(all))
	m.Each(func(node int) error { //nolint:errcheck // each node's error is looked at by itself
		tr := all[node]
		if node == 1 {
			l := tr.Run.Learners[1]
			tr.Run.Device.Write32(l.Weights.View(0, 1, 3, 1), []float32{0.01})
		}
		errs[node] = tr.Run.Epoch(t.Context())
		return nil
	})
	said(t, errs, "after epoch 1, node n0 and node n1 have different weights of model 1 (lr=0.03), though both")
}

// A node that fails ends the run of the others as soon as they ask it, each with a
// checkpoint.
func TestANodeThatIsGoneEndsTheRun(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	gone := errors.New("n2 is gone")
	for _, after := range []uint32{0, 3} {
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		m.Net.Trouble = func(_ context.Context, from, to int, q peer.Query) error {
			if (from == 2 || to == 2) && q.Epoch == 1 && q.Step >= after && q.Service == peer.Offers {
				return gone
			}
			return nil
		}
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		errs := traintest.Ends(t, m, shards, func(node int, _ *recipe.Recipe, _ []*graph.Shard, o *train.Options) { o.Dir = folders[node] })
		said(t, errs, "n2 is gone", fmt.Sprintf("add up the gradients of epoch 1, step %d", after+1))
		for node := range errs {
			if _, err := os.Stat(filepath.Join(folders[node], train.CheckpointFile)); err != nil {
				t.Errorf("node %d: %v", node, err)
			}
		}
	}
}

// Wherever the nodes wait for one that doesn't answer, the end of the run ends that.
func TestWaitingEndsWithTheRun(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for way, sharing := range traintest.Ways() {
		for service := peer.Rows; service <= peer.Offers; service++ {
			if service == peer.Draws && sharing.Topology() != "sharded" {
				continue // nobody asks for any
			}
			r := traintest.Short("sage")
			r.Sharing = sharing
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			ctx, cancel := context.WithCancelCause(t.Context())
			waiting := make(chan struct{}, 1000)
			m.Net.Trouble = func(ctx context.Context, _, to int, q peer.Query) error {
				if to != 0 || q.Service != service || service == peer.Offers && q.Epoch == 0 {
					return nil
				}
				select {
				case waiting <- struct{}{}:
				default:
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}
			ended := make(chan error, 1)
			go func() {
				_, _, err := m.Run(ctx, r, shards, train.Options{Threads: 2}, nil)
				ended <- err
			}()
			<-waiting
			cancel(traintest.ErrEnough)
			start := time.Now()
			if err := <-ended; !errors.Is(err, traintest.ErrEnough) || time.Since(start) > session.LeaveAfter/2 {
				t.Errorf("%s, service %d: after %v: %v", way, service, time.Since(start), err)
			}
		}
	}
}

// lastWords runs a job whose nodes each go when their run ends; what trouble there is with
// words of leaving is said by the caller. It returns how long it took.
func lastWords(t *testing.T, leaving func(ctx context.Context, from int) error) time.Duration {
	shards := traintest.Communities(t, 1500)
	m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
	closed := make([]chan struct{}, 3)
	for i := range closed {
		closed[i] = make(chan struct{})
	}
	m.Net.Trouble = func(ctx context.Context, from, to int, q peer.Query) error {
		if from == 2 { // which is late with whatever it asks
			time.Sleep(5 * time.Millisecond)
		}
		if q.Service == peer.Checkpoint {
			return leaving(ctx, from)
		}
		select {
		case <-closed[to]:
			return fmt.Errorf("node %d asks node %d, which has ended", from, to)
		default:
			return nil
		}
	}
	start := time.Now()
	err := m.Each(func(node int) error {
		defer close(closed[node])
		r := traintest.Short("gcn")
		r.Sharing = traintest.Ways()["leap"]
		held, o := m.Of(node, shards, train.Options{Threads: 1})
		_, err := train.Run(t.Context(), r, held, o)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return time.Since(start)
}

// Nodes that are done wait for those that need them, and not for long for those that say
// nothing.
func TestTheLastWordIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if took := lastWords(t, func(context.Context, int) error { return nil }); took >= session.LeaveAfter {
			t.Errorf("it took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		took := lastWords(t, func(ctx context.Context, from int) error {
			if from == 1 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		})
		if took < session.LeaveAfter || took > session.LeaveAfter+5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestNoGoroutineIsLeftBehindByAMesh(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	before := runtime.NumGoroutine()
	for _, sharing := range traintest.Ways() {
		for _, questions := range []int64{20, 90, 200, 1 << 40} {
			r := traintest.Short("sage")
			r.Sharing = sharing
			m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
			if _, _, err := m.Run(traintest.CancelAfter(t, m, questions), r, shards, train.Options{Threads: 2}, nil); err != nil && !errors.Is(err, traintest.ErrEnough) {
				t.Error(err)
			}
		}
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines are left", after-before)
	}
}

// A node that can't write checkpoints goes on, if another can.
func TestADiskThatIsFullEndsNoJobThatOthersKeep(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := traintest.Small("gcn")
	r.Epochs = 2
	r.Sharing = traintest.Ways()["leap"]
	for full := 1; full <= 3; full++ {
		dir := t.TempDir()
		of := func(node int) string { return filepath.Join(dir, fmt.Sprint(node)) }
		for node := range full { // a file is where the folder would be
			if err := os.WriteFile(of(node), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		results, _, err := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Run(t.Context(), r, shards, train.Options{Threads: 1, Interval: 1}, of)
		_, unsaved := errors.AsType[*checkpoint.Unsaved](err)
		switch {
		case full < 3 && err != nil:
			t.Errorf("%d of 3 disks are full: %v", full, err)
		case full == 3 && (!unsaved || !strings.Contains(err.Error(), "epoch 3, step 0")):
			t.Errorf("all disks are full: %v", err)
		}
		for node, result := range results {
			if full < 3 && result.Last.Epoch != 2 {
				t.Errorf("%d of 3 disks are full, and node %d ends with %+v", full, node, result.Last)
			}
		}
		if _, err := os.Stat(filepath.Join(of(2), train.CheckpointFile)); full < 3 && err != nil {
			t.Error(err)
		}
	}
}

// fullFolder is one that takes no checkpoint: a folder is where the file would be written.
func fullFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, train.CheckpointFile+".tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Such a node says why it keeps none, at once and then as often as it would keep one, and
// what it says is fit for a run that goes on.
func TestADiskThatIsFullIsToldOf(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	full := fullFolder(t)
	var log strings.Builder
	var reports []error
	errs := traintest.Ends(t, traintest.NewMesh(2, traintest.Uneven(len(shards), 2)), shards, func(node int, r *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
		r.Epochs, o.Dir = 8, t.TempDir()
		if node == 1 {
			o.Dir, o.Log = full, slog.New(slog.NewTextHandler(&log, nil))
			o.Kept = func(err error) { reports = append(reports, err) }
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || reports[0] == nil || strings.Contains(reports[0].Error(), "resume") {
		t.Errorf("told %v of a disk that is full in 8 epochs", reports)
	}
	if n := strings.Count(log.String(), "the training goes on and tries again"); n != 1 || strings.Contains(log.String(), "train resume") {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// What was told is taken back when a checkpoint can be written again.
func TestADiskThatHasRoomAgainIsToldOf(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	dir := fullFolder(t)
	var reports []bool
	errs := traintest.Ends(t, traintest.NewMesh(2, traintest.Uneven(len(shards), 2)), shards, func(node int, r *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
		r.Epochs, o.Dir, o.Interval = 4, t.TempDir(), 1
		if node == 1 {
			o.Dir = dir
			o.Report = func(e trained.Epoch) {
				if e.Epoch == 3 {
					_ = os.Remove(filepath.Join(dir, train.CheckpointFile+".tmp"))
				}
			}
			o.Kept = func(err error) { reports = append(reports, err == nil) }
		}
	})
	if err := errors.Join(errs...); err != nil || len(reports) < 2 || reports[0] || !reports[len(reports)-1] {
		t.Errorf("%v, told %v", err, reports)
	}
}

// A node without room goes on from the checkpoint of another, and keeps none.
func TestADiskThatIsFullTakesOverACheckpoint(t *testing.T) {
	r := traintest.Small("gcn")
	r.Sharing = traintest.Ways()["leap"]
	folders := traintest.Left(t, traintest.NewMesh(3, traintest.Uneven(5, 3)), r, func(int, *train.Learner) {})
	folders[1] = fullFolder(t)
	all := traintest.Again(t, traintest.NewMesh(3, traintest.Uneven(5, 3)), r, folders)
	for node, l := range all {
		_, good := l.Run.Checkpoints.Last()
		if l.At.Epoch != 2 || l.Hash() != all[0].Hash() || good == (node == 1) || l.Run.Checkpoints.Failed() != (node == 1) {
			t.Errorf("node %d begins at epoch %d with %+v", node, l.At.Epoch, l.Run.Checkpoints)
		}
	}
}
