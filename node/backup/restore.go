package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/backup/archive"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/member"
)

// Restored is what Restore has restored.
type Restored struct {
	Mesh, Name string
	Index      uint64    // of the plan when the backup was made
	Made       time.Time // by the clock of the node that made it
	Others     []string  // names of the other members
	Datasets   []string  // names of those that are whole
	Absent     []string  // names of those of which no shard is here
	Jobs       []string  // ids of those whose checkpoints are here
}

// Restore makes dir, which must be empty or absent, the data directory of the node that a backup is
// of. Everything is written beside it, verified, and renamed. now is the time, by which the plan
// outranks those that nodes of the lost mesh still have.
func Restore(ctx context.Context, file, dir string, now time.Time, log *slog.Logger) (r Restored, err error) {
	from, err := os.Open(file)
	if err != nil {
		return r, fmt.Errorf("read the backup: %w", err)
	}
	defer from.Close()
	// Of "." the name must be known, and what is beside it.
	if dir, err = filepath.Abs(dir); err != nil {
		return r, fmt.Errorf("restore into %s: %w", dir, err)
	}
	if err := vacant(dir); err != nil {
		return r, err
	}
	temp := dir + ".partial"
	if err := os.Mkdir(temp, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = errors.New("it is there already, left by a restore that was interrupted: remove it")
		}
		return r, fmt.Errorf("restore into %s: %w", temp, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	w := &restoring{ctx: ctx, log: log, now: now}
	if err := w.fill(from, file, temp); err != nil {
		return r, err
	}
	// Go renames no directory onto another, even if that is empty.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("restore into %s: %w", dir, err)
	}
	if err := os.Rename(temp, dir); err != nil {
		return r, fmt.Errorf("restore into %s: %w", dir, err)
	}
	return w.done, syncDir(filepath.Dir(dir))
}

// vacant returns an error unless dir may be replaced by a restored directory.
func vacant(dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("restore into %s: %w", dir, err)
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	above, aboveErr := os.Stat(parent)
	if err = cmp.Or(err, aboveErr); err != nil {
		return fmt.Errorf("restore into %s: %w", dir, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory: name one that is empty, or that does not exist", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("restore into %s: %w", dir, err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty (it holds %s): name another --data-dir, or move it away", dir, entries[0].Name())
	}
	own, is := info.Sys().(*syscall.Stat_t)
	its, are := above.Sys().(*syscall.Stat_t)
	if is && are && own.Dev != its.Dev {
		return fmt.Errorf("%s is the root of a file system, which can't be replaced as a whole: name a directory in it", dir)
	}
	return nil
}

// restoring is the state of one Restore.
type restoring struct {
	ctx  context.Context
	log  *slog.Logger
	now  time.Time
	dir  *member.Dir
	list archive.List
	raw  bytes.Buffer // the plan
	plan *plan.State
	done Restored
}

// fill makes temp a whole data directory.
func (w *restoring) fill(from io.Reader, file, temp string) (err error) {
	w.dir, err = member.OpenDir(temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.dir.Close()) }()
	sums, err := archive.Read(during{w.ctx, from}, w.begin, w.open)
	if err == nil {
		err = w.verify(sums)
	}
	switch {
	case w.ctx.Err() != nil:
		return context.Cause(w.ctx)
	case errors.Is(err, archive.ErrDamaged), errors.Is(err, archive.ErrForeign):
		return fmt.Errorf("%s: %w; nothing was restored", file, err)
	case err != nil:
		return fmt.Errorf("restore %s: %w", file, err)
	}
	if err := w.begun(filepath.Join(temp, "raft")); err != nil {
		return err
	}
	return syncTree(temp)
}

// maxSkew is by how much the clocks of two machines may differ.
const maxSkew = 10 * time.Minute

// begin checks what the list says before anything is written.
func (w *restoring) begin(l archive.List) error {
	w.list = l
	if _, ok := member.Disk.Common(mesh.Range{Min: l.Disk, Max: l.Disk}); !ok || l.Disk < 1 {
		return fmt.Errorf("the backup is of a data directory that is kept by number %d (hopmesh %.40q), and this version reads %s: restore it with that version", l.Disk, l.Version, member.Disk)
	}
	// The time is what makes this plan outrank those of the lost mesh.
	if w.now.Before(l.Made.Add(-maxSkew)) {
		return fmt.Errorf("the backup was made at %s, and this machine's clock says %s: set the clock, so that nodes of the lost mesh find the restored plan the newer one", l.Made.Format(time.RFC3339), w.now.UTC().Format(time.RFC3339))
	}
	free, _, err := budget.Disk(filepath.Dir(w.dir.Identity()))
	if err == nil && l.Bytes() > free {
		return fmt.Errorf("the backup takes %s, and %s are free there: make room, or name another --data-dir", budget.Format(l.Bytes()), budget.Format(free))
	}
	return nil
}

// open makes the file for one of the backup.
func (w *restoring) open(f archive.File) (io.WriteCloser, error) {
	kind, id, shard := f.Kind()
	if kind > archive.Plan && w.plan == nil {
		if err := w.readPlan(); err != nil {
			return nil, err
		}
	}
	var path string
	switch kind {
	case archive.Plan:
		return buffer{&w.raw}, nil
	case archive.Identity:
		path = filepath.Join(w.dir.Identity(), id)
	case archive.Shard:
		d := w.plan.Datasets[id]
		if shard >= len(d.Shards) || int64(d.Shards[shard].Bytes) != f.Bytes {
			return nil, fmt.Errorf("%w: its plan has no %s of %d bytes", archive.ErrDamaged, f.Name, f.Bytes)
		}
		path = filepath.Join(w.dir.Datasets(), id, graph.ShardFile(shard))
	case archive.Checkpoint:
		j, in := w.plan.Jobs[id]
		if !in || filepath.Base(jobs.FolderOf(j)) != jobs.FolderOf(j) {
			return nil, fmt.Errorf("%w: its plan has no job %s", archive.ErrDamaged, id)
		}
		path = filepath.Join(w.dir.Jobs(), jobs.FolderOf(j), train.CheckpointFile)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// buffer is what is kept in memory. The archive bounds its length.
type buffer struct{ *bytes.Buffer }

func (buffer) Close() error { return nil }

func (w *restoring) readPlan() error {
	s, err := plan.UnmarshalSnapshot(w.raw.Bytes())
	if errors.Is(err, plan.ErrUnknownCommand) {
		return fmt.Errorf("a later version of hopmesh (%.40q) made it: restore it with that version: %w", w.list.Version, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", archive.ErrDamaged, err)
	}
	w.plan, w.raw = s, bytes.Buffer{}
	return nil
}

// verify compares what was written with the plan, and the parts with each other.
func (w *restoring) verify(sums map[string]string) error {
	if w.plan == nil {
		if err := w.readPlan(); err != nil {
			return err
		}
	}
	s, l := w.plan, w.list
	id, err := identity.Load(w.dir.Identity(), identity.Options{})
	if err != nil {
		return fmt.Errorf("%w: its identity can't be used: %w", archive.ErrDamaged, err)
	}
	if _, in := s.Members[l.Node]; !in || id.ID() != l.Node || id.MeshID() != s.MeshID || l.Mesh != s.MeshID || l.Index != s.Index {
		return fmt.Errorf("%w: its list, its plan and its identity are not of one node and one mesh", archive.ErrDamaged)
	}
	if max(s.Index, s.Generation, l.Term) > maxNumber {
		return fmt.Errorf("%w: the plan's index, generation or term is above all that a mesh reaches", archive.ErrDamaged)
	}
	if !id.HasCAKey() {
		return fmt.Errorf("%w: it has no key of the mesh's CA", archive.ErrDamaged)
	}
	w.done = Restored{Mesh: s.MeshID, Name: id.Name(), Index: s.Index, Made: l.Made}
	for _, m := range s.Members {
		if m.ID != l.Node {
			w.done.Others = append(w.done.Others, m.Name)
		}
	}
	for _, d := range s.Datasets {
		have := 0
		for i, want := range d.Shards {
			switch sums[archive.ShardName(d.ID, i)] {
			case want.SHA256:
				have++
			case "":
			default:
				return fmt.Errorf("%w: shard %d of dataset %s has not the SHA-256 that the plan names", archive.ErrDamaged, i, d.Name)
			}
		}
		switch {
		case have == 0:
			w.done.Absent = append(w.done.Absent, d.Name)
		case have < len(d.Shards):
			return fmt.Errorf("%w: it has %d of %d shards of dataset %s", archive.ErrDamaged, have, len(d.Shards), d.Name)
		default:
			w.done.Datasets = append(w.done.Datasets, d.Name)
		}
	}
	for _, j := range s.JobsInOrder() {
		if sums[archive.CheckpointName(j.ID)] != "" {
			w.done.Jobs = append(w.done.Jobs, j.ID)
		}
	}
	slices.Sort(w.done.Others)
	slices.Sort(w.done.Datasets)
	slices.Sort(w.done.Absent)
	return nil
}

// leap is by how much a restored plan is ahead at least. The time makes that of a later restore
// outrank that of an earlier one from the same file, and what was decided after that: in
// microseconds, since a mesh may decide more than once in a second, but not so often.
const leap = 1_000_000

func (w *restoring) ahead(n uint64) uint64 { return max(n+leap, uint64(max(w.now.UnixMicro(), 0))) }

// maxNumber bounds a plan's numbers in a backup, so that none overflows. It is far above what is
// reached, also by many restores.
const maxNumber = 1 << 60

// begun writes the log from which the node starts.
func (w *restoring) begun(dir string) error {
	s, term, err := w.forAlone()
	if err != nil {
		return fmt.Errorf("restore the plan: %w", err)
	}
	stores, err := consensus.DiskStores(dir, w.log)
	if err != nil {
		return err
	}
	return errors.Join(consensus.Restore(stores, w.list.Node, s, term), stores.Close())
}

// forAlone returns the plan as this node must find it: ahead of all others, with this node as the
// only holder of the datasets that came with it, and as none of the others.
func (w *restoring) forAlone() (*plan.State, uint64, error) {
	s := *w.plan
	s.Index, s.Generation = w.ahead(s.Index), w.ahead(s.Generation)
	now, self := &s, w.list.Node
	for _, id := range slices.Sorted(maps.Keys(w.plan.Datasets)) {
		d := w.plan.Datasets[id]
		if d.Stage == plan.Importing {
			continue
		}
		all, alone := make([]int, len(d.Shards)), make([][]int, len(d.Shards))
		for i := range all {
			all[i], alone[i] = i, []int{0}
		}
		changes := []plan.Command{plan.LoseShards{ID: id, Node: self, Shards: all}}
		if slices.Contains(w.done.Datasets, d.Name) {
			// Once all that is wanted is held, the plan names no other holders.
			changes = []plan.Command{plan.PlaceShards{ID: id, Nodes: []string{self}, Wanted: alone}, plan.HoldShards{ID: id, Node: self, Shards: all}}
		}
		for _, c := range changes {
			b, err := plan.Encode(c)
			if err != nil {
				return nil, 0, err
			}
			if now, err = plan.Apply(now, now.Index+1, b); err != nil {
				return nil, 0, fmt.Errorf("dataset %s: %w", d.Name, err)
			}
		}
	}
	return now, w.ahead(w.list.Term), nil
}

// syncTree brings a folder and all in it to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncDir(path)
	})
}

// syncDir brings a file, or the names in a folder, to the disk.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
