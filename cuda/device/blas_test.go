//go:build cuda && emulator

package device

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/contract"
)

// blasWanted is the variable of a process of these tests in which cuBLAS is asked for.
const blasWanted = "DEVICE_TEST_BLAS"

// Products by cuBLAS are what they are by our kernels, or as near, and where it can't be
// had, or refuses one, our kernels make them. The emulator's library is one of cuBLAS, too.
func TestEmulatedBlas(t *testing.T) {
	for _, c := range []struct{ library, fault, says string }{
		{os.Getenv("HOPMESH_LIBCUDA"), "cublasGemmEx:3:2", "with cuBLAS 13.1"}, // one is refused
		{"/nowhere/libcublas.so", "", "with its own products: no cuBLAS: /nowhere/libcublas.so: cannot open shared object file"},
		{os.Args[0], "", "with its own products: no cuBLAS: "},
	} {
		p := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProductsAsTheyAreWanted$")
		p.Env = append(os.Environ(), "HOPMESH_CUBLAS="+c.library, blasWanted+"="+c.says)
		if c.fault != "" {
			p.Env = append(p.Env, "HOPMESH_EMU_FAULT="+c.fault)
		}
		if out, err := p.CombinedOutput(); err != nil {
			t.Errorf("%+v: %v\n%s", c, err, out)
		}
	}
}

// TestProductsAsTheyAreWanted judges products by whatever this process is told to make
// them with: those of our kernels are judged elsewhere.
func TestProductsAsTheyAreWanted(t *testing.T) {
	says := os.Getenv(blasWanted)
	d := opened(t, Options{F32: true})
	if strings.HasPrefix(says, "with cuBLAS") {
		contract.Products(t, d, 1e-5)
	} else {
		m := matrix(t, d, 2, 2, func(i int) float32 { return float32(i) })
		c := matrix(t, d, 2, 2, nil)
		d.MatMul(c, m, m, tensor.NT, false, nil)
		if got := numbers(d, c); got[0] != 1 || got[1] != 3 || got[3] != 13 {
			t.Errorf("got %v", got)
		}
	}
	if !strings.Contains(d.Name(), says) || (d.Counts().Products > 0) != strings.HasPrefix(says, "with cuBLAS") {
		t.Errorf("%d products by cuBLAS on %s", d.Counts().Products, d.Name())
	}
}
