package npz

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// largeNPZ writes a graph in PyG's layout whose numbers are never all in memory.
func largeNPZ(t testing.TB, vertices, columns, edges int, method uint16) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	write := func(key string, head readtest.NPY, count int, next func(i int) []byte) {
		m, err := w.CreateHeader(&zip.FileHeader{Name: key + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		b := head.Bytes()
		for i := range count {
			if b = append(b, next(i)...); len(b) > 1<<16 || i == count-1 {
				if _, err := m.Write(b); err != nil {
					t.Fatal(err)
				}
				b = b[:0]
			}
		}
	}
	row := make([]byte, 4*columns)
	write("x", readtest.NPY{Descr: "<f4", Shape: fmt.Sprintf("(%d, %d)", vertices, columns)}, vertices, func(i int) []byte {
		binary.LittleEndian.PutUint32(row[4*(i%columns):], 0x3f800000+uint32(i))
		return row
	})
	id := make([]byte, 8)
	write("edge_index", readtest.NPY{Descr: "<i8", Shape: fmt.Sprintf("(2, %d)", edges)}, 2*edges, func(i int) []byte {
		binary.LittleEndian.PutUint64(id, uint64(i*7%vertices))
		return id
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Reading takes as much memory as a batch does, however large the graph is.
func TestReadingTakesLittleMemory(t *testing.T) {
	for name, method := range map[string]uint16{"stored": zip.Store, "deflated": zip.Deflate} {
		t.Run(name, func(t *testing.T) {
			const vertices, columns, edges = 1 << 16, 128, 1 << 20 // 32 MiB and 16 MiB
			path := largeNPZ(t, vertices, columns, edges, method)
			s, err := Open(t.Context(), path, source.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var most uint64
			look := func() {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
			look()
			before := most
			batches := 0
			if err := s.Features(t.Context(), func(graph.FeatureBatch) error {
				if batches++; batches%4 == 0 {
					look()
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := s.Edges(t.Context(), func(graph.EdgeBatch) error {
				if batches++; batches%4 == 0 {
					look()
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if grown := int64(most) - int64(before); grown > 8<<20 || batches < 16 {
				t.Errorf("%d batches take %d MiB", batches, grown>>20)
			}
		})
	}
}

func TestJoinedSums(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 10000)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	for _, cut := range []int{0, 1, 7, 4096, 9999, 10000} {
		got := joinSums(crc32.ChecksumIEEE(b[:cut]), crc32.ChecksumIEEE(b[cut:]), int64(len(b)-cut))
		if got != crc32.ChecksumIEEE(b) {
			t.Errorf("cut at %d: %08x", cut, got)
		}
	}
}

// What reads ahead ends with its reader, whether or not it was read to its end.
func TestReadingAheadEnds(t *testing.T) {
	z, err := openArchive(t.Context(), largeNPZ(t, 1<<12, 64, 1<<12, zip.Deflate))
	if err != nil {
		t.Fatal(err)
	}
	defer z.close()
	before := runtime.NumGoroutine()
	for _, read := range []int{0, 1, 1 << 12 * 64} {
		a, err := z.array("x")
		if err != nil {
			t.Fatal(err)
		}
		n, err := a.numbers(0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.take(read); err != nil {
			t.Fatal(err)
		}
		n.close()
	}
	// One that has said that it is done may not have ended yet.
	for begin := time.Now(); runtime.NumGoroutine() > before && time.Since(begin) < 10*time.Second; {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines are left", after-before)
	}
}

// BenchmarkFeatures reads a million rows of 128 columns that are not packed. Its
// The baseline is copying the same file into memory a chunk at a time.
func BenchmarkFeatures(b *testing.B) {
	const vertices, columns = 1 << 20, 128
	path := largeNPZ(b, vertices, columns, 1, zip.Store)
	b.Run("features", func(b *testing.B) {
		s, err := Open(context.Background(), path, source.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		b.SetBytes(4 * vertices * columns)
		for b.Loop() {
			if err := s.Features(context.Background(), func(graph.FeatureBatch) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		b.SetBytes(4 * vertices * columns)
		buf := make([]byte, 2<<20)
		for b.Loop() {
			for at := int64(0); ; at += int64(len(buf)) {
				if n, _ := f.ReadAt(buf, at); n < len(buf) {
					break
				}
			}
		}
	})
}

func BenchmarkEdges(b *testing.B) {
	for name, method := range map[string]uint16{"stored": zip.Store, "deflated": zip.Deflate} {
		b.Run(name, func(b *testing.B) {
			const edges = 4 << 20
			s, err := Open(context.Background(), largeNPZ(b, 1<<20, 1, edges, method), source.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.SetBytes(16 * edges)
			for b.Loop() {
				if err := s.Edges(context.Background(), func(graph.EdgeBatch) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// zip64 comes with archives of more than 4 GiB; NumPy writes its fields for small
// ones too.
func TestZip64(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for key, a := range readtest.Lists() {
		content := a.Bytes()
		size := uint64(len(content))
		extra := binary.LittleEndian.AppendUint16(nil, 1)
		extra = binary.LittleEndian.AppendUint16(extra, 16)
		extra = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(extra, size), size)
		f, err := w.CreateRaw(&zip.FileHeader{Name: key + ".npy", Method: zip.Store, CRC32: crc32.ChecksumIEEE(content), CompressedSize64: size, UncompressedSize64: size, Extra: extra})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if h := readtest.MustHold(t, Open, readtest.Put(t, "g.npz", b.Bytes()), source.Options{}); h.Meta.Edges != 4 {
		t.Errorf("it is %+v", h.Meta)
	}
}
