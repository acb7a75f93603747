package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read"
)

// The planted graph whose edges have a given split: vertices of one of six groups have edges with
// each other and with no others, and features that say the group.
const (
	DividedVertices = 60
	dividedGroups   = 6
)

// DividedPart returns the part of the split that the edge of two vertices is in, if they have one.
func DividedPart(a, b uint32) (part graph.Mark, is bool) {
	a, b = min(a, b), max(a, b)
	if a == b || (b-a)%dividedGroups != 0 {
		return 0, false
	}
	switch (7*a + b/dividedGroups) % 10 {
	case 0, 5:
		return graph.Validation, true
	case 1, 6:
		return graph.Test, true
	}
	return graph.Train, true
}

// dividedFiles returns the tables of that graph. Each edge for training is listed in one direction or,
// one in three, in both; an edge of validation is among them, too, the other way round. Pairs to
// compare with have the sources of edges of the part.
func dividedFiles() map[string]string {
	files := map[string]*strings.Builder{}
	add := func(name string, source, target uint32) {
		if files[name] == nil {
			files[name] = new(strings.Builder)
			fmt.Fprintln(files[name], "src,dst")
		}
		fmt.Fprintf(files[name], "%d,%d\n", source, target)
	}
	names := [...]string{graph.Train: "", graph.Validation: "_valid", graph.Test: "_test"}
	wrong := false
	for a := range uint32(DividedVertices) {
		for b := a + 1; b < DividedVertices; b++ {
			part, is := DividedPart(a, b)
			if !is {
				continue
			}
			source, target := a, b
			if (a+b)%2 == 0 {
				source, target = b, a
			}
			add("edges"+names[part]+".csv", source, target)
			switch {
			case part == graph.Train && (a+b)%3 == 0:
				add("edges.csv", target, source)
			case part == graph.Validation && !wrong:
				wrong = true
				add("edges.csv", target, source)
			}
			for away := range uint32(3) {
				if part != graph.Train {
					add("negatives"+names[part]+".csv", source, (target+away*7+1)%DividedVertices)
				}
			}
		}
	}
	for v := range uint32(10) {
		add("edges.csv", v, v) // which is no pair
	}
	var nodes strings.Builder
	fmt.Fprintln(&nodes, "id,a,b,c,d,e,f")
	for v := range DividedVertices {
		fmt.Fprint(&nodes, v)
		for group := range dividedGroups {
			fmt.Fprintf(&nodes, ",%g", map[bool]float64{true: 1, false: 0.25 * float64((v+group)%3)}[v%dividedGroups == group])
		}
		fmt.Fprintln(&nodes)
	}
	all := map[string]string{"nodes.csv": nodes.String()}
	for name, text := range files {
		all[name] = text.String()
	}
	return all
}

// DividedFolder writes that graph as a folder of tables, with pairs to compare with or without, and
// returns its path.
func DividedFolder(t testing.TB, negatives bool) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range dividedFiles() {
		if !negatives && strings.HasPrefix(name, "negatives") {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Divided returns that graph in so many shards, with its edges in both directions, and its types.
func Divided(t testing.TB, shards int, negatives bool) ([]*graph.Shard, *graph.Types) {
	t.Helper()
	src, err := read.Open(t.Context(), DividedFolder(t, negatives), read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if err := src.(interface{ Mirror() error }).Mirror(); err != nil {
		t.Fatal(err)
	}
	return Cut(t, src, shards, ""), src.Meta().Types
}
