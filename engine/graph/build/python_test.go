package build

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// reader is how a user opens the shards in Python. It prints a vertex a line.
const reader = `
import glob, json, sys
from safetensors import safe_open
shards = []
for path in sorted(glob.glob(sys.argv[1] + "/*.safetensors")):
    with safe_open(path, framework="numpy") as f:
        t = {k: f.get_tensor(k) for k in f.keys()}
        m = f.metadata()
    if "original_ids" in t:
        ids = [str(i) for i in t["original_ids"]]
    else:
        b, o = t["original_ids.bytes"].tobytes(), t["original_ids.offsets"]
        ids = [b[o[i]:o[i + 1]].decode() for i in range(len(o) - 1)]
    assert len(ids) == int(m["vertices"]) and m["format"] == "hopmesh-shard/1"
    about = json.loads(m["arrays"])
    assert set(about) == set(t) and all(about.values())
    shards.append((t, m, ids))
names = [i for _, _, ids in shards for i in ids]
for t, m, ids in shards:
    for v, name in enumerate(ids):
        a, b = t["indptr"][v], t["indptr"][v + 1]
        if "features" in t:
            row = [float(x) for x in t["features"][v]]
        else:
            row = [0.0] * int(m["features"])
            for e in range(t["features.indptr"][v], t["features.indptr"][v + 1]):
                row[t["features.indices"][e]] = float(t["features.values"][e])
        weights = t["weights"][a:b] if "weights" in t else [1.0] * int(b - a)
        print(json.dumps({
            "name": name,
            "in": {names[s]: float(w) for s, w in zip(t["indices"][a:b], weights)},
            "features": row,
            "label": int(t["labels"][v]) if "labels" in t else -1,
            "marks": [int(s[v]) for s in t.get("splits", [])],
        }))
`

// python is one that has the safetensors package: the one that make test has made,
// or the user's own.
func python(t *testing.T) string {
	if own := os.Getenv("SAFETENSORS_PYTHON"); own != "" {
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	if out, err := exec.CommandContext(t.Context(), "python3", "-c", "import safetensors.numpy").CombinedOutput(); err != nil {
		t.Skipf("there is no Python with safetensors and numpy to compare with: %v: %s", err, out)
	}
	return "python3"
}

func TestPythonReadsTheSameGraph(t *testing.T) {
	program := python(t)
	for _, i := range []int{2, 3, 4, 5} {
		o := Options{Partitioner: random, Undirected: i == 3, Shards: 5, Seed: 5}
		m := shapes[i].source(77)
		_, dir := build(t, m, o, nil)
		command := exec.CommandContext(t.Context(), program, "-c", reader, dir)
		var said strings.Builder
		command.Stderr = &said
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, said.String())
		}
		got := map[string]*vertex{}
		for line := range strings.Lines(string(out)) {
			var v struct {
				Name     string
				In       map[string]float32
				Features []float32
				Label    int32
				Marks    []int
			}
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			x := &vertex{in: v.In, features: v.Features, label: v.Label}
			for _, mark := range v.Marks {
				x.marks = append(x.marks, graph.Mark(mark))
			}
			got[v.Name] = x
		}
		compare(t, expected(m, o), got)
		if t.Failed() {
			t.Log(fmt.Sprint(slices.Sorted(maps.Keys(got))))
		}
	}
}
