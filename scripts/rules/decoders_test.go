package rules

import (
	"bufio"
	"fmt"
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// What takes numbers, JSON, certificates or compressed data out of bytes. A function that
// calls one of these decodes, and stands in testdata/decoders.txt.
var decodes = []string{
	"json.Unmarshal", "json.NewDecoder", "binary.Read", "binary.Uvarint", "binary.Varint", "binary.LittleEndian.Uint", "binary.BigEndian.Uint", "binary.NativeEndian.Uint",
	"pem.Decode", "csv.NewReader", "gzip.NewReader", "tar.NewReader", "x509.Parse", "hex.Decode", "base64.", "base32.", "xml.", "gob.",
}

// decoders returns all functions, those of them that decode, and the fuzz tests, as
// package.Type.Function.
func decoders(all []file) (functions map[string]bool, found, targets []string) {
	functions = map[string]bool{}
	for _, f := range all {
		dir := path.Dir(f.path)
		for _, d := range f.ast.Decls {
			fn, is := d.(*ast.FuncDecl)
			if !is || fn.Body == nil {
				continue
			}
			if f.test() {
				if strings.HasPrefix(fn.Name.Name, "Fuzz") {
					targets = append(targets, dir+"."+fn.Name.Name)
				}
				continue
			}
			name := dir + "." + ofType(fn) + fn.Name.Name
			functions[name] = true
			if callsOne(fn.Body, decodes) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return functions, found, targets
}

// ofType returns the type that a method is of, with a full stop, or "".
func ofType(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}

// callsOne reports whether a body calls a function of another package with one of these beginnings.
func callsOne(body *ast.BlockStmt, begin []string) (yes bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is {
			name := dotted(call.Fun)
			yes = yes || slices.ContainsFunc(begin, func(b string) bool { return name != "" && strings.HasPrefix(name, b) })
		}
		return !yes
	})
	return yes
}

// dotted returns a.b.c of such an expression, and "" of others.
func dotted(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		if left := dotted(x.X); left != "" {
			return left + "." + x.Sel.Name
		}
	case *ast.IndexExpr:
		return dotted(x.X)
	}
	return ""
}

// Every function that takes bytes apart is in a list, with the fuzz tests that reach it or with
// why none is needed, and every fuzz test is in that list. Who adds a decoder adds a line.
func TestDecoders(t *testing.T) {
	functions, found, targets := decoders(files(t))
	if len(found) < 100 || len(targets) < 60 {
		t.Fatalf("found %d decoders and %d fuzz tests only", len(found), len(targets))
	}
	f, err := os.Open("testdata/decoders.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	listed, named := map[string]bool{}, map[string]bool{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		at := fmt.Sprintf("testdata/decoders.txt:%d", n)
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, by, ok := strings.Cut(line, ": ")
		if !ok || by == "" {
			t.Errorf("%s: %q is not NAME: FUZZ TESTS, nor NAME: none, REASON", at, line)
			continue
		}
		if listed[name] {
			t.Errorf("%s: %s is listed twice", at, name)
		}
		listed[name] = true
		if !functions[name] {
			t.Errorf("%s: there is no function %s", at, name)
		}
		if strings.HasPrefix(by, "none, ") {
			if !slices.Contains(found, name) {
				t.Errorf("%s: %s does not take bytes apart any more: take the line out", at, name)
			}
			continue
		}
		for target := range strings.SplitSeq(by, ", ") {
			if !strings.Contains(target, ".") {
				target = name[:strings.Index(name, ".")] + "." + target
			}
			named[target] = true
			if !slices.Contains(targets, target) {
				t.Errorf("%s: there is no fuzz test %s", at, target)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if !listed[name] {
			t.Errorf("%s takes bytes apart: write a fuzz test and name it in testdata/decoders.txt, or say there why none is needed", name)
		}
	}
	for _, target := range targets {
		if !named[target] {
			t.Errorf("%s reaches no decoder of testdata/decoders.txt: name it there", target)
		}
	}
}
