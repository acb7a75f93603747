package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

const coraFile = "../../engine/graph/cora/cora.npz"

// meshOf starts daemons n1, n2 and so on, joined as a person would.
func meshOf(t *testing.T, n int) []*daemon {
	t.Helper()
	return meshAs(t, n, "agent")
}

// meshAs is meshOf with another command than agent.
func meshAs(t *testing.T, n int, command ...string) []*daemon {
	t.Helper()
	dir := box(t)
	first := startAs(t, command, filepath.Join(dir, "n1"), "--name", "n1", "--listen", "127.0.0.1:0", "--bootstrap")
	until(t, "the join line is printed", func() bool { return joinLine.MatchString(first.out.String()) })
	join := strings.Fields(joinLine.FindStringSubmatch(first.out.String())[1])
	daemons := []*daemon{first}
	for _, name := range []string{"n2", "n3", "n4", "n5"}[:n-1] {
		daemons = append(daemons, startAs(t, command, filepath.Join(dir, name), append([]string{"--name", name, "--listen", "127.0.0.1:0"}, join...)...))
	}
	for _, d := range daemons {
		until(t, "all are alive and vote", func() bool {
			alive, leaders, voters := d.census()
			return alive == n && leaders == 1 && voters == min(n, 3)
		})
	}
	return daemons
}

// must runs a client command that must not fail, and decodes what it prints.
func (d *daemon) must(v any, args ...string) {
	d.t.Helper()
	out, diag, code := hopmesh(d.t, append(args, "--addr", "unix:"+filepath.Join(d.dir, "hopmesh.sock"), "--json")...)
	if code != 0 {
		d.t.Fatalf("%v ended with %d: %s%s", args, code, out, diag)
	}
	if err := json.Unmarshal([]byte(out), v); err != nil {
		d.t.Fatalf("%v printed %q: %v", args, out, err)
	}
}

// What the contract names, as a program would read it.
type shownDataset struct {
	Name         string       `json:"name"`
	Vertices     uint64       `json:"vertices"`
	Edges        uint64       `json:"edges"`
	Features     int          `json:"features"`
	Classes      int          `json:"classes"`
	Splits       int          `json:"splits"`
	DType        string       `json:"dtype"`
	EdgeCut      uint64       `json:"edge_cut"`
	EdgeCutShare float64      `json:"edge_cut_share"`
	Balance      float64      `json:"balance"`
	Shards       []shownShard `json:"shards"`
}

type shownShard struct {
	ID       int      `json:"id"`
	Vertices uint64   `json:"vertices"`
	Edges    uint64   `json:"edges"`
	Bytes    uint64   `json:"bytes"`
	SHA256   string   `json:"sha256"`
	Owner    string   `json:"owner"`
	Replicas []string `json:"replicas"`
}

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// checkCora compares with what is known of the graph.
func checkCora(t *testing.T, d shownDataset, nodes []string, copies int) {
	t.Helper()
	if d.Name != "cora" || d.Vertices != 2708 || d.Edges != 2*5278 || d.Features != 1433 || d.Classes != 7 || d.Splits != 1 || d.DType != "f32" {
		t.Errorf("cora is %+v", d)
	}
	var vertices, edges uint64
	owners := map[string]bool{}
	for i, s := range d.Shards {
		vertices, edges = vertices+s.Vertices, edges+s.Edges
		owners[s.Owner] = true
		holders := append([]string{s.Owner}, s.Replicas...)
		slices.Sort(holders)
		if s.ID != i || !sha256Hex.MatchString(s.SHA256) || s.Bytes == 0 || len(slices.Compact(holders)) != copies {
			t.Errorf("shard %d is %+v, with %d copies wanted", i, s, copies)
		}
		for _, h := range holders {
			if !slices.Contains(nodes, h) {
				t.Errorf("shard %d is with %q", i, h)
			}
		}
	}
	if vertices != d.Vertices || edges != d.Edges || len(owners) != len(nodes) {
		t.Errorf("the shards hold %d vertices and %d edges, with %v", vertices, edges, owners)
	}
	if d.EdgeCut == 0 || d.EdgeCutShare <= 0 || d.EdgeCutShare > 0.5 || d.Balance < 1 || d.Balance > 1.1 {
		t.Errorf("cut %d, %.3f of all; balance %.3f", d.EdgeCut, d.EdgeCutShare, d.Balance)
	}
}

type verdict struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
}

func TestDatasetOnOneNode(t *testing.T) {
	t.Parallel()
	n := meshOf(t, 1)[0]
	var made, shown shownDataset
	n.must(&made, "dataset", "import", "cora", coraFile)
	checkCora(t, made, []string{"n1"}, 1)
	n.must(&shown, "dataset", "show", "cora")
	checkCora(t, shown, []string{"n1"}, 1)
	var list []struct {
		Name string `json:"name"`
	}
	n.must(&list, "dataset", "list")
	if len(list) != 1 || list[0].Name != "cora" {
		t.Errorf("listed %v", list)
	}
	if _, diag, code := hopmesh(t, "dataset", "import", "cora", coraFile, "--addr", "unix:"+filepath.Join(n.dir, "hopmesh.sock")); code != 1 || !strings.Contains(diag, "cora") {
		t.Errorf("a second import of the name ended with %d: %s", code, diag)
	}
	var v verdict
	n.must(&v, "dataset", "verify", "cora")
	if !v.OK || v.Name != "cora" {
		t.Errorf("verified %+v", v)
	}
	// One bit of one file, and it is noticed; there is no other copy to heal it.
	damage(t, n.dir)
	if code := n.json(&v, "dataset", "verify", "cora"); code != 1 {
		t.Errorf("verify of a damaged dataset ended with %d", code)
	}
	n.must(&v, "dataset", "remove", "cora")
	if !v.OK {
		t.Errorf("removed %+v", v)
	}
	if _, diag, code := hopmesh(t, "dataset", "show", "cora", "--addr", "unix:"+filepath.Join(n.dir, "hopmesh.sock")); code != 1 || !strings.Contains(diag, "cora") {
		t.Errorf("show of a dataset that is gone ended with %d: %s", code, diag)
	}
	until(t, "its files are gone", func() bool { return len(shardFiles(t, n.dir)) == 0 })
}

func shardFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "datasets", "*", "*.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func damage(t *testing.T, dir string) {
	t.Helper()
	file := shardFiles(t, dir)[0]
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-5] ^= 1
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// importerIsKilled kills the node that imports a dataset after each of some times.
func importerIsKilled(t *testing.T, moments ...time.Duration) {
	t.Helper()
	t.Parallel() // it mostly waits
	nodes := meshOf(t, 3)
	for i, after := range moments {
		importer, other := nodes[0], nodes[1]
		done := make(chan int, 1)
		go func() {
			_, _, code := hopmesh(t, "dataset", "generate", "g", "--kind", "sbm", "--vertices", "60000", "--edges", "600000", "--features", "64",
				"--classes", "8", "--addr", "unix:"+filepath.Join(importer.dir, "hopmesh.sock"))
			done <- code
		}()
		<-time.After(after)
		importer.signal(syscall.SIGKILL)
		<-importer.done
		code := <-done
		until(t, "it is whole or absent", func() bool {
			var d shownDataset
			switch other.json(&d, "dataset", "show", "g") {
			case 1:
				return true
			case 0:
				var v verdict
				return other.json(&v, "dataset", "verify", "g") == 0
			}
			return false
		})
		nodes[0] = start(t, importer.dir, "--listen", "127.0.0.1:0")
		until(t, "it is back", nodes[0].ready)
		until(t, "all is well", func() bool {
			var list []api.DatasetSummary
			other.must(&list, "dataset", "list")
			if len(list) == 0 {
				return len(shardFiles(t, nodes[0].dir))+len(shardFiles(t, other.dir)) == 0
			}
			var v verdict
			return other.json(&v, "dataset", "verify", "g") == 0
		})
		t.Logf("killed %s after the start of import %d, which ended with %d", after, i, code)
		var v verdict
		other.json(&v, "dataset", "remove", "g")
		until(t, "the next importer knows that the name is free", func() bool { return nodes[0].json(new(any), "dataset", "show", "g") == 1 })
	}
}
