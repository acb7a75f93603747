//go:build cuda && emulator

package device

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor/contract"
)

// opened is the first GPU, or the emulated one, closed with the test. Nothing may have
// gone wrong with it by then.
func opened(t *testing.T, o Options) *Device {
	t.Helper()
	d, err := Open(0, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Err(); err != nil {
			t.Error(err)
		}
		d.Close()
	})
	return d
}

func TestContract(t *testing.T) { contract.Run(t, opened(t, Options{F32: true})) }

func TestAllocations(t *testing.T) { contract.Allocations(t, opened(t, Options{})) }

func TestLanes(t *testing.T) { contract.Lanes(t, opened(t, Options{})) }

// TF32 keeps 11 bits of each operand, BF16 8, both rounded to the nearest.
func TestRoundedProducts(t *testing.T) {
	d := opened(t, Options{})
	contract.Products(t, d, 1e-3)
	d.SetBF16(true)
	contract.Products(t, d, 8e-3)
	d.SetBF16(false)
	contract.Products(t, d, 1e-3)
}

// schedules are orders in which an emulated GPU does what a real one may do in any.
var schedules = []string{
	"HOPMESH_EMU_SCHED=greedyrev HOPMESH_EMU_COPY=eager HOPMESH_EMU_QUEUE=eager",
	"HOPMESH_EMU_SCHED=rev HOPMESH_EMU_COPY=late HOPMESH_EMU_QUEUE=rand:3",
}

// The emulator reads its schedule when it is first used, so others than that of this
// process have processes of their own.
func TestOtherSchedules(t *testing.T) {
	for _, s := range schedules {
		t.Run(s, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^(TestContract|TestStaging.*|TestMirrors.*|TestLanes.*|TestResident.*)$", "-test.skip="+flag.Lookup("test.skip").Value.String())
			c.Env = append(os.Environ(), strings.Fields(s)...)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
