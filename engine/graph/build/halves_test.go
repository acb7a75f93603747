package build

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// pairs is a source that yields the edges given to it.
type pairs struct {
	*memory
	batch graph.EdgeBatch
}

func (p pairs) Edges(_ context.Context, yield func(graph.EdgeBatch) error) error {
	return yield(p.batch)
}

// An edge that is followed by the same one the other way is spooled with it as two records
// and not four, and the shards are those of any other order.
func TestPairsAreSpooledOnce(t *testing.T) {
	apart := graph.EdgeBatch{Src: []uint32{1, 2, 5, 2, 3, 7, 9, 5}, Dst: []uint32{2, 7, 5, 1, 9, 2, 4, 5}}
	paired := graph.EdgeBatch{Src: []uint32{1, 2, 7, 2, 5, 5, 3, 9}, Dst: []uint32{2, 1, 2, 7, 5, 5, 9, 4}}
	shapeOf := shape{vertices: 12, edges: 8}
	for _, undirected := range []bool{false, true} {
		var want string
		for name, batch := range map[string]graph.EdgeBatch{"apart": apart, "paired": paired} {
			src := pairs{shapeOf.source(1), batch}
			o := Options{Dir: filepath.Join(t.TempDir(), "one"), Shards: 3, Partitioner: stream, Undirected: undirected}
			m, err := Run(t.Context(), src, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := digests(m); want == "" {
				want = got
			} else if got != want {
				t.Errorf("undirected %t, %s: other shards", undirected, name)
			}
			net := newMesh(t, src, 2)
			w := net.makers(3, "")
			got, err := Conduct(t.Context(), src, o, w)
			w.Drop(t.Context())
			if err != nil || digests(got) != want {
				t.Errorf("undirected %t, %s, by two: other shards, %v", undirected, name, err)
			}
		}
	}
	h := &halves{low: 5, vertices: 12}
	s, err := newSpool(disk{folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for name, want := range map[string]int{"apart": 2*6 + 2, "paired": 2*2 + 2*2 + 1} {
		h.records = newRecords(s, 1, 12, 8, false)
		batch := map[string]graph.EdgeBatch{"apart": apart, "paired": paired}[name]
		if err := h.put(h.parts[0], batch, false); err != nil {
			t.Fatal(err)
		}
		if err := h.seal(); err != nil {
			t.Fatal(err)
		}
		n := 0
		for bucket := range 12 {
			n += h.size(bucket)
		}
		if n != want {
			t.Errorf("%s: %d records, want %d", name, n, want)
		}
	}
}

// What has been placed takes no disk any more, and what has not is whole.
func TestReadBucketsFreeTheirDisk(t *testing.T) {
	s, err := newSpool(disk{folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	b := newBuckets[uint64](s, 3, 1<<10)
	for i := range uint64(10_000) {
		if err := b.put(int(i%3), i); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.seal(); err != nil {
		t.Fatal(err)
	}
	blocks := func() int64 {
		var at unix.Stat_t
		if err := unix.Fstat(int(s.file.Fd()), &at); err != nil {
			t.Fatal(err)
		}
		return at.Blocks * 512
	}
	before := blocks()
	b.discard(0)
	b.discard(2)
	if after := blocks(); canPunch(t) && after > before/2 {
		t.Errorf("%d bytes of %d are left", after, before)
	}
	all := make([]uint64, b.size(1))
	c := cursor[uint64]{from: b, bucket: 1}
	if n, err := c.read(all); n != len(all) || err != nil {
		t.Fatal(n, err)
	}
	if want := slices.IndexFunc(all, func(k uint64) bool { return k%3 != 1 }); want >= 0 {
		t.Errorf("record %d of a bucket that was kept is %d", want, all[want])
	}
}

// canPunch reports whether the file system frees parts of a file.
func canPunch(t *testing.T) bool {
	s, err := newSpool(disk{folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	_, err = s.append(make([]byte, 4096))
	return err == nil && punch(s.file, 0, 4096) == nil
}
