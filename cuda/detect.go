package cuda

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

var (
	// ErrNoGPU says that a GPU was asked for and cannot be had.
	ErrNoGPU = errors.New("this build of hopmesh computes on the processor only")
	// ErrDevice says that what was asked for is no device.
	ErrDevice = errors.New("no such device")
)

// driverFile is there if the NVIDIA driver is loaded.
const driverFile = "/proc/driver/nvidia/version"

// Detect turns what the operator wants into the device that this node uses, and
// says why it is that one. want is auto, cpu, cuda or cuda:N.
func Detect(want string) (device, reason string, err error) {
	return detect(want, driverFile)
}

func detect(want, driverFile string) (device, reason string, err error) {
	kind, number, numbered := strings.Cut(want, ":")
	if numbered {
		if _, err := strconv.ParseUint(number, 10, 8); err != nil || kind != "cuda" {
			kind = ""
		}
	}
	switch kind {
	case "cpu":
		return "cpu", "the processor was asked for", nil
	case "auto":
		if _, err := os.Stat(driverFile); err == nil {
			return "cpu", "an NVIDIA driver is loaded on this machine, but this build of hopmesh does not use it", nil
		}
		return "cpu", "no NVIDIA driver is loaded on this machine", nil
	case "cuda":
		return "", "", fmt.Errorf("device %s: %w; use --device auto or --device cpu", want, ErrNoGPU)
	}
	return "", "", fmt.Errorf("device %q: %w; use auto, cpu, cuda or cuda:N, where N is the number of a GPU", want, ErrDevice)
}
