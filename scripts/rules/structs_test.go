package rules

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const (
	maxFields      = 15
	maxMethodFiles = 5
	manyMethods    = 20 // an interface of more is what it takes to be a device or a backend
)

// large are the implementations, by package and name, of interfaces with more than
// manyMethods methods. They need the files that they need.
var large = map[string]string{
	"cuda/device.Device":             "engine/tensor.Foreign",
	"engine/tensor/cpu.Device":       "engine/tensor.Device",
	"engine/tensor/foreign.Device":   "engine/tensor.Foreign",
	"engine/tensor/reference.Device": "engine/tensor.Device",
	"node.backend":                   "node/api.Backend",
}

// A declared is a type of a package that somebody wrote.
type declared struct {
	name    string // folder and type
	spec    *ast.TypeSpec
	structs *ast.StructType // nil if it is none
	methods []*ast.FuncDecl
	files   []string // that its methods stand in; a file for each platform counts once
}

// types returns the types of all packages, by folder and name. If several files declare a
// type, each for another platform, the one with the most fields stands for them.
func types(all []file) map[string]*declared {
	found := map[string]*declared{}
	of := func(name string) *declared {
		if found[name] == nil {
			found[name] = &declared{name: name}
		}
		return found[name]
	}
	for dir, in := range written(all) {
		for _, f := range in {
			for _, d := range f.ast.Decls {
				switch d := d.(type) {
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if s, ok := s.(*ast.TypeSpec); ok {
							t := of(dir + "." + s.Name.Name)
							is, _ := s.Type.(*ast.StructType)
							if t.spec == nil || is != nil && is.Fields.NumFields() > t.fields() {
								t.spec, t.structs = s, is
							}
						}
					}
				case *ast.FuncDecl:
					if name := receiver(d); name != "" {
						t := of(dir + "." + name)
						t.methods = append(t.methods, d)
						if !slices.Contains(t.files, f.variant()) {
							t.files = append(t.files, f.variant())
						}
					}
				}
			}
		}
	}
	return found
}

// receiver returns the name of the type that a function is a method of, if it is one.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	return named(d.Recv.List[0].Type)
}

// named returns the name of a type of the same package or of a pointer to one, without
// its type arguments.
func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return named(e.X)
	case *ast.IndexExpr:
		return named(e.X)
	case *ast.IndexListExpr:
		return named(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// fields returns how many fields a struct has; what is embedded counts as one.
func (t *declared) fields() int {
	if t.structs == nil {
		return 0
	}
	return t.structs.Fields.NumFields()
}

// record reports whether a type is a JSON record: all its fields have a name in JSON, or
// are embedded.
func (t *declared) record() bool {
	tagged := false
	if t.structs != nil {
		for _, f := range t.structs.Fields.List {
			switch {
			case f.Tag != nil && strings.Contains(f.Tag.Value, `json:"`):
				tagged = true
			case len(f.Names) > 0:
				return false
			}
		}
	}
	return tagged
}

// free reports whether a type may be as large as it has to be: JSON records, options and
// implementations of large interfaces.
func (t *declared) free() bool {
	name := strings.ToLower(t.name)
	return t.record() || strings.HasSuffix(name, "options") || strings.HasSuffix(name, "config") || large[t.name] != ""
}

func structFields(all []file) []finding {
	var found []finding
	for _, t := range types(all) {
		if n := t.fields(); n > maxFields && !t.free() {
			found = append(found, finding{"fields", t.name, n, nil})
		}
	}
	return found
}

func methodFiles(all []file) []finding {
	var found []finding
	for _, t := range types(all) {
		if n := len(t.files); n > maxMethodFiles && !t.free() {
			slices.Sort(t.files)
			found = append(found, finding{"spread", t.name, n, []string{strings.Join(t.files, ", ")}})
		}
	}
	return found
}

// strict reports whether a folder is one of those where a struct may not even be embedded in
// what its own methods make. Elsewhere that is how a table hands out a reader of itself.
func strict(dir string) bool {
	return dir == "engine/train" || within(dir, "engine/strategy") || within(dir, "node")
}

// parents finds structs that embed a pointer to their parent: a struct of the same package
// that has them in a field or, where that is strict, whose methods make them of themselves.
func parents(all []file) []finding {
	known := types(all)
	var found []finding
	for _, child := range known {
		if child.structs == nil {
			continue
		}
		dir, self, _ := cutLast(child.name, ".")
		for _, f := range child.structs.Fields.List {
			star, ok := f.Type.(*ast.StarExpr)
			if !ok || len(f.Names) > 0 {
				continue
			}
			parent := known[dir+"."+named(star)]
			if parent != nil && (parent.holds(self) || strict(dir) && parent.makes(self)) {
				found = append(found, finding{"parent", child.name, 1, []string{"embeds *" + named(star)}})
			}
		}
	}
	return found
}

// holds reports whether a struct has a field with a type of the same package, or with
// pointers to it, slices or maps of it.
func (t *declared) holds(name string) bool {
	if t.structs == nil {
		return false
	}
	held := false
	for _, f := range t.structs.Fields.List {
		ast.Inspect(f.Type, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncType, *ast.SelectorExpr: // no value of it, and a type of another package
				return false
			case *ast.Ident:
				held = held || n.Name == name
			}
			return true
		})
	}
	return held
}

// makes reports whether a method of a type makes a value of another with the method's
// receiver in it.
func (t *declared) makes(name string) bool {
	made := false
	for _, m := range t.methods {
		if len(m.Recv.List[0].Names) == 0 || m.Body == nil {
			continue
		}
		self := m.Recv.List[0].Names[0].Name
		ast.Inspect(m.Body, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || lit.Type == nil || named(lit.Type) != name {
				return true
			}
			for _, e := range lit.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					e = pair.Value
				}
				if id, ok := e.(*ast.Ident); ok && id.Name == self {
					made = true
				}
			}
			return true
		})
	}
	return made
}

// cutLast slices s around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// methodsOf returns how many methods an interface has with those that it embeds, which
// have to be of the same package.
func methodsOf(known map[string]*declared, name string) int {
	t := known[name]
	if t == nil || t.spec == nil {
		return 0
	}
	is, ok := t.spec.Type.(*ast.InterfaceType)
	if !ok {
		return 0
	}
	dir, _, _ := cutLast(name, ".")
	sum := 0
	for _, m := range is.Methods.List {
		if len(m.Names) > 0 {
			sum += len(m.Names)
		} else {
			sum += methodsOf(known, dir+"."+named(m.Type))
		}
	}
	return sum
}

func TestLargeInterfacesAreLarge(t *testing.T) {
	known := types(files(t))
	for name, of := range large {
		if known[name] == nil || known[name].spec == nil {
			t.Errorf("there is no type %s, which may be large", name)
		}
		if n := methodsOf(known, of); n <= manyMethods {
			t.Errorf("%s may be large for the sake of %s, which has %d methods only", name, of, n)
		}
	}
}

func TestLargeAndBackwardStructsAreFound(t *testing.T) {
	many := func(n int, tag string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "\tf%d int %s\n", i, tag)
		}
		return b.String()
	}
	const tag = "`json:\"f\"`"
	planted(t, structFields, []plant{
		{map[string]string{"a/a.go": "package a\ntype T struct {\n" + many(14, "") + "\tU\n}"}, ""},
		{map[string]string{"a/a.go": "package a\ntype T struct {\n" + many(15, "") + "\tU\n}"}, "a.T 16"},
		{map[string]string{"a/a.go": "package a\ntype T struct { a, b, c int\n" + many(13, "") + "}"}, "a.T 16"},
		{map[string]string{"a/a.go": "package a\ntype T struct {\n" + many(16, tag) + "\tU\n}"}, ""},
		{map[string]string{"a/a.go": "package a\ntype T struct {\n" + many(16, tag) + "\tu int\n}"}, "a.T 17"},
		{map[string]string{"a/a.go": "package a\ntype TOptions struct {\n" + many(16, "") + "}\ntype config struct {\n" + many(16, "") + "}"}, ""},
		{map[string]string{"a/a_linux.go": "package a\ntype T struct{ a int }", "a/a_other.go": "package a\ntype T struct {\n" + many(16, "") + "}"}, "a.T 16"},
		{map[string]string{"a/a_test.go": "package a\ntype T struct {\n" + many(16, "") + "}"}, ""},
	})
	spread := map[string]string{"a/t.go": "package a\ntype T[K any] struct{}"}
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		spread["a/"+name+".go"] = "package a\nfunc (t *T[K]) " + name + "() {}"
	}
	spread["a/b_arm64.go"], spread["a/t_test.go"] = spread["a/b.go"], "package a\nfunc (t T[K]) test() {}"
	planted(t, methodFiles, []plant{{spread, ""}})
	spread["a/g.go"] = "package a\nfunc (t T[K]) g() {}"
	planted(t, methodFiles, []plant{{spread, "a.T 6"}})

	planted(t, parents, []plant{
		{map[string]string{"a/p.go": "package a\ntype p struct { c *c }", "a/c.go": "package a\ntype c struct { *p }"}, "a.c 1"},
		{map[string]string{"a/p.go": "package a\ntype p struct { all map[string][]c }\ntype c struct { *p }"}, "a.c 1"},
		{map[string]string{"node/p.go": "package a\ntype p struct{}\ntype c struct { *p }\nfunc (x *p) f() c { return c{p: x} }"}, "node.c 1"},
		{map[string]string{"mesh/p.go": "package a\ntype p struct{}\ntype c struct { *p }\nfunc (x *p) f() c { return c{p: x} }"}, ""},
		{map[string]string{"a/p.go": "package a\ntype p struct { c c; f func(d) }\ntype c struct { p *p }\ntype d struct { *p }"}, ""},
		{map[string]string{"a/p.go": "package a\nimport \"b\"\ntype p struct { c b.c }\ntype c struct { *p }"}, ""},
	})

	f, err := parse("a/a.go", []byte("package a\ntype I interface { J; f(); g() }\ntype J interface { h() }"))
	if err != nil {
		t.Fatal(err)
	}
	if n := methodsOf(types([]file{f}), "a.I"); n != 3 {
		t.Errorf("the interface has %d methods, want 3", n)
	}
}
