package kernels_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cuda/kernels"
)

var (
	inSource = regexp.MustCompile(`(?m)^(?:KERNEL|KERNEL_BESIDE|GEMM)\((\w+),`)
	inPTX    = regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`)
	inShared = regexp.MustCompile(`(?m)^[^\n]*\.shared [^\n]*\b\w+\[(\d+)\];`)
)

// sharedLimit is what a block may have without being asked.
const sharedLimit = 48 << 10

// Each source has its module, which has the source's kernels and no others; no name
// stands twice.
func TestModulesAreWhatTheSourcesSay(t *testing.T) {
	sources, err := filepath.Glob("*.cu")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	modules, seen := map[string]string{}, map[string]string{}
	for _, m := range kernels.Modules() {
		modules[m.Name] = m.PTX
	}
	for _, source := range sources {
		name := strings.TrimSuffix(source, ".cu")
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		ptx, ok := modules[name]
		if !ok {
			t.Errorf("%s has no PTX: make ptx", source)
		}
		delete(modules, name)
		has := map[string]bool{}
		for _, found := range inPTX.FindAllStringSubmatch(ptx, -1) {
			has[found[1]] = true
		}
		for _, found := range inSource.FindAllStringSubmatch(string(text), -1) {
			kernel := found[1]
			if !has[kernel] {
				t.Errorf("%s: %s is not in the PTX: make ptx", source, kernel)
			}
			if other := seen[kernel]; other != "" {
				t.Errorf("%s and %s both have a kernel %s", source, other, kernel)
			}
			delete(has, kernel)
			seen[kernel] = source
		}
		for kernel := range has {
			t.Errorf("%s.ptx has a kernel %s that is not in the source: make ptx", name, kernel)
		}
	}
	for name := range modules {
		t.Errorf("%s.ptx has no source", name)
	}
}

// What ships runs with the drivers and on the GPUs that it should, and within a
// block's static shared memory.
func TestPTXIsWhatDriversTake(t *testing.T) {
	arrays := 0
	for _, m := range kernels.Modules() {
		for _, line := range []string{".version 8.0\n", ".target sm_80\n", ".address_size 64\n"} {
			if !strings.Contains(m.PTX, "\n"+line) {
				t.Errorf("%s: no line %q", m.Name, line)
			}
		}
		for _, found := range inShared.FindAllStringSubmatch(m.PTX, -1) {
			if n, err := strconv.Atoi(found[1]); err != nil || n > sharedLimit {
				t.Errorf("%s: an array of %s bytes of shared memory: a block has %d", m.Name, found[1], sharedLimit)
			}
			arrays++
		}
		if strings.Contains(m.PTX, ".local") {
			t.Errorf("%s uses local memory: an array is indexed by what is not known when it is compiled", m.Name)
		}
	}
	if arrays == 0 {
		t.Error("no shared memory found: has its spelling changed?")
	}
}
