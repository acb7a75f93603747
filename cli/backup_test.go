package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
)

// A backup holds keys: nobody else can read it, not even in place of a file that others could
// read. What fails leaves nothing, and what there was.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mesh.tar")
	if err := os.WriteFile(file, []byte("former"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := clitest.Healthy()
	b.File = []byte("backup")
	addr := clitest.Serve(t, b)
	b.Err = api.Conflict("ask n2")
	out, diag, code := hopmesh(t.Context(), echo(), "backup", file, "--addr", addr)
	if was, err := os.ReadFile(file); code != 1 || out != "" || diag != "hopmesh: ask n2\n" || err != nil || string(was) != "former" {
		t.Errorf("refused: %d %s%s, and the file holds %q (%v)", code, out, diag, was, err)
	}
	b.Err = nil
	for args, says := range map[string]string{
		"": "Wrote " + file + ", 6 B: plan 14 of mesh 0123456789abcdef, and node alpha.\nNot in it: the shards of dataset arxiv; the shards of dataset cora.\n" +
			"It holds the keys of the mesh, so only its owner can read it (mode 0600): keep it so.\n",
		" --datasets --jobs": "Datasets: arxiv; cora.\nJobs: j1.\nIt holds",
		" --datasets --json": `"datasets": [` + "\n    \"arxiv\",\n    \"cora\"\n  ],\n  \"jobs\": [],\n  \"missing\": []",
	} {
		out, diag, code := hopmesh(t.Context(), echo(), append([]string{"backup", file, "--addr", addr}, strings.Fields(args)...)...)
		if code != 0 || diag != "" || !strings.Contains(out, says) {
			t.Errorf("%q: %d %s%s", args, code, out, diag)
		}
		info, statErr := os.Stat(file)
		got, err := os.ReadFile(file)
		if err := errors.Join(err, statErr); err != nil || string(got) != "backup" || info.Mode().Perm() != 0o600 {
			t.Errorf("the file holds %q, %v: %v", got, info, err)
		}
	}
	_, diag, code = hopmesh(t.Context(), echo(), "backup", file, "--addr", "unix:"+filepath.Join(dir, "nobody"))
	if code != 1 || !strings.Contains(diag, "no daemon at") {
		t.Errorf("without a daemon: %d %s", code, diag)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v are left: %v", left, err)
	}
}
