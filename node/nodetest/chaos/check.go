package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// How long a mesh may take after its last fault.
const (
	toAgree  = 3 * time.Minute
	toFinish = 15 * time.Minute
)

// recover ends all faults, starts all nodes that have not gone, and waits until the mesh
// is well and the job is done.
func (w *world) recover() {
	w.bury()
	w.c.Network.Heal()
	w.c.Network.Lose(0, 0)
	for _, i := range w.c.Nodes {
		w.c.Network.Slow(i.IP(), slowly)
		i.Relieve()
		w.restart(i)
	}
	w.asked.Wait()
	w.c.Wait("all nodes are ready and hold equal plans", toAgree, func() bool { w.look(); return w.agreed() })
	late := time.Now().Add(toFinish / 2)
	w.c.Wait("the job is done", toFinish, func() bool {
		if !late.IsZero() && time.Now().After(late) { // for who reads the failure
			late = time.Time{}
			for _, i := range w.staying() {
				j := w.jobOn(i, w.job)
				w.c.T.Logf("%s: job %s is %s on %v, generation %d, epoch %d, step %d of %d; %q", i.Name, j.ID, j.State, j.Nodes, j.Generation, j.Epoch, j.Step, j.Steps, j.Problems)
			}
		}
		w.look()
		return w.done(w.job)
	})
}

// staying lists the nodes that have not gone. Who was asked to go may have stayed, if
// nobody did it.
func (w *world) staying() []*nodetest.Instance {
	var list []*nodetest.Instance
	for _, i := range w.c.Nodes {
		if ended, _ := i.Ended(); i.Running() && !ended {
			list = append(list, i)
		}
	}
	return list
}

func (w *world) agreed() bool {
	digests := map[string]bool{}
	for _, i := range w.staying() {
		s := i.Status()
		if !s.Ready {
			if w.going[i] {
				continue // on its way out
			}
			return false
		}
		digests[i.Plan().Digest] = true
	}
	return len(digests) == 1
}

// done reports whether a job has ended, and fails the test if it ended in another way
// than it should.
func (w *world) done(id string) bool {
	for _, i := range w.staying() {
		switch j := w.jobOn(i, id); j.State {
		case "failed", "stopped":
			w.c.T.Fatalf("job %s is %s on %s: %s", id, j.State, i.Name, j.Error)
		case "done":
			return true
		}
	}
	return false
}

// check checks what must hold after a history. want are the weights of each epoch of
// a job that nothing happened to.
func (w *world) check(want []string) {
	t := w.c.T
	w.c.Wait("all know that the job is done", time.Minute, func() bool {
		for _, i := range w.staying() {
			if !w.going[i] && w.jobOn(i, w.job).State != "done" {
				return false
			}
		}
		return true
	})
	j := w.jobOn(w.member(), w.job)
	t.Logf("the job of %s took %d generations", w.h.Strategy, generations(j))
	if got := weights(j); !slices.Equal(got, want) {
		t.Errorf("the job's weights differ from epoch %d on of %d, with %d epochs in its history", firstOther(got, want), len(want), len(got))
	}
	if err := w.ledger.err(); err != nil {
		t.Error(err)
	}
	if err := w.kept(context.Background(), w.member().API()); err != nil {
		t.Error(err)
	}
	w.c.Wait("the former CA has ended", toAgree, func() bool {
		return succeeded(context.Background(), w.member().API(), func(name string) bool {
			return slices.ContainsFunc(w.staying(), func(i *nodetest.Instance) bool { return i.Name == name })
		})
	})
	w.c.Wait("each shard has an owner and copies again", toAgree, func() bool {
		for name, sure := range w.datasets {
			if sure && copies(w.member().Dataset(name)) < 2 {
				return false
			}
		}
		return true
	})
	if w.h.Disk { // files that nobody has read since
		w.verify()
	}
	// A node that has found damage is without the shard until it has another copy.
	var err error
	defer func() {
		if err != nil {
			t.Log(err)
		}
	}()
	w.c.Wait("who is said to hold a shard holds it", toAgree, func() bool {
		w.look()
		err = w.c.CheckHolders()
		return err == nil
	})
	w.c.Wait("no node has files of which nobody knows", toAgree, func() bool {
		w.look()
		for _, i := range w.staying() {
			if err = errors.Join(i.CheckFiles(), leftovers(i.Options.DataDir)); err != nil && !w.going[i] {
				return false
			}
		}
		err = nil
		return true
	})
	w.named()
}

// leftovers returns an error if files lie below a node's folder that were never finished.
func leftovers(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // files come and go
		}
		if name := filepath.Base(path); err == nil && (strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".part") || strings.Contains(name, ".borrowed-")) {
			return fmt.Errorf("%s is left", path)
		}
		return err
	})
}

// verify has all nodes read their files, which ends with an error where one is damaged. Those that
// gossip does not see yet would not be asked.
func (w *world) verify() {
	w.c.Wait("all see each other", toAgree, func() bool {
		for _, i := range w.staying() {
			for _, m := range i.Members() {
				alive := slices.ContainsFunc(w.staying(), func(o *nodetest.Instance) bool { return o.Name == m.Name && !w.going[o] })
				if alive && m.Status != "alive" {
					return false
				}
			}
		}
		return true
	})
	ctx, cancel := context.WithTimeout(context.Background(), toAgree)
	defer cancel()
	for name, sure := range w.datasets {
		if sure {
			if err := w.member().API().VerifyDataset(ctx, name, func(api.DatasetEvent) {}); err != nil {
				w.c.T.Logf("verify %s: %v", name, err)
			}
		}
	}
}

// member returns a node that belongs to the mesh.
func (w *world) member() *nodetest.Instance {
	for _, i := range w.staying() {
		if !w.going[i] {
			return i
		}
	}
	w.c.T.Fatal("no node is left")
	return nil
}

// weights are the hashes of a job's epochs. An epoch that is there twice, or not at all,
// makes them differ from any other's.
func weights(j api.Job) []string {
	var list []string
	for i, e := range j.History {
		if e.Epoch != i+1 {
			return append(list, fmt.Sprintf("epoch %d where %d is due", e.Epoch, i+1))
		}
		list = append(list, e.Weights)
	}
	return list
}

func firstOther(got, want []string) int {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return i + 1
		}
	}
	return min(len(got), len(want)) + 1
}

// generations counts the assignments in which a job trained.
func generations(j api.Job) int {
	seen := map[uint64]bool{}
	for _, e := range j.History {
		seen[e.Generation] = true
	}
	return len(seen)
}
