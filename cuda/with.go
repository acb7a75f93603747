//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/device"
	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// The minimum versions for the kernels: PTX 8.0, which drivers for CUDA 12.0 support
// first, and compute capability 8.0.
const (
	leastVersion = 12000
	leastMajor   = 8
)

func candidates() ([]candidate, error) {
	found, err := driver.Probe()
	return choice(found, err)
}

// choice converts the result of Probe to candidates.
func choice(found driver.Found, err error) ([]candidate, error) {
	if found.Version > 0 && found.Version < leastVersion {
		return nil, fmt.Errorf("the NVIDIA driver is for CUDA %s, and 12.0 is the least: update the driver", found.CUDA())
	}
	if _, is := errors.AsType[*driver.Error](err); is {
		return nil, fmt.Errorf("the NVIDIA driver does not work: %w", err)
	}
	if err != nil {
		return nil, err
	}
	list := make([]candidate, len(found.Devices))
	for i, d := range found.Devices {
		list[i] = candidate{name: fmt.Sprintf("%s with %d GiB", d.Name, d.Memory>>30)}
		if d.Major < leastMajor {
			list[i].wrong = fmt.Errorf("its compute capability is %d.%d, and %d.0 is the least", d.Major, d.Minor, leastMajor)
		}
	}
	return list, nil
}

// Open opens a device that Detect returned, cuda:N. Its products are rounded to tf32.
func Open(name string) (tensor.Device, error) {
	n, err := number(name)
	if err != nil {
		return nil, err
	}
	d, err := device.Open(n, device.Options{})
	if err != nil {
		return nil, fmt.Errorf("device %s: %w: %w", name, ErrNoGPU, err)
	}
	return d, nil
}
