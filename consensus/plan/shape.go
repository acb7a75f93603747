package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
)

// Shape returns a digest of the fields that a State has, in this version of the program. States
// of equal shape have equal digests if they are equal; the digests of others say nothing about
// each other.
func Shape() string {
	h := sha256.New()
	describe(h, reflect.TypeFor[State](), map[reflect.Type]bool{})
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func describe(to io.Writer, t reflect.Type, seen map[reflect.Type]bool) {
	fmt.Fprintf(to, "%s %s;", t.Kind(), t)
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			fmt.Fprintf(to, "%s %s:", f.Name, f.Tag)
			describe(to, f.Type, seen)
		}
	case reflect.Map:
		describe(to, t.Key(), seen)
		describe(to, t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(to, t.Elem(), seen)
	}
}
