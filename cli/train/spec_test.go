package train_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
	"golang.org/x/sys/unix"
)

// What flags say comes before what a spec says of the same key, in whichever table.
func TestFlagsComeBeforeASweepInASpec(t *testing.T) {
	b := clitest.Healthy()
	addr := clitest.Serve(t, b)
	spec := filepath.Join(t.TempDir(), "spec.toml")
	if err := os.WriteFile(spec, []byte("dataset = \"cora\"\nhidden = 16\n[set]\ntrain.factor = 0.5\n[sweep]\nlr = [0.1, 0.2]\ngat.version = [1, 2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rate, hidden := 0.3, 16
	factor, version := []api.Setting{{Key: "train.factor", Value: "0.5"}}, api.Sweep{Key: "gat.version", Values: []string{"1", "2"}}
	lr := api.Sweep{Key: "lr", Values: []string{"0.1", "0.2"}}
	for args, want := range map[string]api.TrainRequest{
		"--lr 0.3":                     {Dataset: "cora", Hidden: &hidden, Rate: &rate, Set: factor, Sweep: []api.Sweep{version}},
		"--set gat.version=2":          {Dataset: "cora", Hidden: &hidden, Set: append(slices.Clone(factor), api.Setting{Key: "gat.version", Value: "2"}), Sweep: []api.Sweep{lr}},
		"--sweep hidden=8,16":          {Dataset: "cora", Set: factor, Sweep: []api.Sweep{{Key: "hidden", Values: []string{"8", "16"}}}},
		"--sweep train.factor=0.1,0.2": {Dataset: "cora", Hidden: &hidden, Sweep: []api.Sweep{{Key: "train.factor", Values: []string{"0.1", "0.2"}}}},
	} {
		b.Made = nil
		_, stderr, code := hopmesh(t.Context(), append([]string{"train", "start", "--spec", spec, "--addr", addr}, strings.Fields(args)...)...)
		if code != 0 || !reflect.DeepEqual(b.Made, []any{want}) {
			t.Errorf("%s: %d %s %+v", args, code, stderr, b.Made)
		}
	}
}

// So they do where one of the two names a setting and the other the flag that stands for it.
func TestSettingsAndTheirFlagsInASpec(t *testing.T) {
	b := clitest.Healthy()
	addr := clitest.Serve(t, b)
	dir := t.TempDir()
	weights, decoder, negatives := api.Setting{Key: "train.class_weights", Value: "balanced"}, api.Setting{Key: "link.decoder", Value: "dot"}, api.Setting{Key: "link.negatives", Value: "uniform:2"}
	other := func(s api.Setting, value string) api.Setting { return api.Setting{Key: s.Key, Value: value} }
	losses := api.Sweep{Key: "train.loss", Values: []string{"bce", "bpr"}}
	for name, text := range map[string]string{
		"flags":    "loss = \"bce\"\nclass-weights = \"balanced\"\ndecoder = \"dot\"\nnegatives = \"uniform:2\"\n",
		"settings": "[set]\ntrain.loss = \"bce\"\nlink.decoder = \"dot\"\n",
		"sweep":    "[sweep]\ntrain.loss = [\"bce\", \"bpr\"]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("dataset = \"cora\"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		spec, args string
		want       api.TrainRequest
	}{
		{"flags", "", api.TrainRequest{Loss: "bce", Set: []api.Setting{weights, decoder, negatives}}},
		{"flags", "--set train.loss=bpr", api.TrainRequest{Set: []api.Setting{{Key: "train.loss", Value: "bpr"}, weights, decoder, negatives}}},
		{"flags", "--set train.class_weights=1,2", api.TrainRequest{Loss: "bce", Set: []api.Setting{other(weights, "1,2"), decoder, negatives}}},
		{"flags", "--set link.decoder=mlp", api.TrainRequest{Loss: "bce", Set: []api.Setting{other(decoder, "mlp"), weights, negatives}}},
		{"flags", "--set link.negatives=batch:5", api.TrainRequest{Loss: "bce", Set: []api.Setting{other(negatives, "batch:5"), weights, decoder}}},
		{"flags", "--sweep train.loss=bce,bpr", api.TrainRequest{Set: []api.Setting{weights, decoder, negatives}, Sweep: []api.Sweep{losses}}},
		{"settings", "--loss bpr --decoder mlp", api.TrainRequest{Loss: "bpr", Set: []api.Setting{other(decoder, "mlp")}}},
		{"sweep", "--loss bpr", api.TrainRequest{Loss: "bpr"}},
	} {
		b.Made, c.want.Dataset = nil, "cora"
		_, stderr, code := hopmesh(t.Context(), append([]string{"train", "start", "--spec", filepath.Join(dir, c.spec), "--addr", addr}, strings.Fields(c.args)...)...)
		if code != 0 || !reflect.DeepEqual(b.Made, []any{c.want}) {
			t.Errorf("%s %s: %d %s %+v, want %+v", c.spec, c.args, code, stderr, b.Made, c.want)
		}
	}
}

func TestSweepsAreAskedFor(t *testing.T) {
	b := clitest.Healthy()
	addr := clitest.Serve(t, b)
	spec := filepath.Join(t.TempDir(), "spec.toml")
	err := os.WriteFile(spec, []byte(`
dataset = "cora"
[sweep]
weight-decay = [0, 5e-4]
sage.aggregator = ["mean", "max"]
"train.factor" = [0.5, 0.25]
hidden = "16, 64"
dropout = [0.5, 0]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--dataset", "cora", "--sweep", "lr=0.010, 1e-3", "--sweep", "leap.mode=stay,migrate"},
		{"--spec", spec},
		{"--spec", spec, "--sweep", "lr=1,2"},
	} {
		if _, stderr, code := hopmesh(t.Context(), append(append([]string{"train", "start"}, args...), "--addr", addr)...); code != 0 {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	want := []any{
		api.TrainRequest{Dataset: "cora", Sweep: []api.Sweep{{Key: "lr", Values: []string{"0.010", "1e-3"}}, {Key: "leap.mode", Values: []string{"stay", "migrate"}}}},
		api.TrainRequest{Dataset: "cora", Sweep: []api.Sweep{
			{Key: "weight-decay", Values: []string{"0", "0.0005"}}, {Key: "sage.aggregator", Values: []string{"mean", "max"}},
			{Key: "train.factor", Values: []string{"0.5", "0.25"}}, {Key: "hidden", Values: []string{"16", "64"}}, {Key: "dropout", Values: []string{"0.5", "0"}},
		}},
		api.TrainRequest{Dataset: "cora", Sweep: []api.Sweep{{Key: "lr", Values: []string{"1", "2"}}}},
	}
	if !reflect.DeepEqual(b.Made, want) {
		t.Errorf("asked for %+v", b.Made)
	}
}

func TestWrongSweepsInSpecs(t *testing.T) {
	addr := clitest.Serve(t, clitest.Healthy())
	spec := filepath.Join(t.TempDir(), "spec.toml")
	for says, text := range map[string]string{
		"sweep must be a table, such as [sweep]":           "dataset = \"a\"\nsweep = [\"lr=1,2\"]",
		"sweep.lr must be a string, a number":              "dataset = \"a\"\n[sweep]\nlr = 2020-01-01",
		"--sweep lr has one value at most":                 "dataset = \"a\"\n[sweep]\nlr = 0.1",
		"--sweep can't take fanout, which is the same for": "dataset = \"a\"\n[sweep]\nfanout = [1, 2]",
	} {
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stderr, code := hopmesh(t.Context(), "train", "start", "--spec", spec, "--addr", addr)
		if code != 2 || !strings.Contains(stderr, says) {
			t.Errorf("%q: %d %s", text, code, stderr)
		}
	}
}

func TestWrongSpecs(t *testing.T) {
	addr := clitest.Serve(t, clitest.Healthy())
	spec := filepath.Join(t.TempDir(), "spec.toml")
	for says, text := range map[string]string{
		"no key \"hiden\" (did you mean hidden?)":                              "dataset = \"a\"\nhiden = 8",
		"watch is about how the command runs":                                  "watch = true",
		"api-token-file is about how the command runs":                         "dataset = \"a\"\napi-token-file = \"/t\"",
		"--lr is NaN, which is no number":                                      "dataset = \"a\"\nlr = nan",
		"--set train.factor is +Inf":                                           "dataset = \"a\"\n[set]\ntrain.factor = inf",
		"line 2, is not valid TOML":                                            "dataset = \"a\"\nhidden = = 8",
		"hidden = many is wrong":                                               "hidden = \"many\"",
		"set must be a table":                                                  "set = \"a=b\"",
		"seed must be a string, a number":                                      "seed = 2020-01-01",
		"--dataset is missing":                                                 "model = \"gcn\"",
		"there is no model \"gnc\"":                                            "dataset = \"a\"\nmodel = \"gnc\"",
		"set.sage.x must be a string, a number, tru":                           "[set]\nsage.x = 2020-01-01",
		"spec.toml is empty: write":                                            "# nothing yet\n",
		"spec.toml: lr has a line of its own and one in [sweep]: leave one of": "dataset = \"a\"\nlr = 0.1\n[sweep]\nlr = [0.1, 0.2]",
		"spec.toml: gat.version has a line in [set] and one in [sweep]: leave": "dataset = \"a\"\n[set]\ngat.version = 1\n[sweep]\ngat.version = [1, 2]",
		"spec.toml: sweep.lr is a list with a list in it":                      "dataset = \"a\"\n[sweep]\nlr = [[0.1], [0.2]]",
		"spec.toml: fanout is a list with a list in it":                        "dataset = \"a\"\nfanout = [[5, 5]]",
		"and a spec has at most 1048576: name":                                 strings.Repeat("# long\n", 1<<18),
	} {
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stderr, code := hopmesh(t.Context(), "train", "start", "--spec", spec, "--addr", addr)
		if code != 2 || !strings.Contains(stderr, says) {
			t.Errorf("%.60q: %d %s", text, code, stderr)
		}
	}
}

// What is no file is not read: a pipe that nobody writes to would never end.
func TestSpecsThatAreNoFiles(t *testing.T) {
	addr, pipe := clitest.Serve(t, clitest.Healthy()), filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		pipe:        "a device, a pipe or a socket: write the spec into a TOML file",
		"/dev/null": "a device, a pipe or a socket",
		t.TempDir(): "is a directory: name a TOML file",
		"/nowhere":  "can't be read: no such file",
	} {
		_, stderr, code := hopmesh(t.Context(), "train", "start", "--dataset", "a", "--spec", path, "--addr", addr)
		if code == 0 || strings.Count(stderr, "\n") > 2 || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %s", path, code, stderr)
		}
	}
}
