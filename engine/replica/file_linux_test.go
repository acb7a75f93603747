package replica

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// files counts the files of a folder that this process has mapped, and those it has open.
// None may have a name.
func files(t *testing.T, dir string) (mapped, open int) {
	t.Helper()
	if named, err := os.ReadDir(dir); err != nil || len(named) > 0 {
		t.Errorf("files with names: %v, %v", named, err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, dir+"/") {
			mapped++
		}
	}
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, dir+"/") {
			open++
		}
	}
	return mapped, open
}

// filed is a node whose cache has files.
type filed struct {
	t     *testing.T
	cache *Cache
	dir   string
	bring func(o Options) (*Replica, error)
	held  []*graph.Shard
}

func newFiled(t *testing.T) *filed {
	f := &filed{t: t, dir: t.TempDir()}
	f.cache = NewCache(f.dir)
	net, works, here := mesh(4, graphs(true), owners)
	f.held = here[0]
	f.bring = func(o Options) (*Replica, error) {
		o.Dataset, o.Cache = "x", f.cache
		return Bring(t.Context(), net.Node(0), works[0], here[0], o)
	}
	t.Cleanup(func() {
		if err := f.cache.Close(); err != nil {
			t.Error(err)
		}
		f.has(0)
	})
	return f
}

// must brings what is there without fault.
func (f *filed) must(o Options) *Replica {
	f.t.Helper()
	r, err := f.bring(o)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// has fails the test unless so many files are mapped, and none is open.
func (f *filed) has(want int) {
	f.t.Helper()
	if mapped, open := files(f.t, f.dir); mapped != want || open != 0 {
		f.t.Errorf("%d files are mapped, not %d, and %d are open", mapped, want, open)
	}
}

// Edges of other nodes lie in files, whose shards are those that come without; they are given
// up with what they were brought for.
func TestEdgesLieInFiles(t *testing.T) {
	for _, bare := range []bool{true, false} {
		f := newFiled(t)
		files := f.cache
		f.cache = nil
		want := f.must(Options{Topology: replicated, Bare: bare})
		f.cache = files
		got := f.must(Options{Topology: replicated, Bare: bare})
		f.has(5)
		if got.Bytes != 0 || got.Filed != want.Bytes || want.Filed != 0 || !got.Replicated {
			t.Errorf("%d bytes in memory and %d in files of %d", got.Bytes, got.Filed, want.Bytes)
		}
		for i, s := range got.Shards {
			of := want.Shards[i]
			if !reflect.DeepEqual(s.Indptr, of.Indptr) || !reflect.DeepEqual(s.Indices, of.Indices) || !reflect.DeepEqual(s.Weights, of.Weights) || !reflect.DeepEqual(s.Labels, of.Labels) || !reflect.DeepEqual(s.Marks, of.Marks) || !reflect.DeepEqual(got.Seeds[i], want.Seeds[i]) {
				t.Errorf("shard %d is %+v, not %+v", i, s, of)
			}
		}
		if again := f.must(Options{Topology: replicated, Bare: bare}); again.Filed != got.Filed || again.Shards[1] != got.Shards[1] {
			t.Error("the cached shards are others")
		}
		f.has(5)
		// What waits for later is taken at once if it is here.
		if again := f.must(Options{Bare: bare, Later: true, Memory: 1 << 16}); again.Later != 0 || !again.Replicated {
			t.Errorf("%d bytes are left for later", again.Later)
		}
		for range 2 {
			if err := got.Shed(f.held, f.cache); err != nil {
				t.Fatal(err)
			}
		}
		f.has(0)
		for i, s := range got.Shards { // nothing of it lies in a file that is gone
			if f.held[i] == nil && (s.Indptr != nil || !reflect.DeepEqual(s.Labels, want.Shards[i].Labels) || !reflect.DeepEqual(s.Marks, want.Shards[i].Marks) || !reflect.DeepEqual(got.Seeds[i], want.Seeds[i])) {
				t.Errorf("shard %d without edges is %+v", i, s)
			}
		}
		f.must(Options{Topology: replicated, Bare: bare})
		f.has(5)
		f.must(Options{Topology: sharded, Bare: bare})
		f.has(0)
	}
}

// What a run that can't be trusted has fetched is given up with its files.
func TestForgottenEdgesHaveNoFiles(t *testing.T) {
	f := newFiled(t)
	for range 2 {
		f.must(Options{Topology: replicated})
		f.has(5)
		if err := f.cache.Forget(); err != nil {
			t.Fatal(err)
		}
		f.has(0)
	}
	if err := (*Cache)(nil).Forget(); err != nil {
		t.Error(err)
	}
}

// Edges that come later are taken over with their files.
func TestEdgesThatComeLaterLieInFiles(t *testing.T) {
	f := newFiled(t)
	r := f.must(Options{Bare: true, Later: true, Memory: 1 << 17})
	f.has(0)
	bytes := r.Bytes
	if r.Later == 0 || r.Filed != 0 {
		t.Fatalf("%+v", r)
	}
	r.Take(f.held, f.must(Options{Bare: true, Fits: true, Memory: 1 << 15}))
	f.has(5)
	if r.Later != 0 || r.Filed == 0 || r.Bytes != bytes || !r.Replicated {
		t.Errorf("%d bytes in memory and %d in files", r.Bytes, r.Filed)
	}
	if err := r.Shed(f.held, f.cache); err != nil || r.Filed != 0 || r.Bytes == 0 {
		t.Errorf("%d bytes in files: %v", r.Filed, err)
	}
	f.has(0)
}

// A full disk is one sentence, and a node does without edges unless it must have them.
func TestADiskWithoutRoom(t *testing.T) {
	for name, full := range map[string]func(c *Cache){
		"before it is written": func(c *Cache) {
			c.Free = func(string) (uint64, bool, error) { return 100, false, nil }
		},
		"no file can be made": func(c *Cache) {
			c.create = func(dir, _ string) (*os.File, error) {
				return nil, &os.PathError{Op: "open", Path: dir, Err: syscall.ENOSPC}
			}
		},
		"while it is written": func(c *Cache) {
			n, create := 0, c.create
			c.create = func(dir, pattern string) (*os.File, error) {
				if n++; n < 4 {
					return create(dir, pattern)
				}
				return os.OpenFile("/dev/full", os.O_RDWR, 0)
			}
		},
	} {
		f := newFiled(t)
		full(f.cache)
		f.cache.create = oneByOne(f.cache.create)
		r := f.must(Options{})
		f.has(0)
		if r.Replicated || r.Filed != 0 || r.Later != 0 || !strings.HasPrefix(r.Full, "the edges of other nodes' shards take ") || !strings.Contains(r.Full, f.dir+" has no room, so this node asks others") || strings.Contains(r.Full, "\n") {
			t.Errorf("%s: %+v", name, r)
		}
		_, err := f.bring(Options{Topology: replicated})
		if _, is := errors.AsType[*Full](err); !is || !strings.HasSuffix(err.Error(), "free some space there, or use {topology}=sharded") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err = f.bring(Options{Topology: replicated, Needed: true}); err == nil || !strings.HasSuffix(err.Error(), "has no room: free some space there") {
			t.Errorf("%s, of a job that needs them: %v", name, err)
		}
		f.cache.Close()
		f.has(0)
	}
}

// A disk that fails is an error, and nothing is left of what was written.
func TestADiskThatFails(t *testing.T) {
	f := newFiled(t)
	n, create := 0, f.cache.create
	f.cache.create = func(dir, pattern string) (*os.File, error) {
		if n++; n < 4 {
			return create(dir, pattern)
		}
		return os.Open("/dev/null") // it can't be written to
	}
	f.cache.create = oneByOne(f.cache.create)
	if _, err := f.bring(Options{}); err == nil || !strings.Contains(err.Error(), "keep edges in a file of the folder "+f.dir) {
		t.Error(err)
	}
}

// Where there can be no files, edges are in memory.
func TestFoldersWithoutFiles(t *testing.T) {
	for name, of := range map[string]func(f *filed){
		"there is none":  func(f *filed) { f.cache = NewCache(f.dir + "/none") },
		"it is memory":   func(f *filed) { f.cache.Free = func(string) (uint64, bool, error) { return 1 << 40, true, nil } },
		"it is unknown":  func(f *filed) { f.cache.Free = func(string) (uint64, bool, error) { return 0, false, syscall.EIO } },
		"none was given": func(f *filed) { f.cache = new(Cache) },
	} {
		f := newFiled(t)
		of(f)
		if r := f.must(Options{}); !r.Replicated || r.Bytes == 0 || r.Filed != 0 || r.Full != "" {
			t.Errorf("%s: %+v", name, r)
		}
		f.has(0)
	}
}

// oneByOne makes a function safe for concurrent use.
func oneByOne(create func(dir, pattern string) (*os.File, error)) func(dir, pattern string) (*os.File, error) {
	turn := make(chan struct{}, 1)
	return func(dir, pattern string) (*os.File, error) {
		turn <- struct{}{}
		defer func() { <-turn }()
		return create(dir, pattern)
	}
}
