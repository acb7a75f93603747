package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// ends runs a job of which each node has shards and a recipe of its own making, and
// returns how it ended on each.
func ends(t *testing.T, m *mesh, shards []*graph.Shard, change func(node int, r *Recipe, held []*graph.Shard, o *Options)) []error {
	t.Helper()
	errs := make([]error, len(m.names))
	m.each(func(node int) error { //nolint:errcheck // each node's error is looked at by itself
		r := short("gcn")
		r.Sharing = ways()["leap"]
		held, o := m.of(node, shards, Options{Threads: 1, Dataset: "d", Resume: true})
		change(node, &r, held, &o)
		_, errs[node] = Run(t.Context(), r, held, o)
		return nil
	})
	return errs
}

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
	shards := communities(t, 1500)
	for want, change := range map[string]func(node int, r *Recipe, o *Options){
		"node n0 and node n2 can't share this job, since each has another recipe": func(node int, r *Recipe, _ *Options) {
			if node == 2 {
				r.Rate = 0.02
			}
		},
		"node n0 and node n1 can't share this job, since each has another content of the dataset": func(node int, _ *Recipe, o *Options) {
			if node == 1 {
				o.Dataset = "e"
			}
		},
	} {
		errs := ends(t, newMesh(3, uneven(len(shards), 3)), shards, func(node int, r *Recipe, _ []*graph.Shard, o *Options) { change(node, r, o) })
		said(t, errs, want)
	}
}

func TestAJobThatCannotBeShared(t *testing.T) {
	shards := communities(t, 1500)
	for want, change := range map[string]func(r *Recipe, held []*graph.Shard, o *Options){
		"the strategy single trains on one node, and the job has 2":    func(r *Recipe, _ []*graph.Shard, _ *Options) { r.Sharing.Strategy = strategy.Single },
		`there is no strategy "p3" for several nodes: take one of cen`: func(r *Recipe, _ []*graph.Shard, _ *Options) { r.Sharing.Strategy = strategy.P3 },
		`there is no strategy "cleverer"`:                              func(r *Recipe, _ []*graph.Shard, _ *Options) { r.Sharing.Strategy = "cleverer" },
		"for this job and doesn't hold it":                             func(_ *Recipe, held []*graph.Shard, _ *Options) { clear(held) },
		"--split is 5, and the dataset has one only":                   func(r *Recipe, _ []*graph.Shard, _ *Options) { r.Split = 5 },
		"leap.mode=fly": func(r *Recipe, _ []*graph.Shard, _ *Options) { r.Sharing.Leap.Mode = "fly" },
		"names the owners of 4 shards, and its dataset has 5": func(_ *Recipe, _ []*graph.Shard, o *Options) { o.Work.Owners = o.Work.Owners[:4] },
		"is owned by node 7 of a job's 2 nodes": func(_ *Recipe, _ []*graph.Shard, o *Options) {
			o.Work.Owners = slices.Clone(o.Work.Owners)
			o.Work.Owners[4] = 7
		},
	} {
		errs := ends(t, newMesh(2, uneven(len(shards), 2)), shards, func(_ int, r *Recipe, held []*graph.Shard, o *Options) { change(r, held, o) })
		said(t, errs, want)
	}
	if _, err := Run(t.Context(), short("gcn"), []*graph.Shard{shards[0], nil}, Options{}); err == nil || !strings.Contains(err.Error(), "shard 1 is not on this node") {
		t.Error(err)
	}
}

// spoilt are shards of which one has a feature that is no number.
func spoilt(shards []*graph.Shard, at int) []*graph.Shard {
	all := slices.Clone(shards)
	s := *shards[at]
	s.Dense = slices.Clone(s.Dense)
	for i := range s.Dense {
		s.Dense[i] = float32(math.Inf(1))
	}
	all[at] = &s
	return all
}

// Where one node finds that numbers are not finite, all end with that, in that step.
func TestAllNodesDivergeTogether(t *testing.T) {
	shards := spoilt(communities(t, 1500), 1) // of the last node
	for _, deterministic := range []bool{false, true} {
		start := time.Now()
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		errs := ends(t, newMesh(3, uneven(len(shards), 3)), shards, func(node int, r *Recipe, _ []*graph.Shard, o *Options) {
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
			if d, ok := errors.AsType[*Diverged](err); !ok || d.Features && d.Node != "" {
				t.Errorf("node %d: %v", node, err)
			}
		}
		if time.Since(start) > leaveAfter {
			t.Error("the nodes waited for each other in vain")
		}
	}
}

// Weights that differ are found out after the epoch, and both nodes named.
func TestWeightsThatDifferEndTheJob(t *testing.T) {
	shards := communities(t, 1500)
	r := small("gcn")
	r.Sharing = ways()["centric"]
	m := newMesh(3, uneven(len(shards), 3))
	all := m.start(t, r, shards, Options{Threads: 1})
	errs := make([]error, len(all))
	m.each(func(node int) error { //nolint:errcheck // each node's error is looked at by itself
		tr := all[node]
		if node == 1 {
			tr.device.Write32(tr.weights.View(0, 1, 3, 1), []float32{0.01})
		}
		errs[node] = tr.epoch(t.Context())
		return nil
	})
	said(t, errs, "after epoch 1, node n0 and node n1 have different weights", "faulty memory")
	if _, ok := errors.AsType[*Differing](errs[2]); !ok {
		t.Error(errs[2])
	}
}

// Of a sweep, the model is named.
func TestModelWhoseWeightsDifferIsNamed(t *testing.T) {
	shards := communities(t, 1500)
	r := swept(small("gcn"), "lr=0.01", "lr=0.03")
	r = everywhere(r, func(of *Recipe) { of.Sharing = ways()["centric"] })
	m := newMesh(2, uneven(len(shards), 2))
	all := m.start(t, r, shards, Options{Threads: 1})
	errs := make([]error, len(all))
	m.each(func(node int) error { //nolint:errcheck // each node's error is looked at by itself
		tr := all[node]
		if node == 1 {
			l := tr.learners[1]
			tr.device.Write32(l.weights.View(0, 1, 3, 1), []float32{0.01})
		}
		errs[node] = tr.epoch(t.Context())
		return nil
	})
	said(t, errs, "after epoch 1, node n0 and node n1 have different weights of model 1 (lr=0.03), though both")
}

// A node that fails ends the run of the others as soon as they ask it, each with a
// checkpoint.
func TestANodeThatIsGoneEndsTheRun(t *testing.T) {
	shards := communities(t, 1500)
	gone := errors.New("n2 is gone")
	for _, after := range []uint32{0, 3} {
		m := newMesh(3, uneven(len(shards), 3))
		m.net.Trouble = func(_ context.Context, from, to int, q strategy.Query) error {
			if (from == 2 || to == 2) && q.Epoch == 1 && q.Step >= after && q.Service == strategy.Offers {
				return gone
			}
			return nil
		}
		folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		errs := ends(t, m, shards, func(node int, _ *Recipe, _ []*graph.Shard, o *Options) { o.Dir = folders[node] })
		said(t, errs, "n2 is gone", fmt.Sprintf("add up the gradients of epoch 1, step %d", after+1))
		for node := range errs {
			if _, err := os.Stat(filepath.Join(folders[node], CheckpointFile)); err != nil {
				t.Errorf("node %d: %v", node, err)
			}
		}
	}
}

// Wherever the nodes wait for one that doesn't answer, the end of the run ends that.
func TestWaitingEndsWithTheRun(t *testing.T) {
	shards := communities(t, 1500)
	for way, sharing := range ways() {
		for service := strategy.Rows; service <= strategy.Offers; service++ {
			if service == strategy.Draws && sharing.Topology != "sharded" {
				continue // nobody asks for any
			}
			r := short("sage")
			r.Sharing = sharing
			m := newMesh(3, uneven(len(shards), 3))
			ctx, cancel := context.WithCancelCause(t.Context())
			waiting := make(chan struct{}, 1000)
			m.net.Trouble = func(ctx context.Context, _, to int, q strategy.Query) error {
				if to != 0 || q.Service != service || service == strategy.Offers && q.Epoch == 0 {
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
				_, _, err := m.run(ctx, r, shards, Options{Threads: 2}, nil)
				ended <- err
			}()
			<-waiting
			cancel(errEnough)
			start := time.Now()
			if err := <-ended; !errors.Is(err, errEnough) || time.Since(start) > leaveAfter/2 {
				t.Errorf("%s, service %d: after %v: %v", way, service, time.Since(start), err)
			}
		}
	}
}

// lastWords runs a job whose nodes each go when their run ends; what trouble there is with
// words of leaving is said by the caller. It returns how long it took.
func lastWords(t *testing.T, leaving func(ctx context.Context, from int) error) time.Duration {
	shards := communities(t, 1500)
	m := newMesh(3, uneven(len(shards), 3))
	closed := make([]chan struct{}, 3)
	for i := range closed {
		closed[i] = make(chan struct{})
	}
	m.net.Trouble = func(ctx context.Context, from, to int, q strategy.Query) error {
		if from == 2 { // which is late with whatever it asks
			time.Sleep(5 * time.Millisecond)
		}
		if q.Service == strategy.Checkpoint {
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
	err := m.each(func(node int) error {
		defer close(closed[node])
		r := short("gcn")
		r.Sharing = ways()["leap"]
		held, o := m.of(node, shards, Options{Threads: 1})
		_, err := Run(t.Context(), r, held, o)
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
		if took := lastWords(t, func(context.Context, int) error { return nil }); took >= leaveAfter {
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
		if took < leaveAfter || took > leaveAfter+5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestNoGoroutineIsLeftBehindByAMesh(t *testing.T) {
	shards := communities(t, 1500)
	before := runtime.NumGoroutine()
	for _, sharing := range ways() {
		for _, questions := range []int64{20, 90, 200, 1 << 40} {
			r := short("sage")
			r.Sharing = sharing
			m := newMesh(3, uneven(len(shards), 3))
			if _, _, err := m.run(cancelAfter(t, m, questions), r, shards, Options{Threads: 2}, nil); err != nil && !errors.Is(err, errEnough) {
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
	shards := communities(t, 1500)
	r := small("gcn")
	r.Epochs = 2
	r.Sharing = ways()["leap"]
	for full := 1; full <= 3; full++ {
		dir := t.TempDir()
		of := func(node int) string { return filepath.Join(dir, fmt.Sprint(node)) }
		for node := range full { // a file is where the folder would be
			if err := os.WriteFile(of(node), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		results, _, err := newMesh(3, uneven(len(shards), 3)).run(t.Context(), r, shards, Options{Threads: 1, Interval: 1}, of)
		_, unsaved := errors.AsType[*Unsaved](err)
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
		if _, err := os.Stat(filepath.Join(of(2), CheckpointFile)); full < 3 && err != nil {
			t.Error(err)
		}
	}
}

// fullFolder is one that takes no checkpoint: a folder is where the file would be written.
func fullFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, CheckpointFile+".tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Such a node says why it keeps none, at once and then as often as it would keep one, and
// what it says is fit for a run that goes on.
func TestADiskThatIsFullIsToldOf(t *testing.T) {
	shards := communities(t, 1500)
	full := fullFolder(t)
	var log strings.Builder
	var told []error
	errs := ends(t, newMesh(2, uneven(len(shards), 2)), shards, func(node int, r *Recipe, _ []*graph.Shard, o *Options) {
		r.Epochs, o.Dir = 8, t.TempDir()
		if node == 1 {
			o.Dir, o.Log = full, slog.New(slog.NewTextHandler(&log, nil))
			o.Kept = func(err error) { told = append(told, err) }
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0] == nil || strings.Contains(told[0].Error(), "resume") {
		t.Errorf("told %v of a disk that is full in 8 epochs", told)
	}
	if n := strings.Count(log.String(), "the training goes on and tries again"); n != 1 || strings.Contains(log.String(), "train resume") {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// What was told is taken back when a checkpoint can be written again.
func TestADiskThatHasRoomAgainIsToldOf(t *testing.T) {
	shards := communities(t, 1500)
	dir := fullFolder(t)
	var told []bool
	errs := ends(t, newMesh(2, uneven(len(shards), 2)), shards, func(node int, r *Recipe, _ []*graph.Shard, o *Options) {
		r.Epochs, o.Dir, o.Interval = 4, t.TempDir(), 1
		if node == 1 {
			o.Dir = dir
			o.Report = func(e Epoch) {
				if e.Epoch == 3 {
					_ = os.Remove(filepath.Join(dir, CheckpointFile+".tmp"))
				}
			}
			o.Kept = func(err error) { told = append(told, err == nil) }
		}
	})
	if err := errors.Join(errs...); err != nil || len(told) < 2 || told[0] || !told[len(told)-1] {
		t.Errorf("%v, told %v", err, told)
	}
}

// A node without room goes on from the checkpoint of another, and keeps none.
func TestADiskThatIsFullTakesOverACheckpoint(t *testing.T) {
	defer func(n uint64) { mostPiece = n }(mostPiece)
	mostPiece = 1000
	r := small("gcn")
	r.Sharing = ways()["leap"]
	folders := left(t, newMesh(3, uneven(5, 3)), r, func(int, *learner) {})
	folders[1] = fullFolder(t)
	all := again(t, newMesh(3, uneven(5, 3)), r, folders)
	for node, l := range all {
		if l.at.Epoch != 2 || l.hash() != all[0].hash() || l.saved.good == (node == 1) || l.saved.failed != (node == 1) {
			t.Errorf("node %d begins at epoch %d with %+v", node, l.at.Epoch, l.saved)
		}
	}
}
