package rows

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Kernels for AVX2 use the 16 registers that it has: the assembler also knows the 16 of
// AVX-512, which end the process on other processors.
func TestAVX2HasSixteenRegisters(t *testing.T) {
	beyond := regexp.MustCompile(`\b[XYZ](1[6-9]|2[0-9]|3[01])\b`)
	files, err := filepath.Glob("../*/avx2_amd64.s")
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			if beyond.Match(lines.Bytes()) {
				t.Errorf("%s:%d: %s", path, n, lines.Text())
			}
		}
		if err := lines.Err(); err != nil {
			t.Error(err)
		}
	}
}
