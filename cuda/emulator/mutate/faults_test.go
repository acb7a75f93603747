package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A fault is planted by a text that a kernel has once: who changes the kernel hears of it
// here, and not when faults are planted next.
func TestFaultsCanBePlanted(t *testing.T) {
	names := map[string]bool{}
	for _, f := range faults {
		text, err := os.ReadFile(filepath.Join("../../..", kernels, f.file))
		if err != nil {
			t.Error(err)
		}
		if n := strings.Count(string(text), f.from); n != 1 || f.from == f.to {
			t.Errorf("%s: %q: its text stands there %d times", f.file, f.name, n)
		}
		if _, err := os.Stat(filepath.Join("../../..", kernels, f.source())); err != nil || filepath.Ext(f.source()) != ".cu" {
			t.Errorf("%s: %q: no kernel is compiled of %s: %v", f.file, f.name, f.source(), err)
		}
		if names[f.name] {
			t.Errorf("two faults are called %q", f.name)
		}
		names[f.name] = true
	}
}

// Each fault has its turn.
func TestAllHaveTheirTurn(t *testing.T) {
	const every = 12
	planted := map[string]int{}
	for turn := 9370067; turn < 9370067+every; turn++ {
		for _, f := range chosen("", every, turn) {
			planted[f.name]++
		}
	}
	for _, f := range faults {
		if planted[f.name] != 1 {
			t.Errorf("%q is planted %d times in %d turns", f.name, planted[f.name], every)
		}
	}
}
