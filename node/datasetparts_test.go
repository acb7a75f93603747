package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// written writes a folder of tables.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// inParts returns the tables of a graph whole and in three parts. Ids and weights are as
// asked for.
func inParts(t *testing.T, id func(int) string, weighted bool) (whole string, parts []string) {
	t.Helper()
	var tables [3]map[string]string
	all := map[string]string{}
	heads := map[string]string{"edges.csv": "src,dst", "features.csv": "id,a,b", "labels.csv": "id,label", "splits.csv": "id,split"}
	if weighted {
		heads["edges.csv"] += ",weight"
	}
	for i := range tables {
		tables[i] = map[string]string{}
		for name, head := range heads {
			tables[i][name], all[name] = head+"\n", head+"\n"
		}
	}
	add := func(part int, name, row string) {
		tables[part][name] += row + "\n"
		all[name] += row + "\n"
	}
	const vertices, edges = 300, 2000
	for part := range tables {
		for i := part * edges / 3; i < (part+1)*edges/3; i++ {
			row := id(i*i%vertices) + "," + id((i*7+i/5)%vertices)
			if weighted {
				row += fmt.Sprintf(",%g", 1/float32(i+3))
			}
			add(part, "edges.csv", row)
		}
		for v := part * vertices / 3; v < (part+1)*vertices/3; v++ {
			add(part, "features.csv", fmt.Sprintf("%s,%d,%g", id(v), v, float32(v)/7))
			add(part, "labels.csv", fmt.Sprintf("%s,%d", id(v), v%5))
			add(part, "splits.csv", id(v)+","+[]string{"train", "val", "test"}[v%3])
		}
		parts = append(parts, written(t, tables[part]))
	}
	return written(t, all), parts
}

func imported(t *testing.T, on *nodetest.Instance, name string, sources ...string) api.Dataset {
	t.Helper()
	d, err := on.API().ImportDataset(t.Context(), api.ImportRequest{Name: name, Sources: sources, DatasetOptions: api.DatasetOptions{Shards: 4}}, quiet)
	if err != nil {
		t.Fatalf("import %s: %v", name, err)
	}
	return d
}

func hashes(d api.Dataset) (list []string) {
	for _, s := range d.Shards {
		list = append(list, s.SHA256)
	}
	return list
}

// A dataset has the same bits whichever nodes read its parts.
func TestPartsOnOtherNodes(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		sameBits(t, c, "integers", func(v int) string { return fmt.Sprint(v) }, false, []int{0, 1, 2})
		sameBits(t, c, "text", func(v int) string { return fmt.Sprint("v", v) }, true, []int{2, -1, 1})
	})
}

// sameBits imports a graph whole, and with its parts on these nodes, -1 for a path
// without a node.
func sameBits(t *testing.T, c *nodetest.Cluster, name string, id func(int) string, weighted bool, placements ...[]int) {
	t.Helper()
	whole, parts := inParts(t, id, weighted)
	want := imported(t, c.Nodes[0], name+"-whole", whole)
	for i, nodes := range placements {
		var sources []string
		for part, n := range nodes {
			s := parts[part]
			if n >= 0 {
				s = c.Nodes[n].Name + ":" + s
			}
			sources = append(sources, s)
		}
		got := imported(t, c.Nodes[0], fmt.Sprint(name, i), sources...)
		if !slices.Equal(hashes(got), hashes(want)) || got.Edges != want.Edges || got.EdgeCut != want.EdgeCut {
			t.Errorf("%s, parts on %v: shards differ from those of one source", name, nodes)
		}
	}
}

// What can't be read is refused in one sentence, and nothing is left.
func TestPartsRefused(t *testing.T) {
	nodetest.Virtual(t, 2, func(t *testing.T, c *nodetest.Cluster) {
		n, other := c.Nodes[0], c.Nodes[1].Name
		good := written(t, map[string]string{"edges.csv": "0,1\n1,2\n"})
		wide := written(t, map[string]string{"edges.csv": "0,1,0.5\n"})
		bad := written(t, map[string]string{"edges.csv": "0,1\n1,2,3,4\n5\n"})
		columns, err := filepath.Abs("../engine/graph/read/testdata/columns/pyarrow-ints.parquet")
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			sources []string
			want    string
		}{
			{[]string{"nobody:" + good}, "there is no member nobody"},
			{[]string{other + ":" + good + "/none"}, "there is no file or folder"},
			{[]string{good, other + ":" + wide}, "has 1 columns of values"},
			{[]string{good, other + ":" + bad}, "edges.csv, line 2"},
			{[]string{good, other + ":" + columns}, "give sources of one format"},
			{[]string{"ftp://host/graph.csv"}, "is a URL"},
			{[]string{"graph.csv"}, "no absolute path"},
			{[]string{other + ":" + written(t, map[string]string{"x.npz": ""}) + "/x.npz"}, "imported alone"},
		} {
			r := api.ImportRequest{Name: "g", Sources: x.sources}
			err := r.Check()
			if err == nil {
				_, err = n.API().ImportDataset(t.Context(), r, quiet)
			}
			if status404(err) != 400 || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v: %v, want %q", x.sources, err, x.want)
			}
		}
		absent(t, c)
	})
}

// An import ends, and leaves nothing, when a node that reads for it dies.
func TestReaderDies(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		_, parts := inParts(t, func(v int) string { return fmt.Sprint("v", v) }, false)
		dies := c.Nodes[2]
		killed := false
		_, err := c.Nodes[0].API().ImportDataset(t.Context(), api.ImportRequest{Name: "g", Sources: []string{
			parts[0], c.Nodes[1].Name + ":" + parts[1], dies.Name + ":" + parts[2],
		}}, func(e api.DatasetEvent) {
			if e.Progress != nil && !killed { // the first part is being read
				killed = true
				dies.Kill()
			}
		})
		if !killed || err == nil || !strings.Contains(err.Error(), dies.Name) {
			t.Errorf("killed: %v, %v", killed, err)
		}
		absent(t, c)
	})
}
