package tabular

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// folder writes files, packing those whose names say so.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			z := gzip.NewWriter(f)
			if _, err := z.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		} else if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// edgesOf lists a source's edges by their vertices' names there.
func edgesOf(t testing.TB, s graph.Source) []string {
	t.Helper()
	var out []string
	ids := s.IDs()
	err := s.Edges(t.Context(), func(b graph.EdgeBatch) error {
		if len(b.Src) != len(b.Dst) || s.Meta().Weighted != (b.Weights != nil) {
			return fmt.Errorf("a batch of %d sources, %d targets and %d weights", len(b.Src), len(b.Dst), len(b.Weights))
		}
		for i := range b.Src {
			e := called(ids, b.Src[i]) + ">" + called(ids, b.Dst[i])
			if b.Weights != nil {
				e += fmt.Sprintf(":%v", b.Weights[i])
			}
			out = append(out, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func called(ids graph.IDs, v uint32) string {
	switch {
	case ids.Strings != nil:
		return string(ids.Strings.Bytes[ids.Strings.Offsets[v]:ids.Strings.Offsets[v+1]])
	case ids.Ints != nil:
		return fmt.Sprint(ids.Ints[v])
	}
	return fmt.Sprint(v)
}

// names lists the vertices' names in their order.
func names(s graph.Source) string {
	var out []string
	for v := range s.Meta().Vertices {
		out = append(out, called(s.IDs(), v))
	}
	return strings.Join(out, " ")
}

// featuresOf lists the rows by their vertices' names.
func featuresOf(t testing.TB, s graph.Source) map[string][]float32 {
	t.Helper()
	out := map[string][]float32{}
	err := s.Features(t.Context(), func(b graph.FeatureBatch) error {
		for i, v := range b.Vertices {
			f := s.Meta().Features
			out[called(s.IDs(), v)] = slices.Clone(b.Dense[i*f : (i+1)*f])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustOpen(t testing.TB, path string) graph.Source {
	t.Helper()
	s, err := OpenCSV(t.Context(), path, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type opener func(context.Context, string, source.Options) (graph.Source, error)

// drain reads a source through and returns what is in it as text.
func drain(ctx context.Context, s graph.Source) (string, error) {
	var out strings.Builder
	m := s.Meta()
	fmt.Fprintln(&out, m, s.Labels(), s.Splits())
	edges := uint64(0)
	err := s.Edges(ctx, func(b graph.EdgeBatch) error {
		edges += uint64(len(b.Src))
		if len(b.Rows) != len(b.Src)*m.EdgeFeatures {
			return fmt.Errorf("%d features of %d edges with %d columns", len(b.Rows), len(b.Src), m.EdgeFeatures)
		}
		for i := range b.Src {
			if b.Src[i] >= m.Vertices || b.Dst[i] >= m.Vertices {
				return fmt.Errorf("edge %d > %d of %d vertices", b.Src[i], b.Dst[i], m.Vertices)
			}
		}
		fmt.Fprintln(&out, b)
		return nil
	})
	if err != nil {
		return out.String(), err
	}
	if edges != m.Edges {
		return "", fmt.Errorf("%d edges where %d are announced", edges, m.Edges)
	}
	err = s.Features(ctx, func(b graph.FeatureBatch) error {
		if len(b.Dense) != len(b.Vertices)*m.Features {
			return fmt.Errorf("%d values for %d vertices", len(b.Dense), len(b.Vertices))
		}
		for _, v := range b.Vertices {
			if v >= m.Vertices {
				return fmt.Errorf("features of %d of %d vertices", v, m.Vertices)
			}
		}
		fmt.Fprintln(&out, b)
		return nil
	})
	return out.String(), err
}

// OpenCSV and OpenParquet open tables without types.
func OpenCSV(ctx context.Context, path string, o source.Options) (graph.Source, error) {
	return openPlain(ctx, path, "csv", o)
}

func OpenParquet(ctx context.Context, path string, o source.Options) (graph.Source, error) {
	return openPlain(ctx, path, "parquet", o)
}

func openPlain(ctx context.Context, path, format string, o source.Options) (graph.Source, error) {
	src, rows, err := Open(ctx, path, format, o)
	if rows != nil {
		err = errors.Join(errors.New("the tables have types"), rows.Close())
	}
	return src, err
}
