package graph

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// A shard's metadata describes the arrays that it has, with their codes, and no others.
func TestMetadataDescribesArrays(t *testing.T) {
	s := Shard{Number: 1, Shards: 3, First: 4, Vertices: 2, Total: 9, Features: 5, Classes: 2, DType: BF16}
	var tensors []safetensors.Tensor
	for _, name := range []string{"indptr", "splits", "original_ids.offsets"} {
		tensors = append(tensors, safetensors.Tensor{Name: name})
	}
	m, err := s.Metadata(tensors)
	if err != nil {
		t.Fatal(err)
	}
	var about map[string]string
	if err := json.Unmarshal([]byte(m["arrays"]), &about); err != nil || len(about) != 3 {
		t.Fatalf("%v: %s", err, m["arrays"])
	}
	if !strings.Contains(about["splits"], "1 training, 2 validation, 3 test") || Train != 1 || Validation != 2 || Test != 3 || !strings.Contains(about["original_ids.offsets"], "UTF-8") {
		t.Errorf("%v", about)
	}
	if m["format"] != ShardFormat || m["first_vertex"] != "4" || m["total_vertices"] != "9" || m["dtype"] != "bf16" {
		t.Errorf("%v", m)
	}
}
