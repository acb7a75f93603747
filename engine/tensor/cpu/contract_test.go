package cpu_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor/contract"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

func TestContract(t *testing.T) {
	d := cpu.New(2)
	defer d.Close()
	if err := family.Err(); err != nil {
		t.Fatal(err)
	}
	contract.Run(t, d)
}

// A process computes with one family, so the smaller ones have processes of their
// own.
func TestContractOfSmallerFamilies(t *testing.T) {
	all := family.Current().Within()
	for _, f := range all[:len(all)-1] {
		name := strings.ToLower(f.String())
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^(TestContract|TestEpilogues)$")
			c.Env = append(os.Environ(), family.Variable+"="+name)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("with %s=%s: %v\n%s", family.Variable, name, err, out)
			}
		})
	}
}
