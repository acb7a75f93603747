package data

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/engine/partition"
)

// metis cuts one graph with gpmetis, the baseline, given the same weights and tolerances
// as our own partitioner.
type metis struct {
	program, file, ubvec string
	vertices             int
}

var errNoMetis = errors.New("gpmetis is not installed")

// newMetis writes the graph in METIS' format.
func newMetis(dir, name string, g *partition.Graph, tolerance []float64) (*metis, error) {
	program, err := exec.LookPath("gpmetis")
	if err != nil {
		return nil, errNoMetis
	}
	n := len(g.Indptr) - 1
	m := &metis{program: program, file: filepath.Join(dir, name+".graph"), vertices: n}
	var bounds []string
	for _, t := range tolerance {
		bounds = append(bounds, strconv.FormatFloat(t, 'f', -1, 64))
	}
	m.ubvec = strings.Join(bounds, " ")
	f, err := os.Create(m.file)
	if err != nil {
		return nil, fmt.Errorf("write a graph for gpmetis: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	_, _ = fmt.Fprintf(w, "%d %d 010 %d\n", n, len(g.Indices)/2, g.Constraints)
	var line []byte
	for v := range n {
		line = line[:0]
		for _, x := range g.Weights[v*g.Constraints : (v+1)*g.Constraints] {
			line = append(strconv.AppendUint(line, uint64(x), 10), ' ')
		}
		for _, u := range g.Indices[g.Indptr[v]:g.Indptr[v+1]] {
			line = append(strconv.AppendUint(line, uint64(u)+1, 10), ' ')
		}
		_, _ = w.Write(append(line, '\n'))
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return nil, fmt.Errorf("write a graph for gpmetis: %w", err)
	}
	return m, nil
}

var metisTook = regexp.MustCompile(`Partitioning:\s+([0-9.]+) sec`)

// cut returns the part of each vertex, and the seconds that gpmetis took to
// partition, without reading and writing.
func (m *metis) cut(ctx context.Context, parts int) ([]uint16, float64, error) {
	cmd := exec.CommandContext(ctx, m.program, "-ubvec="+m.ubvec, m.file, strconv.Itoa(parts))
	output, err := cmd.CombinedOutput()
	if err != nil {
		return nil, 0, fmt.Errorf("run gpmetis: %w: %s", err, output)
	}
	found := metisTook.FindSubmatch(output)
	if found == nil {
		return nil, 0, fmt.Errorf("gpmetis did not print how long it took: %s", output)
	}
	took, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return nil, 0, fmt.Errorf("gpmetis printed no number of seconds: %w", err)
	}
	b, err := os.ReadFile(m.file + ".part." + strconv.Itoa(parts))
	if err != nil {
		return nil, 0, fmt.Errorf("read the cut of gpmetis: %w", err)
	}
	part := make([]uint16, 0, m.vertices)
	for line := range bytes.Lines(b) {
		p, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 16)
		if err != nil {
			return nil, 0, fmt.Errorf("read the cut of gpmetis: %w", err)
		}
		part = append(part, uint16(p))
	}
	if len(part) != m.vertices {
		return nil, 0, fmt.Errorf("gpmetis cut %d of %d vertices", len(part), m.vertices)
	}
	return part, took, nil
}

// cutOf counts the edges between parts, each once.
func cutOf(g *partition.Graph, part []uint16) float64 {
	cut := 0
	for v, p := range part {
		for _, u := range g.Indices[g.Indptr[v]:g.Indptr[v+1]] {
			if part[u] != p {
				cut++
			}
		}
	}
	return float64(cut) / 2
}

// balanceOf is the heaviest part over the average, by one of the weights.
func balanceOf(g *partition.Graph, part []uint16, parts, constraint int) float64 {
	sums := make([]float64, parts)
	total := 0.0
	for v, p := range part {
		w := float64(g.Weights[v*g.Constraints+constraint])
		sums[p] += w
		total += w
	}
	if total == 0 {
		return 1
	}
	return slices.Max(sums) / (total / float64(parts))
}

// hub reports whether one vertex holds over half of a part's average edges, so that no
// cut can balance them.
func hub(g *partition.Graph, parts int) bool {
	most := int64(0)
	for v := range len(g.Indptr) - 1 {
		most = max(most, g.Indptr[v+1]-g.Indptr[v])
	}
	return float64(most) > float64(len(g.Indices))/float64(parts)/2
}

// runs makes groups of neighbouring parts, as equal in number as can be.
func runs(part []uint16, parts, groups int) []uint16 {
	group := make([]uint16, len(part))
	for v, p := range part {
		group[v] = uint16(int(p) * groups / parts)
	}
	return group
}
