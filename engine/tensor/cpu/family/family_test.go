package family

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		asked string
		has   Family
		want  Family
		fault string // "": none
	}{
		{"", Generic, Generic, ""},
		{"", AVX2, AVX2, ""},
		{"", AVX512, AVX512, ""},
		{"generic", AVX512, Generic, ""},
		{"avx2", AVX512, AVX2, ""},
		{"avx2", AVX2, AVX2, ""},
		{"avx512", AVX512, AVX512, ""},
		{"avx2", Generic, 0, "asks for AVX2 and this CPU has no more than generic"},
		{"avx512", AVX2, 0, "asks for AVX-512 and this CPU has no more than AVX2"},
		{"", NEON, NEON, ""},
		{"neon", NEON, NEON, ""},
		{"generic", NEON, Generic, ""},
		{"avx2", NEON, 0, "asks for AVX2 and this CPU has no more than NEON"},
		{"avx512", NEON, 0, "asks for AVX-512 and this CPU has no more than NEON"},
		{"neon", AVX512, 0, "asks for NEON and this CPU has no more than AVX-512"},
		{"neon", Generic, 0, "asks for NEON and this CPU has no more than generic"},
		{"AVX2", AVX512, 0, `is "AVX2" and not generic, avx2, avx512 or neon`},
		{"sse", AVX512, 0, `is "sse" and not generic, avx2, avx512 or neon`},
	} {
		got, err := Choose(c.asked, c.has)
		if c.fault == "" && (err != nil || got != c.want) {
			t.Errorf("%q of %s: %s, %v", c.asked, c.has, got, err)
		}
		if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault) || !strings.Contains(err.Error(), Variable)) {
			t.Errorf("%q of %s: %v", c.asked, c.has, err)
		}
	}
}

func TestWithin(t *testing.T) {
	for f, want := range map[Family][]Family{
		Generic: {Generic}, AVX2: {Generic, AVX2}, AVX512: {Generic, AVX2, AVX512}, NEON: {Generic, NEON},
	} {
		if got := f.Within(); !slices.Equal(got, want) {
			t.Errorf("within %s: %v", f, got)
		}
	}
}

// TestCurrent is also what the processes below run.
func TestCurrent(t *testing.T) {
	want, err := Choose(os.Getenv(Variable), available())
	if err != nil {
		want = available()
	}
	if Current() != want || (Err() == nil) != (err == nil) {
		t.Errorf("%s=%q: %s, %v", Variable, os.Getenv(Variable), Current(), Err())
	}
	if runtime.GOARCH == "arm64" && available() != NEON {
		t.Errorf("all arm64 have NEON, and this one %s", available())
	}
	if BF16() && Current() != AVX512 {
		t.Errorf("products of bf16 with %s", Current())
	}
}

func TestVariable(t *testing.T) {
	for _, value := range []string{"", "generic", "avx2", "avx512", "neon", "none such"} {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCurrent$")
		c.Env = append(os.Environ(), Variable+"="+value)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s=%q: %v\n%s", Variable, value, err, out)
		}
	}
}
