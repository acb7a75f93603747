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

// record is the one package of the engine that others may import, whatever is banned.
// It imports nothing of this module.
const record = "engine/epoch"

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
	{"engine/peer", []string{"engine/train", "engine/strategy"}, "a run's view of other nodes is the same whatever it trains"},
	{"engine/deal", []string{"engine/train", "engine/strategy"}, "seed vertices are dealt alike for every strategy"},
	{"engine/dataset", []string{"engine/train", "engine/strategy"}, "a dataset is read before anyone knows how it is trained on"},
	{"engine/session", []string{"engine/train", "engine/strategy"}, "nodes meet and part alike for every strategy"},
	{"engine/budget", []string{"engine/train", "engine/strategy"}, "strategies say what they need; the budget only adds and compares"},
	{"engine/checkpoint", []string{"engine/train", "engine/strategy"}, "strategies hand in their sections; files are written alike"},
	{"engine/evaluate", []string{"engine/train", "engine/strategy"}, "a run hands its nodes and its models to evaluation, which knows no strategy"},
	{"cuda", []string{"node", "cli", "mesh", "consensus"}, "a device knows tensors only"},
	{"node", []string{"cli", cobra}, "a node can be embedded; command lines are made around it"},
	{"node/api", []string{"mesh", "consensus", "engine", "cuda"}, "the client links the API's types and none of the daemon"},
	{"node/lead", []string{"node/member", "node/data", "node/jobs", "node/peers", "node/shards", "engine"}, "orders carry what the parts of a node register, and know none of them"},
	{"node/member", []string{"node/data", "node/jobs", "node/peers", "node/shards"}, "who belongs to a mesh has nothing to do with what it works on"},
	{"node/data", []string{"node/member", "node/jobs", "node/peers"}, "datasets ask for a mesh and a plan by interfaces of their own"},
	{"node/jobs", []string{"node/member", "node/data"}, "jobs ask for a mesh, a plan and shards by interfaces of their own"},
	{"node/jobs/recipe", []string{"mesh", "node/lead"}, "a recipe is made of a request and the plan alone"},
}

// allowances list all of this module that a package may import itself.
var allowances = []struct {
	pkg  string
	only []string
	why  string
}{
	{"cli", []string{"cli/daemon", "cli/output", "cli/top", "cli/train", "cli/usage", "node/api"}, "commands are thin clients; what runs locally is passed in"},
	{"cli/train", []string{"cli/daemon", "cli/output", "cli/usage", "node/api"}, "commands are thin clients"},
	{"cli/top", []string{"cli/daemon", "cli/output", "cli/usage", "node/api"}, "commands are thin clients"},
	{"cli/daemon", []string{"cli/usage", "node/api"}, "it connects commands to daemons, and knows no command"},
	{"cli/output", []string{"node/api"}, "it shows results, and knows no command"},
	{"cli/usage", nil, "it reads arguments, and knows no daemon"},
	{"consensus/plan", []string{record, "consensus/plan/access", "consensus/plan/schedule"}, "the plan's functions are pure: the same on every node"},
	{"consensus/plan/schedule", nil, "the plan's functions are pure: the same on every node"},
	{record, nil, "what is recorded of an epoch is the same for the engine, the plan and the API"},
	{"consensus/plan/access", nil, "it is a part of the plan, and knows nothing of the rest"},
	{"node/api", []string{record, "node/api/limit", "node/api/once", "node/api/page", "node/api/pin", "node/api/secret"}, "the API is the boundary between daemon and client"},
	{"node/backup/archive", nil, "it is a format, and knows nothing of what it carries"},
	{"node/api/page", nil, "it is files, which read the API as any program may"},
	{"node/api/limit", nil, "it counts, whatever failed"},
	{"node/api/once", nil, "it reads JSON, whatever it says"},
	{"node/api/openapi", nil, "it describes any API, and is part of no program"},
	{"node/api/pin", nil, "clients link none of the daemon"},
	{"node/api/secret", nil, "daemon and client share where a secret lies, and nothing else"},
	{"mesh/identity", nil, "it is the ground that mesh stands on"},
	{"engine/stats", nil, "benches, scripts and the sampler's baseline share it"},
	{"node/bench/result", nil, "scripts print with it, and some run where nothing else of this module does"},
	{"node/bench/plot", nil, "it draws what it is given"},
	{"node/ongoing", nil, "requests end with the node, whatever they do"},
	{"node/speed", []string{"consensus/plan", "engine/tensor", "engine/tensor/cpu"}, "a node measures its speed before it has anything else"},
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
					if dep != full(record) && within(dep, full(never)) {
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
		if !within(p.ImportPath, full("consensus/plan")) && p.ImportPath != full(record) { // TestImportsOfNarrowPackages sees that they are there
			continue
		}
		for _, path := range p.Imports {
			first, _, _ := strings.Cut(path, "/")
			if path == full(record) || path == full("consensus/plan/access") || path == full("consensus/plan/schedule") {
				continue
			}
			if slices.Contains(impure, path) || strings.Contains(first, ".") {
				t.Errorf("%s imports %s: its functions must give the same on every node", p.ImportPath, path)
			}
		}
	}
}

// homes are packages that one package of this module alone may import. Go lists no
// package that a build tag leaves out, so files are asked, whatever their tags.
var homes = []struct{ path, home, why string }{
	{cu, "cuda/driver", "only the driver knows it, and shows none of its types"},
}

// strays returns a sentence for each file that imports a package outside its home.
func strays(all []file) []string {
	var wrong []string
	for _, f := range all {
		for _, i := range f.ast.Imports {
			for _, h := range homes {
				if within(strings.Trim(i.Path.Value, `"`), h.path) && filepath.ToSlash(filepath.Dir(f.path)) != h.home {
					wrong = append(wrong, fmt.Sprintf("%s imports %s outside %s: %s", f.path, i.Path.Value, h.home, h.why))
				}
			}
		}
	}
	return wrong
}

func TestPackagesAreImportedAtHome(t *testing.T) {
	for _, wrong := range strays(files(t)) {
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
		got = append(got, strays([]file{f})...)
	}
	slices.Sort(got)
	if len(got) != 1 || !strings.HasPrefix(got[0], "cuda/driver/facts/a.go imports") {
		t.Errorf("got %v", got)
	}
}

func TestViolationsAreFound(t *testing.T) {
	packages := []listed{
		{ImportPath: full("mesh"), Deps: []string{"fmt", quic, quic + "/internal/x"}},
		{ImportPath: full("mesh/sub"), Deps: []string{full("consensus/plan")}},
		{ImportPath: full("meshes"), Deps: []string{full("consensus")}},
		{ImportPath: full("consensus"), Deps: []string{full(record)}, XTestImports: []string{full("mesh")}},
	}
	got := violations(packages, []ban{
		{"mesh", []string{"consensus"}, "why"},
		{"consensus", []string{"mesh", "engine"}, "why"},
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
