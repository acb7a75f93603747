package openapi

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// Comments reads the comments of the structs in folders of Go source, by TYPE and TYPE.FIELD, the
// field as JSON has it. Comments of fields on one line count for all of them.
func Comments(dirs ...string) (map[string]string, error) {
	says := map[string]string{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("read comments: %w", err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("read comments: %w", err)
			}
			for _, d := range f.Decls {
				if g, is := d.(*ast.GenDecl); is && g.Tok == token.TYPE {
					collect(says, g)
				}
			}
		}
	}
	return says, nil
}

func collect(says map[string]string, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		t := spec.(*ast.TypeSpec)
		body, is := t.Type.(*ast.StructType)
		if !is {
			continue
		}
		doc := t.Doc
		if doc == nil && len(g.Specs) == 1 {
			doc = g.Doc
		}
		says[t.Name.Name] = line(doc)
		for _, f := range body.Fields.List {
			text := cmp.Or(line(f.Doc), line(f.Comment))
			for _, name := range f.Names {
				says[t.Name.Name+"."+cmp.Or(jsonName(f.Tag), name.Name)] = text
			}
		}
	}
}

func line(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

func jsonName(tag *ast.BasicLit) string {
	if tag == nil {
		return ""
	}
	text, err := strconv.Unquote(tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(text).Get("json"), ",")
	return name
}
