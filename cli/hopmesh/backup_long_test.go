//go:build long

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

// Three nodes are backed up on one, killed, and two of their folders are lost. The restored node is
// the mesh: with the dataset, of which it had but a part, and the model. A new node joins, and the
// one whose folder was kept comes back, although its plan had gone on.
func TestBackupAndRestore(t *testing.T) {
	dir, ports := box(t), freePorts(t, 4)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	nodes := meshIn(t, dir, ports[:3], func(args []string) *exec.Cmd { return exec.Command(path, args...) })
	first := nodes[0]
	until(t, "three vote", func() bool {
		_, leaders, voters := first.census()
		return leaders == 1 && voters == 3
	})
	first.must(new(any), "dataset", "import", "cora", coraFile, "--shards", "6", "--replicas", "0")
	id := first.begin("--model", "sage", "--hidden", "16", "--epochs", "20", "--strategy", "leap")
	if j := first.finished(id); len(j.Nodes) != 3 {
		t.Fatalf("the job ran on %v", j.Nodes)
	}
	want, err := first.predicted(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "mesh.tar")
	var b struct {
		Bytes                   int64
		Datasets, Jobs, Missing []string
	}
	first.must(&b, "backup", file, "--datasets", "--jobs")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != b.Bytes || len(b.Datasets) != 1 || len(b.Jobs) != 1 || len(b.Missing) != 0 {
		t.Fatalf("%+v, %v: %v", b, info, err)
	}
	first.must(new(any), "dataset", "generate", "later", "--kind", "rmat", "--vertices", "1000", "--edges", "4000")
	for _, n := range nodes {
		n.kill()
	}
	lost := func(d *daemon) error { return os.RemoveAll(d.dir) }
	if err := errors.Join(lost(nodes[0]), lost(nodes[1])); err != nil {
		t.Fatal(err)
	}

	refusedRestore(t, file, first.dir)
	out, diag, code := hopmesh(t, "restore", file, "--data-dir", first.dir)
	if code != 0 || diag != "" || !strings.Contains(out, "Whole datasets: cora.") || !strings.Contains(out, "Jobs with checkpoints: "+id+".") ||
		!strings.Contains(out, "n2, n3.") || !strings.Contains(out, "\nWarning: ") {
		t.Fatalf("%d %s%s", code, out, diag)
	}
	if out, diag, code := hopmesh(t, "restore", file, "--data-dir", first.dir); code != 1 || out != "" || !strings.Contains(diag, "is not empty") {
		t.Errorf("a second time: %d %s%s", code, out, diag)
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	first = start(t, first.dir, "--listen", at(0))
	until(t, "the restored node is ready", first.ready)
	if alive, leaders, voters := first.census(); alive != 1 || leaders != 1 || voters != 1 || first.leader() != "n1" {
		t.Errorf("%d alive, %d leaders, %d voters", alive, leaders, voters)
	}
	var members []api.Member
	first.must(&members, "members")
	if len(members) != 3 {
		t.Errorf("the members are %+v", members)
	}
	var d shownDataset
	first.must(&d, "dataset", "show", "cora")
	checkCora(t, d, []string{"n1"}, 1)
	first.must(new(any), "dataset", "verify", "cora")
	if j := first.job(id); j.State != "done" || len(j.History) != 20 {
		t.Errorf("the job is %s with %d epochs", j.State, len(j.History))
	}
	if got, err := first.predicted(id, nil); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of predictions, not the %d before: %v", len(got), len(want), err)
	}

	var token api.Token
	first.must(&token, "token", "create")
	join := strings.Fields(joinLine.FindStringSubmatch(token.Join)[1])
	fourth := start(t, filepath.Join(dir, "n4"), append([]string{"--name", "n4", "--listen", at(3)}, join...)...)
	until(t, "a new node has joined", fourth.ready)
	third := start(t, nodes[2].dir, "--listen", at(2))
	until(t, "the node that kept its folder is back, with the restored plan", func() bool {
		var list []api.DatasetSummary
		return third.ready() && third.json(&list, "dataset", "list") == 0 && len(list) == 1 && list[0].Name == "cora"
	})
	first.must(new(any), "force-leave", "n2")
	again := first.begin("--model", "sage", "--hidden", "16", "--epochs", "20", "--strategy", "leap")
	first.finished(again)
	until(t, "three vote again", func() bool {
		alive, leaders, voters := first.census()
		return alive == 3 && leaders == 1 && voters == 3
	})
}

// refusedRestore damages copies of a backup, each of which is refused, and leaves nothing.
func refusedRestore(t *testing.T, file, dir string) {
	t.Helper()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := file + ".bad"
	for _, at := range []int{0, len(whole) / 3, len(whole) / 2} {
		for _, b := range [][]byte{whole[:at], append(append(bytes.Clone(whole[:at]), whole[at]^1), whole[at+1:]...)} {
			if err := os.WriteFile(bad, b, 0o600); err != nil {
				t.Fatal(err)
			}
			out, diag, code := hopmesh(t, "restore", bad, "--data-dir", dir)
			if code != 1 || out != "" || strings.Count(diag, "\n") != 1 || !strings.Contains(diag, "; nothing was restored") {
				t.Errorf("%d bytes, damaged at %d: %d %s%s", len(b), at, code, out, diag)
			}
			for _, left := range []string{dir, dir + ".partial"} {
				if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is left: %v", left, err)
				}
			}
		}
	}
}
