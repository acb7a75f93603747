package golden

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/recipe"
)

// The number of computing names the weights of the table. Whoever changes the table sees this
// test, and decides whether programs with the number still come to the same bits.
func TestNumberOfComputing(t *testing.T) {
	hashes, err := os.ReadFile(filepath.Join("testdata", "hashes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "number.txt")
	want := fmt.Sprintf("computing %d is hashes.txt with SHA-256 %x\n", recipe.Computing, sha256.Sum256(hashes))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("the table of golden hashes or the number has changed: if a row that was there before is another now, raise recipe.Computing; then go test ./engine/golden -run TestNumberOfComputing -update (%v)", err)
	}
}
