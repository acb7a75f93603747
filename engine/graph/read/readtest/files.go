package readtest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"compress/gzip"
	"maps"
)

// NPY is an array to be written.
type NPY struct {
	Descr   string
	Shape   string // as Python writes it
	Fortran bool
	Version byte // 0: 1
	Data    []byte
}

// Of makes an array of numbers: a slice of fixed size for encoding/binary.
func Of(shape string, values any) NPY {
	kinds := map[string]string{"[]int64": "<i8", "[]int32": "<i4", "[]int16": "<i2", "[]int8": "|i1", "[]uint64": "<u8", "[]uint32": "<u4", "[]uint16": "<u2", "[]uint8": "|u1",
		"[]float32": "<f4", "[]float64": "<f8", "[]bool": "|b1"}
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return NPY{Descr: kinds[fmt.Sprintf("%T", values)], Shape: shape, Data: data}
}

// Big is as Of, with the most significant byte first.
func Big(descr, shape string, values any) NPY {
	data, err := binary.Append(nil, binary.BigEndian, values)
	if err != nil {
		panic(err)
	}
	return NPY{Descr: descr, Shape: shape, Data: data}
}

func (a NPY) As(descr string) NPY { a.Descr = descr; return a }

func (a NPY) InFortranOrder() NPY { a.Fortran = true; return a }

func (a NPY) Bytes() []byte {
	order := "False"
	if a.Fortran {
		order = "True"
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", a.Descr, order, a.Shape)
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY")
	b.WriteByte(max(a.Version, 1))
	b.WriteByte(0)
	if a.Version > 1 {
		b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
	} else {
		b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(text))))
	}
	b.WriteString(text)
	b.Write(a.Data)
	return b.Bytes()
}

// Arrays is an archive to be written.
type Arrays map[string]NPY

// With is a copy with another array; a nil one takes it out.
func (z Arrays) With(key string, a *NPY) Arrays {
	out := Arrays{}
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

func (z Arrays) Bytes(t testing.TB, method uint16) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, key := range sortedKeys(z) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: key + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(z[key].Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sortedKeys(z Arrays) []string {
	var keys []string
	for k := range z {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// File writes the archive to g.npz in a folder of its own.
func (z Arrays) File(t testing.TB, method uint16) string {
	t.Helper()
	return Put(t, "g.npz", z.Bytes(t, method))
}

// Put writes a file to a folder of its own.
func Put(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Lists is a graph of five vertices and four edges as users of PyG save it.
func Lists() Arrays {
	return Arrays{
		"edge_index": Of("(2, 4)", []int64{0, 1, 2, 4, 1, 2, 0, 4}),
		"x":          Of("(5, 2)", []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
		"y":          Of("(5,)", []int64{0, 1, -1, 2, 0}),
		"train_mask": Of("(5,)", []bool{true, false, true, false, false}),
		"val_mask":   Of("(5,)", []bool{false, true, false, false, false}),
		"test_mask":  Of("(5,)", []bool{false, false, false, true, false}),
	}
}

// Matrices is a graph of three vertices in gnn-benchmark's layout. Rows of features
// are not sorted.
func Matrices() Arrays {
	return Arrays{
		"adj_data":     Of("(4,)", []float32{1, 1, 1, 1}),
		"adj_indices":  Of("(4,)", []int32{1, 2, 0, 0}),
		"adj_indptr":   Of("(4,)", []int64{0, 2, 2, 4}),
		"adj_shape":    Of("(2,)", []int64{3, 3}),
		"attr_data":    Of("(4,)", []float32{5, 6, 7, 8}),
		"attr_indices": Of("(4,)", []int32{3, 0, 1, 2}),
		"attr_indptr":  Of("(4,)", []int32{0, 2, 2, 4}),
		"attr_shape":   Of("(2,)", []int64{3, 4}),
		"labels":       Of("(3,)", []int64{1, 0, 1}),
		"train_idx":    Of("(2, 1)", []int64{0, 1}),
		"val_idx":      Of("(2, 1)", []int64{1, 2}),
		"test_idx":     Of("(2, 1)", []int64{2, 0}),
	}
}

// Folder is files to be written, by their paths; text in .gz is packed.
type Folder map[string]string

func (f Folder) With(path, content string) Folder {
	out := maps.Clone(f)
	out[path] = content
	return out
}

func (f Folder) Without(path string) Folder {
	out := f.With(path, "")
	delete(out, path)
	return out
}

func (f Folder) Write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range f {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, ".gz") {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err := w.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			content = b.String()
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// OGB is a graph of the Open Graph Benchmark in packed tables of text.
func OGB() Folder {
	return Folder{
		"raw/edge.csv.gz":                  "0,1\n1,2\n2,0\n3,3\n",
		"raw/node-feat.csv.gz":             "1,2.5,-3e-2\n4,5,6\n0,0,0\n-0.125,1e10,7\n",
		"raw/node-label.csv.gz":            "0\n2\nnan\n1\n",
		"raw/num-node-list.csv.gz":         "4\n",
		"raw/num-edge-list.csv.gz":         "4\n",
		"raw/node_year.csv.gz":             "1999\n2000\n2001\n2002\n",
		"split/time/train.csv.gz":          "0\n",
		"split/time/valid.csv.gz":          "3\n",
		"split/time/test.csv.gz":           "1\n2\n",
		"split/sales_ranking/train.csv.gz": "3\n1\n",
		"split/sales_ranking/valid.csv.gz": "0\n",
		"split/sales_ranking/test.csv.gz":  "2\n",
	}
}
