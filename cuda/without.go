//go:build !cuda

package cuda

import (
	"errors"
	"fmt"
	"os"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// driverFile exists if the NVIDIA driver is loaded.
const driverFile = "/proc/driver/nvidia/version"

var errBuild = errors.New("this build of hopmesh computes on the processor only")

func candidates() ([]candidate, error) { return without(driverFile) }

func without(driverFile string) ([]candidate, error) {
	if _, err := os.Stat(driverFile); err == nil {
		return nil, fmt.Errorf("%w, though an NVIDIA driver is loaded on this machine: `make build-cuda` makes one that looks for GPUs", errBuild)
	}
	return nil, errBuild
}

// Open opens a device that Detect returned. This build supports no GPU, and the CPU is
// not opened here.
func Open(name string) (tensor.Device, error) {
	return nil, fmt.Errorf("device %s: %w: %w", name, ErrNoGPU, errBuild)
}
