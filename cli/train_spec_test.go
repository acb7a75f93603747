package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWrongSpecs(t *testing.T) {
	addr := serve(t, healthy())
	spec := filepath.Join(t.TempDir(), "spec.toml")
	for says, text := range map[string]string{
		"no key \"hiden\" (did you mean hidden?)":                              "dataset = \"a\"\nhiden = 8",
		"watch says how a command is run":                                      "watch = true",
		"--lr is NaN, which is no number":                                      "dataset = \"a\"\nlr = nan",
		"--set train.factor is +Inf":                                           "dataset = \"a\"\n[set]\ntrain.factor = inf",
		"line 2, is no TOML":                                                   "dataset = \"a\"\nhidden = = 8",
		"hidden = many does not fit":                                           "hidden = \"many\"",
		"set must be a table":                                                  "set = \"a=b\"",
		"seed must be a string, a number":                                      "seed = 2020-01-01",
		"--dataset is missing":                                                 "model = \"gcn\"",
		"there is no model \"gnc\"":                                            "dataset = \"a\"\nmodel = \"gnc\"",
		"set.sage.x must be a string, a number, tru":                           "[set]\nsage.x = 2020-01-01",
		"spec.toml says nothing: write":                                        "# nothing yet\n",
		"spec.toml: lr has a line of its own and one in [sweep]: leave one of": "dataset = \"a\"\nlr = 0.1\n[sweep]\nlr = [0.1, 0.2]",
		"spec.toml: gat.version has a line in [set] and one in [sweep]: leave": "dataset = \"a\"\n[set]\ngat.version = 1\n[sweep]\ngat.version = [1, 2]",
		"spec.toml: sweep.lr is a list with a list in it":                      "dataset = \"a\"\n[sweep]\nlr = [[0.1], [0.2]]",
		"spec.toml: fanout is a list with a list in it":                        "dataset = \"a\"\nfanout = [[5, 5]]",
		"and a spec at most 1048576: name":                                     strings.Repeat("# long\n", 1<<18),
	} {
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stderr, code := hopmesh(t.Context(), echo(), "train", "start", "--spec", spec, "--addr", addr)
		if code != 2 || !strings.Contains(stderr, says) {
			t.Errorf("%.60q: %d %s", text, code, stderr)
		}
	}
}

// What is no file is not read: a pipe that nobody writes to would never end.
func TestSpecsThatAreNoFiles(t *testing.T) {
	addr, pipe := serve(t, healthy()), filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		pipe:        "a device, a pipe or a socket: write it into a TOML file",
		"/dev/null": "a device, a pipe or a socket",
		t.TempDir(): "is a directory: name a TOML file",
		"/nowhere":  "can't be read: no such file",
	} {
		_, stderr, code := hopmesh(t.Context(), echo(), "train", "start", "--dataset", "a", "--spec", path, "--addr", addr)
		if code == 0 || strings.Count(stderr, "\n") > 2 || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %s", path, code, stderr)
		}
	}
}
