package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// vague names say nothing of what a package holds: put the function where it is
// used.
var vague = []string{"utils", "util", "common", "helpers", "helper", "types", "misc", "shared", "base"}

// A file is one Go file of the repository, whatever its build tags.
type file struct {
	path string // from the root
	src  []byte
	ast  *ast.File
	set  *token.FileSet
}

func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// root is where go.mod is.
func root(t *testing.T) string {
	t.Helper()
	dir, err := top()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func top() (string, error) {
	dir, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("the root of the repository is not where it was: %w", err)
	}
	return dir, nil
}

// files returns all Go files of the repository.
func files(t *testing.T) []file {
	t.Helper()
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("found %d files only", len(all))
	}
	return all
}

// read parses the files once for all tests.
var read = sync.OnceValues(func() ([]file, error) {
	top, err := top()
	if err != nil {
		return nil, err
	}
	var all []file
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && path != top && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		f, err := parse(relative, src)
		all = append(all, f)
		return err
	})
	return all, err
})

func parse(path string, src []byte) (file, error) {
	f := file{path: path, src: src, set: token.NewFileSet()}
	var err error
	f.ast, err = parser.ParseFile(f.set, path, src, parser.ParseComments|parser.SkipObjectResolution)
	return f, err
}

// packageComments returns a sentence for each package whose purpose is not said
// in exactly one place.
func packageComments(all []file) []string {
	comments := map[string][]string{}
	for _, f := range all {
		dir := filepath.Dir(f.path)
		if f.test() {
			continue
		}
		if f.ignored() {
			dir = f.path
		}
		if _, ok := comments[dir]; !ok {
			comments[dir] = nil
		}
		if f.ast.Doc != nil {
			comments[dir] = append(comments[dir], f.path)
		}
	}
	var wrong []string
	for dir, in := range comments {
		if len(in) != 1 {
			wrong = append(wrong, fmt.Sprintf("package %s has %d comments, in %v: say in one place what it is and what it is not", dir, len(in), in))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func TestOnePackageComment(t *testing.T) {
	for _, wrong := range packageComments(files(t)) {
		t.Error(wrong)
	}
}

func TestPackagesAreNamedForWhatTheyHold(t *testing.T) {
	for _, f := range files(t) {
		name := strings.TrimSuffix(f.ast.Name.Name, "_test")
		if slices.Contains(vague, name) || slices.Contains(vague, filepath.Base(filepath.Dir(f.path))) {
			t.Errorf("%s: package %s: put its functions where they are used", f.path, name)
		}
	}
}

// calls returns a sentence for each call in a test that makes tests unreliable.
// Sleeping is fine in virtual time, so files that make a bubble may. Skipping is
// fine where a test needs Python, which nobody has to have; `make preflight` has
// it.
func calls(f file) []string {
	virtual := slices.ContainsFunc(f.ast.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
	python := filepath.Base(f.path) == "python_test.go"
	var wrong []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, _ := selector.X.(*ast.Ident)
		if of == nil {
			return true
		}
		why := ""
		switch {
		case slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, selector.Sel.Name) && slices.Contains([]string{"t", "b", "f", "tb"}, of.Name) && !python:
			why = "a test that is skipped proves nothing"
		case of.Name == "time" && selector.Sel.Name == "Sleep" && !virtual:
			why = "wait for the condition, or run in virtual time"
		}
		if why != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s.%s: %s", f.set.Position(call.Pos()), of.Name, selector.Sel.Name, why))
		}
		return true
	})
	return wrong
}

func TestTestsNeitherSkipNorSleep(t *testing.T) {
	for _, f := range files(t) {
		if !f.test() {
			continue
		}
		for _, wrong := range calls(f) {
			t.Error(wrong)
		}
	}
}

// Tests of build tag long are in files that make test-long finds.
func TestLongTestsAreFound(t *testing.T) {
	for _, f := range files(t) {
		if tagged := strings.HasPrefix(string(f.src), "//go:build long\n"); tagged != strings.HasSuffix(f.path, "_long_test.go") {
			t.Errorf("%s: what begins with //go:build long has a name that ends in _long_test.go, and nothing else has", f.path)
		}
	}
}

func TestContinuousIntegrationCanRun(t *testing.T) {
	for _, name := range []string{".ci/run", "scripts/devmesh"} {
		info, err := os.Stat(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o111 != 0o111 {
			t.Errorf("%s has mode %o: make it executable", name, info.Mode().Perm())
		}
	}
}

func TestWrongFilesAreFound(t *testing.T) {
	source := func(path, src string) file {
		f, err := parse(path, []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	got := packageComments([]file{
		source("none/a.go", "package none"), source("none/a_test.go", "// Package none is.\npackage none"),
		source("one/a.go", "// Package one is.\npackage one"), source("one/b.go", "package one"),
		source("two/a.go", "// Package two is.\npackage two"), source("two/b.go", "// Package two is.\npackage two"),
		source("run/a.go", "//go:build ignore\n\n// Command a is.\npackage main"), source("run/b.go", "//go:build ignore\n\n// Command b is.\npackage main"),
	})
	if len(got) != 2 || !strings.HasPrefix(got[0], "package none has 0") || !strings.HasPrefix(got[1], "package two has 2") {
		t.Errorf("comments: %v", got)
	}
	const body = "func f() { t.Skip(); time.Sleep(1); tb.Skipf(``); list.Skip() }"
	if got := calls(source("a_test.go", "package a\n"+body)); len(got) != 3 {
		t.Errorf("in a test: %v", got)
	}
	if got := calls(source("python_test.go", "package a\n"+body)); len(got) != 1 {
		t.Errorf("in a test that needs Python: %v", got)
	}
	if got := calls(source("a_test.go", "package a\nimport \"testing/synctest\"\n"+body)); len(got) != 2 {
		t.Errorf("in a test in virtual time: %v", got)
	}
}
