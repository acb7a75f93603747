package data

import (
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// A node that holds no shard of a dataset has no folder of it.
func TestFolderOfShards(t *testing.T) {
	d := plan.Dataset{ID: "d1", Nodes: []string{"a", "b"}, Shards: []plan.Shard{{Holders: []int{1}}, {}}}
	if got := folder("x", "a", d); got != "" {
		t.Errorf("a node without shards has the folder %s", got)
	}
	if got := folder("x", "b", d); !filepath.IsAbs(got) || filepath.Base(got) != "d1" {
		t.Errorf("the folder is %s", got)
	}
}
