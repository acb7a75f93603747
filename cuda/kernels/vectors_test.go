package kernels_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/hopmesh/hopmesh/engine/keyed"
)

var update = flag.Bool("update", false, "write testdata anew")

// What is random is the same on a GPU. Kernels are held to these vectors by
// cuda/emulator's tests, and vectors to the processor by this. A line is a key, a
// number, and in hexadecimal the key's child of that number, its first draw, its
// second below the number, and the bits of the number's column.
func TestVectorsAreTheProcessors(t *testing.T) {
	var want bytes.Buffer
	numbers := []uint64{1, 2, 3, 10, 31, 1000, 1<<31 - 1, 1 << 32, 1<<64 - 1}
	key := keyed.Key(0)
	for i := range uint64(64) {
		for _, n := range numbers {
			draws := key.Draws()
			first := draws.Next()
			fmt.Fprintf(&want, "%x %x %x %x %x %x\n", uint64(key), n, uint64(key.With(n)), first, draws.Below(n), key.Column(uint32(n)))
		}
		key = keyed.New(i, keyed.Dropout).With(i * i)
	}
	const path = "testdata/keyed.txt"
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what engine/keyed computes; go test ./cuda/kernels -update writes it, if that is what you want", path)
	}
}
