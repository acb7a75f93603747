package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hopmesh/hopmesh"

const (
	raft       = "github.com/hashicorp/raft"
	raftWAL    = "github.com/hashicorp/raft-wal"
	serf       = "github.com/hashicorp/serf"
	memberlist = "github.com/hashicorp/memberlist"
	quic       = "github.com/quic-go/quic-go"
	cobra      = "github.com/spf13/cobra"
	cu         = "gorgonia.org/cu"
)

// A ban says what a tree of packages must not import, not even through others.
// Paths without a dot in front of the first slash are this module's.
type ban struct {
	from  string
	never []string
	why   string
}

var bans = []ban{
	{"mesh", []string{"consensus", "engine"}, "mesh carries bytes between proven peers, whatever they mean"},
	{"consensus", []string{"mesh", "engine"}, "consensus asks for a network by an interface of its own, so that tests can give it any"},
	{"engine", []string{"mesh", "consensus"}, "the engine is handed plain work and asks its peers by interfaces of its own"},
	{"mesh", []string{raft, raftWAL}, "Raft is one user of the mesh's streams among several"},
	{"consensus", []string{quic, serf, memberlist}, "consensus knows nodes by id; how they are reached and who is alive, it is told"},
	{"engine", []string{quic, serf, memberlist, raft, raftWAL}, "the engine neither decides what nodes must agree on nor reaches them itself"},
	{"mesh/identity", []string{quic, serf, memberlist}, "who a node is must not depend on what carries its packets"},
	{"mesh", []string{"node", "cli", "cuda"}, "imports run one way"},
	{"consensus", []string{"node", "cli", "cuda"}, "imports run one way"},
	{"engine", []string{"node", "cli", "cuda"}, "imports run one way"},
	{"cuda", []string{"node", "cli", "mesh", "consensus"}, "a device knows tensors only"},
	{"node", []string{"cli", cobra}, "a node can be embedded; command lines are made around it"},
	{"node/api", []string{"mesh", "consensus", "engine", "cuda"}, "the client links the API's types and none of the daemon"},
}

// allowances list all of this module that a package may import itself.
var allowances = []struct {
	pkg  string
	only []string
	why  string
}{
	{"cli", []string{"node/api"}, "commands are thin clients; what runs locally is passed in"},
	{"consensus/plan", nil, "the plan's functions are pure: the same on every node"},
	{"node/api", nil, "the API is the boundary between daemon and client"},
	{"mesh/identity", nil, "it is the ground that mesh stands on"},
}

// impure is what the plan's functions must not be able to reach for.
var impure = []string{"crypto/rand", "math/rand", "math/rand/v2", "net", "os", "log", "log/slog", "context", "sync"}

// listed is what go list says of a package.
type listed struct {
	ImportPath                string
	Imports, Deps             []string
	TestImports, XTestImports []string
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports,Deps,TestImports,XTestImports", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	var all []listed
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("read what go list prints: %v", err)
		}
		all = append(all, p)
	}
}

// full turns a path as bans have it into an import path.
func full(path string) string {
	if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
		return path
	}
	return module + "/" + path
}

func within(path, tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

// violations returns a sentence for each import that a ban forbids, and for each
// ban of a tree that does not exist: its name was mistyped, or it moved.
func violations(packages []listed, bans []ban) []string {
	var found []string
	for _, b := range bans {
		exists := false
		for _, p := range packages {
			if !within(p.ImportPath, full(b.from)) {
				continue
			}
			exists = true
			// Its tests too, but only themselves: what a test imports may bring anything.
			for _, dep := range slices.Concat(p.Deps, p.TestImports, p.XTestImports) {
				for _, never := range b.never {
					if within(dep, full(never)) {
						found = append(found, fmt.Sprintf("%s imports %s: %s", p.ImportPath, full(never), b.why))
					}
				}
			}
		}
		if !exists {
			found = append(found, fmt.Sprintf("there is no package %s, for which there is a rule", full(b.from)))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestImportsRunOneWay(t *testing.T) {
	for _, v := range violations(list(t), bans) {
		t.Error(v)
	}
}

func TestImportsOfNarrowPackages(t *testing.T) {
	packages := list(t)
	for _, a := range allowances {
		n := slices.IndexFunc(packages, func(p listed) bool { return p.ImportPath == full(a.pkg) })
		if n < 0 {
			t.Errorf("there is no package %s, for which there is a rule", full(a.pkg))
			continue
		}
		for _, path := range packages[n].Imports {
			if within(path, module) && !slices.ContainsFunc(a.only, func(o string) bool { return full(o) == path }) {
				t.Errorf("%s imports %s: %s", full(a.pkg), path, a.why)
			}
		}
	}
}

func TestPlanIsPure(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath != full("consensus/plan") { // TestImportsOfNarrowPackages sees that it is there
			continue
		}
		for _, path := range p.Imports {
			first, _, _ := strings.Cut(path, "/")
			if slices.Contains(impure, path) || strings.Contains(first, ".") {
				t.Errorf("%s imports %s: its functions must give the same on every node", p.ImportPath, path)
			}
		}
	}
}

// onlyDriver returns a sentence for each file beside cuda/driver that imports
// gorgonia.org/cu. Go lists no package that a build tag leaves out, so files are
// asked, whatever their tags.
func onlyDriver(all []file) []string {
	var wrong []string
	for _, f := range all {
		for _, i := range f.ast.Imports {
			if within(strings.Trim(i.Path.Value, `"`), cu) && filepath.ToSlash(filepath.Dir(f.path)) != "cuda/driver" {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: only cuda/driver knows it, and shows none of its types", f.path, i.Path.Value))
			}
		}
	}
	return wrong
}

func TestOnlyTheDriverImportsCu(t *testing.T) {
	for _, wrong := range onlyDriver(files(t)) {
		t.Error(wrong)
	}
	var got []string
	for path, text := range map[string]string{
		"cuda/driver/a.go":       "import \"gorgonia.org/cu\"",
		"cuda/driver/facts/a.go": "import c \"gorgonia.org/cu/blas\"",
		"cuda/a.go":              "import \"gorgonia.org/cute\"",
	} {
		f, err := parse(path, []byte("//go:build cuda\n\npackage a\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, onlyDriver([]file{f})...)
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "cuda/driver/facts/a.go imports") {
		t.Errorf("got %v", got)
	}
}

func TestViolationsAreFound(t *testing.T) {
	packages := []listed{
		{ImportPath: full("mesh"), Deps: []string{"fmt", quic, quic + "/internal/x"}},
		{ImportPath: full("mesh/sub"), Deps: []string{full("consensus/plan")}},
		{ImportPath: full("meshes"), Deps: []string{full("consensus")}},
		{ImportPath: full("consensus"), XTestImports: []string{full("mesh")}},
	}
	got := violations(packages, []ban{
		{"mesh", []string{"consensus"}, "why"},
		{"consensus", []string{"mesh"}, "why"},
		{"mesh", []string{quic}, "why"},
		{"moved", []string{raft}, "why"},
	})
	want := []string{
		module + "/consensus imports " + module + "/mesh: why",
		module + "/mesh imports " + quic + ": why",
		module + "/mesh/sub imports " + module + "/consensus: why",
		"there is no package " + module + "/moved, for which there is a rule",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
