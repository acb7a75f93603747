package wording

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
)

func TestText(t *testing.T) {
	short := &budget.Short{Cause: "it has 1.0 MiB", Advice: []budget.Advice{
		"take a smaller {batch}, {fanout} or {hidden}", "take {grappa.loader=halo-sampled} and {grappa.cap=5}", budget.AllowMore,
	}}
	for in, want := range map[string]string{
		"{lr} is 0: give a number above 0":               "--lr is 0: give a number above 0",
		"a gcn has no heads (see {heads})":               "a gcn has no heads (see --heads)",
		"{sweep}: leave out {pipe.ways}=2, or {batch}.":  "--sweep: leave out --set pipe.ways=2, or --batch.",
		"choose {strategy leap}; {strategy} p3":          "choose --strategy leap; --strategy p3",
		"{topology}=auto":                                "--set topology=auto",
		"raise {dataset.memory}":                         "raise --memory",
		"it ends: {train.resume 4711} goes on":           "it ends: `hopmesh train resume 4711` goes on",
		"one\n{batch}\ntwo":                              "one\n--batch\ntwo",
		"on node a: " + short.Error():                    "on node a: it has 1.0 MiB: take a smaller --batch, --fanout or --hidden, take --set grappa.loader=halo-sampled and --set grappa.cap=5, or allow more with `hopmesh agent --memory`",
		"no keys, { or }":                                "no keys, { or }",
		"{batch":                                         "{batch",
		"an {error}, {leap.nothing} and {}":              "an {error}, {leap.nothing} and {}",
		"open /data/{split}.npz and {split}.npz":         "open /data/{split}.npz and {split}.npz",
		`there is no model "{model}" and no {{batch}}`:   `there is no model "{model}" and no {{batch}}`,
		"--lr stays, and so does `hopmesh train resume`": "--lr stays, and so does `hopmesh train resume`",
	} {
		got := Text(in)
		if got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("%q becomes %q the second time", got, again)
		}
	}
}

func TestEverySettingHasWords(t *testing.T) {
	for _, o := range recipe.Settings() {
		if want := "--set " + o.Key + "=x"; Text("{"+o.Key+"}=x") != want {
			t.Errorf("no words for %s", o.Key)
		}
	}
	for _, o := range Options(recipe.Settings()) {
		if text := fmt.Sprint(o.Applies, o.Values, o.Default, o.Help); strings.Contains(text, "{") {
			t.Errorf("%s: %s", o.Key, text)
		}
	}
	if o := Options([]nn.Option{{Applies: "{optimizer} sgd", Default: "{dropout}, or 0"}})[0]; o.Applies != "--optimizer sgd" || o.Default != "--dropout, or 0" {
		t.Errorf("%+v", o)
	}
}

func TestError(t *testing.T) {
	if err := Error(nil); err != nil {
		t.Error(err)
	}
	if _, is := errors.AsType[*worded](Error(errors.New("no key"))); is {
		t.Error("an error without keys is wrapped")
	}
	cause := &nn.Unused{Key: "train.momentum", Why: "{train.momentum} is for {optimizer} sgd"}
	err := Error(fmt.Errorf("model 1: %w", cause))
	if got, is := errors.AsType[*nn.Unused](err); !is || got != cause || err.Error() != "model 1: --set train.momentum is for --optimizer sgd" {
		t.Error(err)
	}
}

func TestHandler(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(Handler(slog.NewTextHandler(&out, nil))).With("why", "{batch} is 0").WithGroup("g")
	log.Info("{lr} in a message is the program's own", "err", errors.New("{lr} is 0"), "n", 5)
	if got := out.String(); !strings.Contains(got, `msg="{lr} in a message is the program's own" why="--batch is 0" g.err="--lr is 0" g.n=5`) {
		t.Error(got)
	}
}

// Every key in braces that a string below node has is worded, and no other is.
func TestKeysBelowNodeAreKnown(t *testing.T) {
	written := map[string]bool{}
	for _, root := range []string{"engine", "consensus", "mesh"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				l, is := n.(*ast.BasicLit)
				if !is || l.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(l.Value)
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				for _, at := range keyPattern.FindAllStringSubmatchIndex(text, -1) {
					key := text[at[2]:at[3]]
					written[key] = true
					if named(key, "") == "" || !apart(text[:at[0]], text[at[1]:]) {
						t.Errorf("%s: nobody words {%s} of %q", path, key, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range slices.Concat(flags, slices.Collect(maps.Keys(others)), slices.Collect(maps.Keys(commands))) {
		if !written[key] {
			t.Errorf("nobody writes {%s}", key)
		}
	}
}
