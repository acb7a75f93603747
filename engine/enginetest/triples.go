package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// The planted knowledge graph: each entity has one of four colours, and the relation of two
// entities is the difference of their colours. Any two of them have one, so that nothing can be told
// of a triple without its relation.
const (
	tripleEntities  = 48
	TripleRelations = 4
)

// tripleParts are the files of the parts of its split.
var tripleParts = [...]string{graph.Train: "train.txt", graph.Validation: "valid.txt", graph.Test: "test.txt"}

// ofTriple returns the part and the relation of the triple of two entities.
func ofTriple(a, b int) (part graph.Mark, relation int) {
	part = graph.Train
	switch (a*7 + b*13 + a*b) % 20 {
	case 0, 7, 14:
		part = graph.Validation
	case 3, 10, 17:
		part = graph.Test
	}
	return part, (a ^ b) % TripleRelations
}

// tripleLines returns the lines of each file, and how many there are.
func tripleLines() (lines [len(tripleParts)]strings.Builder, given [3]uint64) {
	for a := range tripleEntities {
		for b := range a {
			part, relation := ofTriple(a, b)
			head, tail := a, b
			if (a+b)%3 == 0 {
				head, tail = b, a
			}
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
