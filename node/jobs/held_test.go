package jobs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/shards"
)

// scripted are Files whose answers a test sets.
type scripted struct {
	confirm func(shard int) error
	intact  func(shard int) bool
}

func (s *scripted) Confirm(_ context.Context, _ string, shard int, _ fs.FileInfo) error {
	return s.confirm(shard)
}
func (s *scripted) Intact(_ string, shard int, _ fs.FileInfo) bool        { return s.intact(shard) }
func (s *scripted) Suspect(string, int)                                   {}
func (s *scripted) Recognise(context.Context, string, int, shards.Opened) {}
func (s *scripted) Restored(string, int) (here, hope bool)                { return false, false }

// holding maps the shards of a world, and verifies them.
func holding(t *testing.T, w *world, files *scripted) *held {
	t.Helper()
	d := w.now().Datasets[datasetID]
	list, err := OpenShards(d, func(dataset string, shard int) string { return filepath.Join(w.dir, dataset, graph.ShardFile(shard)) })
	if err != nil {
		t.Fatal(err)
	}
	h := &held{files: files, dataset: d, shards: list}
	h.begin(filepath.Join(w.dir, datasetID))
	t.Cleanup(h.end)
	<-h.done
	return h
}

func TestLostShardsAreCounted(t *testing.T) {
	for n, says := range map[int]string{1: "(gone), and no", 2: "(gone), nor can another, and no", 3: "(gone), nor can 2 others, and no"} {
		e := LostShards{Dataset: "g"}
		for i := range n {
			e.Lost = append(e.Lost, &shards.Unusable{Shard: i, Why: "gone"})
		}
		if !strings.Contains(e.Error(), says) {
			t.Errorf("of %d: %v", n, &e)
		}
	}
}

// While one looks at a file that has changed, no other takes it for unchanged.
func TestOneLooksAtChanges(t *testing.T) {
	var h *held
	looks := 0
	h = holding(t, newWorld(t), &scripted{confirm: func(int) error { return nil }, intact: func(int) bool {
		looks++
		if h.looking.TryLock() {
			h.looking.Unlock()
			t.Error("another may look meanwhile, and sees no change")
		}
		return false
	}})
	if first, again := h.intact(), h.intact(); first || again || looks != 2 {
		t.Errorf("a changed file counts as unchanged after %d looks", looks)
	}
}

// An error that says nothing of the shards is no damage, and the next to wait tries again.
func TestConfirmFailsForAWhile(t *testing.T) {
	full := true
	h := holding(t, newWorld(t), &scripted{intact: func(int) bool { return true }, confirm: func(int) error {
		if full {
			return syscall.EMFILE
		}
		return nil
	}})
	err := h.verify(t.Context(), true)
	if !errors.Is(err, train.ErrUnverified) || !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
	full = false
	if err := errors.Join(h.verify(t.Context(), true), h.verify(t.Context(), false)); err != nil {
		t.Error(err)
	}
}

// A copy that the plan moves away while it is in use is no damage, unless it was written since it
// was confirmed.
func TestAMovedCopyIsNoDamage(t *testing.T) {
	for _, of := range []struct{ read, written bool }{{true, false}, {true, true}, {false, false}, {false, true}} {
		moved := false
		files := &scripted{
			intact: func(shard int) bool { return !moved || shard != 2 },
			confirm: func(shard int) error {
				if (moved || !of.read) && shard == 2 {
					return &shards.Unusable{Shard: 2, Why: "it has moved", Moved: true}
				}
				return nil
			},
		}
		w := newWorld(t)
		h := holding(t, w, files)
		moved = true
		h.watch.again()
		path := filepath.Join(w.dir, datasetID, graph.ShardFile(2))
		if of.written {
			flip(t, path)
		}
		err := h.verify(t.Context(), true)
		if _, lost := errors.AsType[*LostShards](err); lost != of.written || !lost && err != nil {
			t.Errorf("%+v: %v", of, err)
		}
		if of.written {
			continue
		}
		// Where the plan names it here again, that is another file: the mapping is as whole as before.
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		h.watch.again()
		if err := h.verify(t.Context(), true); err != nil {
			t.Errorf("%+v, once the file is gone: %v", of, err)
		}
		files.confirm = func(shard int) error {
			if shard == 2 {
				t.Error("a file that is gone is read")
			}
			return nil
		}
		h.watch.again()
		if err := h.confirm(t.Context()); err != nil {
			t.Errorf("%+v, once the file is gone: %v", of, err)
		}
	}
}

// flip changes the last byte of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte{b[len(b)-1] ^ 1}, int64(len(b)-1))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// While another node does not answer, no shards are read to find out whether they are to blame.
func TestSilenceIsNotBlamedOnShards(t *testing.T) {
	r := &run{held: held{files: &scripted{confirm: func(int) error { t.Error("a shard is read"); return nil }}}}
	w := newWorld(t)
	list, err := OpenShards(w.now().Datasets[datasetID], func(dataset string, shard int) string { return filepath.Join(w.dir, dataset, graph.ShardFile(shard)) })
	if err != nil {
		t.Fatal(err)
	}
	defer CloseShards(list)
	r.held.shards = list
	silent := &unanswered{errors.New("nothing is heard")}
	if err := r.blame(t.Context(), silent); !errors.Is(err, silent) {
		t.Error(err)
	}
}
