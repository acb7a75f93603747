package embedding

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/nn"
)

// A file with the rows of each shard by themselves has those of the best epoch of all of them, or of none:
// else they would lie in each other's places.
func TestBestRowsOfSomeShards(t *testing.T) {
	l := split()
	alone := *l
	alone.Nodes, alone.Owners = 1, make([]int, len(l.Owners))
	one := New(Options{Vertices: vertices, Columns: columns, Seed: 3, Optimizer: nn.OptimizerSpec{Kind: "adam"}, Layout: &alone})
	fill := func(p nn.Param, with float32) func() []float32 {
		return func() []float32 {
			all := make([]float32, p.Rows*p.Cols)
			for i := range all {
				all[i] = with
			}
			return all
		}
	}
	for name, best := range map[string]func(shard int) bool{
		"all":   func(int) bool { return true },
		"none":  func(int) bool { return false },
		"first": func(shard int) bool { return shard == 0 },
		"last":  func(shard int) bool { return shard == len(l.Owners)-1 },
		"some":  func(shard int) bool { return shard%2 == 0 },
	} {
		var sections []checkpoint.Section
		for shard := range l.Owners {
			p := one.paramOf(shard)
			if p.Rows == 0 {
				continue
			}
			for i, prefix := range one.prefixes() {
				if prefix != bestPrefix || best(shard) {
					sections = append(sections, section(prefix, p, fill(p, float32(10*shard+i))))
				}
			}
		}
		path := filepath.Join(t.TempDir(), name)
		if err := checkpoint.WriteFile(path, sections, map[string]string{}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		f, err := checkpoint.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := one.Read(f, 0)
		if is := name == "all" || name == "none"; is != (err == nil) || !is && !strings.Contains(err.Error(), "the best epoch of some shards") {
			t.Errorf("of %s: %v", name, err)
		}
		if err == nil {
			one.Adopt(rows, 0)
			for i, array := range one.arrays() {
				for shard := range l.Owners {
					for _, x := range one.ofShard(array, shard) {
						if x != float32(10*shard+i) {
							t.Fatalf("of %s: array %d of shard %d has %g", name, i, shard, x)
						}
					}
				}
			}
			if (len(one.best) > 0) != (name == "all") {
				t.Errorf("of %s: %d numbers are of the best epoch", name, len(one.best))
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
