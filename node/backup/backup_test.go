package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/backup/archive"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/shards"
)

const (
	other   = "00000000000000bb"
	dataset = "0123456789abcdef"
)

// world is a node n1 in a mesh with n2, which holds the second shard of dataset g.
type world struct {
	dir    string
	id     *identity.Identity
	state  *plan.State
	silent bool   // n2 does not answer
	second string // content of the shard that n2 holds
	lost   bool   // the shard of n1 is damaged
}

func content(shard int) string { return strings.Repeat(fmt.Sprint("shard ", shard), 1000) }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), second: content(1)}
	var err error
	if w.id, err = identity.Found(filepath.Join(w.dir, "identity"), "n1", identity.Options{}); err != nil {
		t.Fatal(err)
	}
	self := w.id.ID()
	d := plan.Dataset{ID: dataset, Name: "g", Stage: plan.Ready, Importer: self, Replicas: 1, Nodes: []string{self, other}}
	slices.Sort(d.Nodes)
	for i := range 2 {
		sum := sha256.Sum256([]byte(content(i)))
		at := slices.Index(d.Nodes, []string{self, other}[i])
		d.Shards = append(d.Shards, plan.Shard{
			ShardAbout: plan.ShardAbout{Vertices: 1, Bytes: uint64(len(content(i))), SHA256: hex.EncodeToString(sum[:])}, Holders: []int{at},
		})
	}
	d.About = plan.About{Vertices: 2, DType: "f32", Partitioner: "random"}
	w.state = &plan.State{
		Index: 70, Generation: 60, MeshID: w.id.MeshID(),
		Members:  map[string]plan.Member{self: {ID: self, Name: "n1"}, other: {ID: other, Name: "n2"}},
		Key:      plan.Key{Serial: 1, Digest: identity.KeyDigest(w.id.GossipKeys()[0].Key)},
		Datasets: map[string]plan.Dataset{dataset: d},
	}
	if err := os.WriteFile(w.file(0), []byte(content(0)), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) file(shard int) string { return filepath.Join(w.dir, graph.ShardFile(shard)) }

func (w *world) State() *plan.State { return w.state }
func (w *world) Term() uint64       { return 5 }
func (w *world) Servers() []plan.Server {
	return []plan.Server{{ID: w.id.ID(), Voter: true}, {ID: other, Voter: true}}
}

func (w *world) Confirm(_ context.Context, _ string, shard int, _ fs.FileInfo) error {
	if w.lost {
		return &shards.Unusable{Shard: shard, Why: "damaged"}
	}
	return nil
}

func (w *world) Borrow(_ context.Context, _ string, list []int, folder string) error {
	for _, i := range list {
		text := content(i)
		if i == 1 {
			text = w.second
		}
		if err := os.WriteFile(filepath.Join(folder, graph.ShardFile(i)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) maker() *Maker {
	return New(Config{
		Version: "v1", Identity: w.id, Plan: w, Shards: w, ShardFile: func(_ string, shard int) string { return w.file(shard) },
		JobFolder: func(j plan.Job) string { return filepath.Join(w.dir, jobs.FolderOf(j)) }, Dir: filepath.Join(w.dir, "jobs"),
		Answers: func(string) bool { return !w.silent }, Log: slog.New(slog.DiscardHandler),
	})
}

// backup makes a backup, and returns it and what the maker says of it.
func (w *world) backup(t *testing.T, r api.BackupRequest) (b []byte, about api.Backup, err error) {
	t.Helper()
	var to bytes.Buffer
	err = w.maker().Write(t.Context(), r, &to, func(a api.Backup) error {
		about = a
		return nil
	})
	if left, listErr := os.ReadDir(filepath.Join(w.dir, "jobs")); len(left) > 0 {
		t.Errorf("%v are left: %v", left, listErr)
	}
	return to.Bytes(), about, err
}

// later is when backups are restored.
var later = time.Now().Add(time.Hour)

// restored restores a backup into a new directory.
func restored(t *testing.T, b []byte) (dir string, r Restored, err error) {
	t.Helper()
	above := t.TempDir()
	file := filepath.Join(above, "b.tar")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(above, "data")
	r, err = Restore(t.Context(), file, dir, later, slog.New(slog.DiscardHandler))
	return dir, r, err
}

// planIn is the plan that a node would find.
func planIn(t *testing.T, dir string) *plan.State {
	t.Helper()
	s, err := consensus.DiskStores(filepath.Join(dir, "raft"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	list, err := s.Snapshots.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%d snapshots: %v", len(list), err)
	}
	_, from, err := s.Snapshots.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	state, err := plan.UnmarshalSnapshot(b)
	if err != nil {
		t.Fatal(err)
	}
	if v := list[0].Configuration.Servers; len(v) != 1 || list[0].Term < uint64(later.UnixMicro()) || list[0].Index != state.Index {
		t.Errorf("it is of term %d and entry %d, with voters %v", list[0].Term, list[0].Index, v)
	}
	return state
}

func TestRestoredDatasetIsWholeOnOneNode(t *testing.T) {
	for _, lost := range []bool{false, true} { // a damaged shard here is taken from elsewhere
		w := newWorld(t)
		w.lost = lost
		b, about, err := w.backup(t, api.BackupRequest{Datasets: true})
		if err != nil || about.Node != "n1" || about.Index != 70 || !slices.Equal(about.Datasets, []string{"g"}) || len(about.Missing) != 0 {
			t.Fatalf("%+v: %v", about, err)
		}
		dir, r, err := restored(t, b)
		if err != nil || !slices.Equal(r.Datasets, []string{"g"}) || !slices.Equal(r.Others, []string{"n2"}) || r.Index != 70 {
			t.Fatalf("%+v: %v", r, err)
		}
		s, self := planIn(t, dir), w.id.ID()
		d := s.Datasets[dataset]
		for i := range 2 {
			if d.Owner(i) != self || len(d.HoldersOf(i)) != 1 || !d.Settled(i) {
				t.Errorf("shard %d is on %v", i, d.HoldersOf(i))
			}
			got, err := os.ReadFile(filepath.Join(dir, "datasets", dataset, graph.ShardFile(i)))
			if err != nil || string(got) != content(i) {
				t.Errorf("shard %d has %d bytes: %v", i, len(got), err)
			}
		}
		if s.Index < uint64(later.UnixMicro()) || s.Generation < uint64(later.UnixMicro()) || len(s.Members) != 2 || s.Key != w.state.Key {
			t.Errorf("the plan is %+v", s)
		}
		id, err := identity.Load(filepath.Join(dir, "identity"), identity.Options{})
		if err != nil || id.ID() != self || !id.HasCAKey() || id.CAHash() != w.id.CAHash() {
			t.Errorf("the identity is %v: %v", id, err)
		}
		err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("others can open %s: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Without shards a dataset stays in the plan, and this node claims none of them.
func TestRestoreWithoutShards(t *testing.T) {
	w := newWorld(t)
	w.silent = true // which does not matter
	b, about, err := w.backup(t, api.BackupRequest{})
	if err != nil || !slices.Equal(about.Missing, []string{"the shards of dataset g"}) || len(about.Datasets) != 0 {
		t.Fatalf("%+v: %v", about, err)
	}
	dir, r, err := restored(t, b)
	if err != nil || !slices.Equal(r.Absent, []string{"g"}) {
		t.Fatalf("%+v: %v", r, err)
	}
	d := planIn(t, dir).Datasets[dataset]
	if !d.Lost(0) || d.Owner(1) != other {
		t.Errorf("the shards are on %v and %v", d.HoldersOf(0), d.HoldersOf(1))
	}
}

func TestBackupIsRefused(t *testing.T) {
	for says, change := range map[string]func(w *world){
		"shard 1 of dataset g is on n2, which does not answer: start it again, or leave out --datasets": func(w *world) { w.silent = true },
		"shard 0 of dataset g is lost": func(w *world) {
			w.state.Datasets[dataset].Shards[0].Holders = nil
		},
		"datasets/" + dataset + "/1 changed while it was read":       func(w *world) { w.second = strings.ToUpper(w.second) },
		"it became shorter while it was read: make the backup again": func(w *world) { w.second = "short" },
		"node n1 has no key of the mesh's CA, so what is restored from its backup could admit no node: ask for the backup on n2": func(w *world) {
			dir := filepath.Join(w.dir, "identity")
			err := os.Remove(filepath.Join(dir, identity.CAKeyFile))
			if err == nil {
				w.id, err = identity.Load(dir, identity.Options{})
			}
			if err != nil {
				panic(err)
			}
		},
	} {
		w := newWorld(t)
		change(w)
		_, _, err := w.backup(t, api.BackupRequest{Datasets: true})
		if e, is := errors.AsType[*api.Error](err); !is || !strings.Contains(e.Message, says) || strings.Contains(e.Message, "\n") {
			t.Errorf("not %q: %v", says, err)
		}
	}
}

// A backup ends with its request.
func TestBackupIsInterrupted(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := w.maker().Write(ctx, api.BackupRequest{Datasets: true}, io.Discard, func(api.Backup) error {
		cancel()
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "the backup was interrupted") {
		t.Errorf("%v", err)
	}
	m := w.maker()
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(t.Context(), api.BackupRequest{}, io.Discard, nil); err == nil || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("%v", err)
	}
}

// made writes a backup with a list of its own and files that fit it.
func made(t *testing.T, w *world, change func(l *archive.List, files map[string][]byte)) []byte {
	t.Helper()
	whole, _, err := w.backup(t, api.BackupRequest{Datasets: true})
	if err != nil {
		t.Fatal(err)
	}
	var l archive.List
	files := map[string][]byte{}
	buffers := map[string]*bytes.Buffer{}
	_, err = archive.Read(bytes.NewReader(whole), func(list archive.List) error {
		l = list
		return nil
	}, func(f archive.File) (io.WriteCloser, error) {
		buffers[f.Name] = new(bytes.Buffer)
		return buffer{buffers[f.Name]}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range buffers {
		files[name] = b.Bytes()
	}
	change(&l, files)
	l.Files = slices.DeleteFunc(l.Files, func(f archive.File) bool { return files[f.Name] == nil })
	var to bytes.Buffer
	for i, f := range l.Files {
		l.Files[i].Bytes = int64(len(files[f.Name]))
	}
	a, err := archive.NewWriter(&to, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.Files {
		if _, err := a.Add(bytes.NewReader(files[f.Name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// What is whole in itself may still be no backup of one node.
func TestRestoreIsRefused(t *testing.T) {
	type files = map[string][]byte
	shard := archive.ShardName(dataset, 1)
	replan := func(f files, change func(s *plan.State)) {
		s, err := plan.UnmarshalSnapshot(f[archive.PlanName])
		if err != nil {
			panic(err)
		}
		change(s)
		if f[archive.PlanName], err = plan.MarshalSnapshot(s); err != nil {
			panic(err)
		}
	}
	forget := func(f files) {
		delete(f, archive.ShardName(dataset, 0))
		delete(f, shard)
	}
	for says, change := range map[string]func(l *archive.List, f files){
		"are not of one node and one mesh":              func(l *archive.List, _ files) { l.Node = other },
		"are not of one node and one mesh; nothing":     func(l *archive.List, _ files) { l.Mesh = other },
		"its plan and its identity are not of one node": func(l *archive.List, _ files) { l.Index++ },
		"its list, its plan and its identity are not":   func(_ *archive.List, f files) { replan(f, func(s *plan.State) { s.MeshID = other }) },
		"are not of one node and one mesh; nothing was": func(l *archive.List, f files) {
			replan(f, func(s *plan.State) { delete(s.Members, l.Node); s.Datasets = nil; forget(f) })
		},
		"it has no key of the mesh's CA":                                         func(_ *archive.List, f files) { delete(f, archive.IdentityName(identity.CAKeyFile)) },
		"its identity can't be used":                                             func(_ *archive.List, f files) { f[archive.IdentityName("node.pem")] = []byte("x") },
		"it has 1 of 2 shards of dataset g":                                      func(_ *archive.List, f files) { delete(f, shard) },
		"shard 1 of dataset g has not the SHA-256":                               func(_ *archive.List, f files) { f[shard] = bytes.ToUpper(f[shard]) },
		"its plan has no datasets/0123456789abcdef/1 of 3 bytes":                 func(_ *archive.List, f files) { f[shard] = []byte("abc") },
		"the snapshot of the plan is damaged: it does not begin as one; nothing": func(_ *archive.List, f files) { f[archive.PlanName] = []byte("x") },
		"a later version of hopmesh (\"v1\") made it":                            func(_ *archive.List, f files) { f[archive.PlanName] = []byte("hopmesh-plan/3 x\n") },
		"by number 7 (hopmesh \"v1\"), and this version reads 1:":                func(l *archive.List, _ files) { l.Disk = 7 },
		"the plan's index, generation or term is above all that a mesh reaches":  func(l *archive.List, _ files) { l.Term = 1<<64 - 1 },
		"and this machine's clock says":                                          func(l *archive.List, _ files) { l.Made = later.Add(maxSkew + time.Second) },
		"its plan has no job j9": func(l *archive.List, f files) {
			l.Files = append(l.Files, archive.File{Name: "jobs/j9"})
			f["jobs/j9"] = []byte("x")
		},
	} {
		w := newWorld(t)
		dir, _, err := restored(t, made(t, w, change))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("not %q: %v", says, err)
		}
		if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
			t.Errorf("%q leaves %v", says, left)
		}
	}
	whole, _, err := newWorld(t).backup(t, api.BackupRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for says, b := range map[string][]byte{"it is no backup": []byte("x"), "is cut off": whole[:len(whole)/2]} {
		dir, _, err := restored(t, b)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "b.tar: ") || !strings.Contains(err.Error(), "; nothing was restored") {
			t.Errorf("not %q: %v", says, err)
		}
		if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
			t.Errorf("%q leaves %v", says, left)
		}
	}
}

// A backup never takes the place of something.
func TestRestoreNeedsAnEmptyDirectory(t *testing.T) {
	w := newWorld(t)
	b, _, err := w.backup(t, api.BackupRequest{})
	if err != nil {
		t.Fatal(err)
	}
	above := t.TempDir()
	file := filepath.Join(above, "b.tar")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(file, b, 0o600))
	must(os.MkdirAll(filepath.Join(above, "full", "raft"), 0o700))
	must(os.Mkdir(filepath.Join(above, "half.partial"), 0o700))
	must(os.Mkdir(filepath.Join(above, "empty"), 0o700))
	must(os.Symlink("full", filepath.Join(above, "link")))
	restore := func(file, dir string) error {
		_, err := Restore(t.Context(), file, filepath.Join(above, dir), later, slog.New(slog.DiscardHandler))
		return err
	}
	for dir, says := range map[string]string{
		"full": "is not empty (it holds raft)", "half": "left by a restore that was interrupted: remove it", "b.tar": "is no directory", "link": "is no directory",
	} {
		if err := restore(file, dir); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := restore(filepath.Join(above, "none.tar"), "new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, dir := range []string{"empty", "deep/new", "slash/"} {
		if err := restore(file, dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	must(os.Mkdir(filepath.Join(above, "here"), 0o700))
	t.Chdir(filepath.Join(above, "here"))
	if _, err := Restore(t.Context(), file, ".", later, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("into the working directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(above, "here", "raft")); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Restore(ctx, file, filepath.Join(above, "late"), later, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(above, "late*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// A mesh that was restored decides much, and is lost again: the next restore of the same file is
// ahead of it.
func TestLaterRestoreOutranksWhatAnEarlierOneDecided(t *testing.T) {
	w := newWorld(t)
	first, second := restoring{now: later}, restoring{now: later.Add(time.Minute)}
	const decided = 60 * 1000 // a thousand in each second
	if a, b := first.ahead(w.state.Index), second.ahead(w.state.Index); b <= a+decided {
		t.Errorf("%d is not above %d", b, a+decided)
	}
	if a := (&restoring{now: time.Unix(-1, 0)}).ahead(7); a != 7+leap {
		t.Errorf("before 1970, it is %d", a)
	}
}

// A node that was away while the keys were replaced knows the plan before it has them.
func TestBackupNeedsTheKeysThatThePlanNames(t *testing.T) {
	for what, change := range map[string]func(*plan.State){
		"the gossip key": func(s *plan.State) {
			s.Key = plan.Key{Serial: 2, Digest: identity.KeyDigest(identity.NewGossipKey(2).Key)}
		},
		"the CA": func(s *plan.State) { s.Authority = &plan.Authority{Serial: 1} },
	} {
		w := newWorld(t)
		change(w.state)
		b, _, err := w.backup(t, api.BackupRequest{})
		if err == nil || !strings.Contains(err.Error(), "has not got the new ones yet: ask again") || len(b) > 0 {
			t.Errorf("%s: %d bytes: %v", what, len(b), err)
		}
	}
}
