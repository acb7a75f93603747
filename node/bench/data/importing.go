package data

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/bench"
)

// importing imports a file of 20 M edges, a million vertices and 128 features, as NumPy
// saves them, and compares that with copying the file.
func importing(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
	made, err := generate.New(generate.Options{Kind: "rmat", Vertices: 1_000_000, Edges: 20_000_000, Features: 128, Classes: 16, Seed: 1})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(run.Dir, "import.npz")
	if err := errors.Join(writeNPZ(ctx, file, made), made.Close()); err != nil {
		return nil, err
	}
	var copies, imports []float64
	var bytes int64
	for i := range 3 {
		took, n, err := copyFile(file, filepath.Join(run.Dir, "copy"))
		if err != nil {
			return nil, err
		}
		bytes = n
		copies = append(copies, float64(n)/1e9/took.Seconds())
		seconds, err := importOnce(ctx, run, file, fmt.Sprintf("import%d", i))
		if err != nil {
			return nil, err
		}
		imports = append(imports, float64(n)/1e9/seconds)
	}
	if err := os.Remove(file); err != nil {
		return nil, err
	}
	return []bench.Figure{bench.Against(fmt.Sprintf("importing %.2g GB, cut at random", float64(bytes)/1e9), "GB/s", stats.Median(imports), "copying the file", stats.Median(copies),
		bench.Least(0.5))}, nil
}

// importOnce returns the seconds of an import without its cut.
func importOnce(ctx context.Context, run *bench.Run, file, name string) (float64, error) {
	begin := time.Now()
	src, err := read.Open(ctx, file, read.Options{})
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(run.Dir, name)
	m, err := build.Run(ctx, src, build.Options{Dir: dir, Scratch: dir + ".scratch", Partitioner: "random", DType: graph.F32})
	if err = errors.Join(err, src.Close()); err != nil {
		return 0, err
	}
	took := time.Since(begin).Seconds() - m.CutSeconds
	return took, errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".scratch"))
}

// copyFile copies a file, syncs the copy and removes it. It returns the time and the size.
func copyFile(from, to string) (time.Duration, int64, error) {
	begin := time.Now()
	in, err := os.Open(from)
	if err != nil {
		return 0, 0, fmt.Errorf("copy the graph: %w", err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return 0, 0, fmt.Errorf("copy the graph: %w", err)
	}
	n, err := io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return 0, 0, fmt.Errorf("copy the graph: %w", err)
	}
	took := time.Since(begin)
	return took, n, os.Remove(to)
}

// writeNPZ writes a graph with dense features as numpy.savez would: edge_index
// of 64-bit integers, x, y.
func writeNPZ(ctx context.Context, path string, src graph.Source) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write a graph: %w", err)
	}
	z := zip.NewWriter(f)
	err = errors.Join(writeEdges(ctx, z, src), writeFeatures(ctx, z, src), writeLabels(z, src), z.Close(), f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("write a graph: %w", err)
	}
	return nil
}

// member begins an array in the archive. It must be written in full before the next.
func member(z *zip.Writer, name, dtype, shape string) (*bufio.Writer, error) {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, shape)
	head += fmt.Sprintf("%*s\n", 63-(10+len(head))%64, "")
	out := bufio.NewWriterSize(w, 1<<20)
	_, _ = out.WriteString("\x93NUMPY\x01\x00")
	_ = binary.Write(out, binary.LittleEndian, uint16(len(head)))
	_, err = out.WriteString(head)
	return out, err
}

func writeEdges(ctx context.Context, z *zip.Writer, src graph.Source) error {
	w, err := member(z, "edge_index", "<i8", fmt.Sprintf("2, %d", src.Meta().Edges))
	if err != nil {
		return err
	}
	for row := range 2 {
		var raw []byte
		err := src.Edges(ctx, func(b graph.EdgeBatch) error {
			raw = raw[:0]
			for _, v := range [][]uint32{b.Src, b.Dst}[row] {
				raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
			}
			_, err := w.Write(raw)
			return err
		})
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

func writeFeatures(ctx context.Context, z *zip.Writer, src graph.Source) error {
	m := src.Meta()
	w, err := member(z, "x", "<f4", fmt.Sprintf("%d, %d", m.Vertices, m.Features))
	if err != nil {
		return err
	}
	var raw []byte
	err = src.Features(ctx, func(b graph.FeatureBatch) error {
		raw = raw[:0]
		for _, x := range b.Dense {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		_, err := w.Write(raw)
		return err
	})
	return errors.Join(err, w.Flush())
}

func writeLabels(z *zip.Writer, src graph.Source) error {
	w, err := member(z, "y", "<i4", fmt.Sprintf("%d,", src.Meta().Vertices))
	if err != nil {
		return err
	}
	return errors.Join(binary.Write(w, binary.LittleEndian, src.Labels()), w.Flush())
}
