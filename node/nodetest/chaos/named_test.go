package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Damage of each kind that has an effect is found and named: else the check of it would see nothing in
// any history.
func TestDamageIsNamed(t *testing.T) {
	want := undisturbed(t, "leap")
	nodetest.Virtual(t, 0, func(t *testing.T, c *nodetest.Cluster) {
		w := begin(c, history{Strategy: "leap", Disk: true})
		i := c.Nodes[1]
		i.Crash()
		for _, ends := range []string{".safetensors", ".wal"} {
			at := slices.IndexFunc(filesBelow(t, i.Options.DataDir), func(path string) bool { return strings.HasSuffix(path, ends) })
			if at < 0 {
				t.Fatalf("no file ends in %s", ends)
			}
			w.damage(i, fault{Kind: truncate, Other: uint64(at), Much: 0.001})
		}
		w.recover()
		w.check(want)
		for _, kind := range []string{"shard", "log"} {
			if w.findings.named[kind] == 0 {
				t.Errorf("damage of kind %s was not found: %v", kind, w.findings.named)
			}
		}
	})
}

func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	files, err := damageable(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What was found must be named in time, by its kind.
func TestFindings(t *testing.T) {
	f := &findings{named: map[string]int{}}
	f.found("shard")
	if err := f.compare(nil); err != nil {
		t.Errorf("at once: %v", err)
	}
	f.open[0].at = time.Now().Add(-toName - time.Second)
	if err := f.compare([]api.Damage{{Kind: "log"}}); err == nil {
		t.Error("damage of a shard is named as that of a log")
	}
	f.found("log")
	if err := f.compare([]api.Damage{{Kind: "log"}}); err != nil || f.named["log"] != 1 {
		t.Error(err)
	}
	if err := f.compare(nil); err != nil || len(f.open) > 0 {
		t.Error(err, f.open)
	}
}

func TestLeftovers(t *testing.T) {
	for name, left := range map[string]bool{"jobs/j1-0/last.safetensors": false, "jobs/j1-0/last.safetensors.tmp": true, "datasets/0a/0001.safetensors.part": true, "jobs/predict.borrowed-7/x": true} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := leftovers(dir); (err != nil) != left {
			t.Errorf("%s: %v", name, err)
		}
	}
}
