package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsCheckedInIsWhatTheTablesMake(t *testing.T) {
	if err := write("..", true); err != nil {
		t.Error(err)
	}
}

func TestWriteAndCheck(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, true); err == nil {
		t.Error("nothing is there and nothing is missing")
	}
	if err := os.Mkdir(filepath.Join(dir, "include"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, check := range []bool{false, true} {
		if err := write(dir, check); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "stubs.c"), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, true); err == nil || !strings.Contains(err.Error(), "stubs.c is not what the tables make") {
		t.Errorf("got %v", err)
	}
}

// Every type that a function takes is C's or in the tables, so that the header
// compiles by itself; nothing is there twice.
func TestTablesAreWhole(t *testing.T) {
	known := []string{"const", "void", "char", "short", "int", "long", "unsigned", "float", "size_t"}
	once := func(name string) {
		if slices.Contains(known, name) {
			t.Errorf("%s is there twice", name)
		}
		known = append(known, name)
	}
	for _, a := range aliases {
		once(a.name)
	}
	for _, h := range handles {
		once(h)
	}
	for _, e := range enums {
		once(e.name)
		for _, v := range e.values {
			once(v.name)
		}
	}
	for _, c := range constants {
		once(c.name)
	}
	for _, s := range structures {
		once(s.name)
	}
	word := regexp.MustCompile(`\w+`)
	for _, f := range functions {
		once(f.name())
		for _, w := range word.FindAllString(f.parameters, -1) {
			if !slices.Contains(known, w) {
				t.Errorf("%s takes %s, which is not in the tables", f.symbol, w)
			}
		}
	}
	for _, name := range slices.Concat(byHand, early) {
		if !slices.Contains(known, name) {
			t.Errorf("no function %s", name)
		}
	}
}
