package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// The planted knowledge graph: each entity has one of four colours, and the relation of a head and a
// tail is the difference of their colours. Half of the entities are heads, and the others tails. Any
// two of them have a relation, so the ends of a triple alone say nothing.
const (
	TripleEntities  = 64
	TripleRelations = 4
)

// tripleParts are the files of the parts of its split.
var tripleParts = [...]string{graph.Train: "train.txt", graph.Validation: "valid.txt", graph.Test: "test.txt"}

// ofTriple returns the part and the relation of the triple of a head and a tail.
func ofTriple(head, tail int) (part graph.Mark, relation int) {
	part = graph.Train
	switch (head*7 + tail*13 + head*tail) % 20 {
	case 0, 7, 14:
		part = graph.Validation
	case 3, 10, 17:
		part = graph.Test
	}
	return part, (head ^ tail) % TripleRelations
}

// tripleLines returns the lines of each file, and how many there are.
func tripleLines() (lines [len(tripleParts)]strings.Builder, given [3]uint64) {
	for head := range TripleEntities / 2 {
		for tail := TripleEntities / 2; tail < TripleEntities; tail++ {
			part, relation := ofTriple(head, tail)
			fmt.Fprintf(&lines[part], "e%d\tdiffers-by-%d\te%d\n", head, relation, tail)
			given[part-graph.Train]++
		}
	}
	return lines, given
}

// TripleFolder writes that graph as a folder of triples, and returns its path.
func TripleFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	lines, _ := tripleLines()
	for part, name := range tripleParts {
		if name == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(lines[part].String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Triples returns that graph in so many shards.
func Triples(t testing.TB, shards int) []*graph.Shard {
	t.Helper()
	return FromFile(t, TripleFolder(t), shards)
}

// GivenTriples returns how many triples each part of its split has.
func GivenTriples() *[3]uint64 {
	_, given := tripleLines()
	return &given
}
