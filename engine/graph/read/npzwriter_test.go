package read

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// npy is an array to be written.
type npy struct {
	descr   string
	shape   string // as Python writes it
	fortran bool
	version byte // 0: 1
	data    []byte
}

// of makes an array of numbers: a slice of fixed size for encoding/binary.
func of(shape string, values any) npy {
	kinds := map[string]string{"[]int64": "<i8", "[]int32": "<i4", "[]int16": "<i2", "[]int8": "|i1", "[]uint64": "<u8", "[]uint32": "<u4", "[]uint16": "<u2", "[]uint8": "|u1",
		"[]float32": "<f4", "[]float64": "<f8", "[]bool": "|b1"}
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return npy{descr: kinds[fmt.Sprintf("%T", values)], shape: shape, data: data}
}

func big(descr, shape string, values any) npy {
	data, err := binary.Append(nil, binary.BigEndian, values)
	if err != nil {
		panic(err)
	}
	return npy{descr: descr, shape: shape, data: data}
}

func (a npy) as(descr string) npy { a.descr = descr; return a }

func (a npy) inFortranOrder() npy { a.fortran = true; return a }

func (a npy) bytes() []byte {
	order := "False"
	if a.fortran {
		order = "True"
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", a.descr, order, a.shape)
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY")
	b.WriteByte(max(a.version, 1))
	b.WriteByte(0)
	if a.version > 1 {
		b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
	} else {
		b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(text))))
	}
	b.WriteString(text)
	b.Write(a.data)
	return b.Bytes()
}

// arrays is an archive to be written.
type arrays map[string]npy

// with is a copy with another array; a nil one takes it out.
func (z arrays) with(key string, a *npy) arrays {
	out := arrays{}
	for k, v := range z {
		if k != key {
			out[k] = v
		}
	}
	if a != nil {
		out[key] = *a
	}
	return out
}

func (z arrays) bytes(t testing.TB, method uint16) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, key := range sortedKeys(z) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: key + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(z[key].bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sortedKeys(z arrays) []string {
	var keys []string
	for k := range z {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// file writes the archive to g.npz in a folder of its own.
func (z arrays) file(t testing.TB, method uint16) string {
	t.Helper()
	return put(t, "g.npz", z.bytes(t, method))
}

// put writes a file to a folder of its own.
func put(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lists is a graph of five vertices and four edges as users of PyG save it.
func lists() arrays {
	return arrays{
		"edge_index": of("(2, 4)", []int64{0, 1, 2, 4, 1, 2, 0, 4}),
		"x":          of("(5, 2)", []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
		"y":          of("(5,)", []int64{0, 1, -1, 2, 0}),
		"train_mask": of("(5,)", []bool{true, false, true, false, false}),
		"val_mask":   of("(5,)", []bool{false, true, false, false, false}),
		"test_mask":  of("(5,)", []bool{false, false, false, true, false}),
	}
}

// matrices is a graph of three vertices in gnn-benchmark's layout. Rows of features
// are not sorted.
func matrices() arrays {
	return arrays{
		"adj_data":     of("(4,)", []float32{1, 1, 1, 1}),
		"adj_indices":  of("(4,)", []int32{1, 2, 0, 0}),
		"adj_indptr":   of("(4,)", []int64{0, 2, 2, 4}),
		"adj_shape":    of("(2,)", []int64{3, 3}),
		"attr_data":    of("(4,)", []float32{5, 6, 7, 8}),
		"attr_indices": of("(4,)", []int32{3, 0, 1, 2}),
		"attr_indptr":  of("(4,)", []int32{0, 2, 2, 4}),
		"attr_shape":   of("(2,)", []int64{3, 4}),
		"labels":       of("(3,)", []int64{1, 0, 1}),
		"train_idx":    of("(2, 1)", []int64{0, 1}),
		"val_idx":      of("(2, 1)", []int64{1, 2}),
		"test_idx":     of("(2, 1)", []int64{2, 0}),
	}
}

// archiveIn reads an archive that lies in memory.
func archiveIn(ctx context.Context, name string, r io.ReaderAt, size int64, o Options) (graph.Source, error) {
	z, err := newArchive(name, r, size)
	if err != nil {
		return nil, err
	}
	return newNPZ(ctx, z, o)
}
