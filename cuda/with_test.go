//go:build cuda && !emulator

package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cuda/driver"
)

func TestWhichGPUsCanBeUsed(t *testing.T) {
	devices := []driver.Info{
		{Ordinal: 0, Name: "Old", Memory: 8 << 30, Major: 7, Minor: 5},
		{Ordinal: 1, Name: "New", Memory: 80 << 30, Major: 9},
	}
	for _, c := range []struct {
		found  driver.Found
		err    error
		of     string // what is asked for
		says   string
		is     error
		device string // that comes of it
	}{
		{found: driver.Found{Version: 11080, Devices: devices}, of: "cuda:1", says: "is for CUDA 11.8, and 12.0 is the least", is: ErrNoGPU},
		{found: driver.Found{Version: 11080}, err: &driver.Error{Call: "cuInit", Code: 803}, of: "cuda:1", says: "is for CUDA 11.8", is: ErrNoGPU},
		{err: driver.ErrNoDriver, of: "cuda:1", says: "no NVIDIA driver on this machine", is: driver.ErrNoDriver},
		{err: driver.ErrOff, of: "cuda:1", says: "HOPMESH_CUDA=off", is: driver.ErrOff},
		{found: driver.Found{Version: 12040}, err: &driver.Error{Call: "cuInit", Code: 803}, of: "cuda:1", says: "the NVIDIA driver does not work: cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", is: ErrNoGPU},
		{found: driver.Found{Version: 12040, Devices: devices}, of: "cuda", says: "GPU 0 is Old with 8 GiB, but its compute capability is 7.5, and 8.0 is the least", is: ErrNoGPU},
		{found: driver.Found{Version: 12040, Devices: devices}, of: "cuda:1", says: "New with 80 GiB was asked for", device: "cuda:1"},
		{found: driver.Found{Version: 12000, Devices: devices}, of: "auto", says: "New with 80 GiB", device: "cuda:1"},
	} {
		device, says, err := detect(c.of, func() ([]candidate, error) { return choice(c.found, c.err) })
		if err != nil {
			says = err.Error()
		}
		if device != c.device || !errors.Is(err, c.is) || (err == nil) != (c.is == nil) || !strings.Contains(says, c.says) {
			t.Errorf("%+v: got %q, %q, %v", c, device, says, err)
		}
	}
}

func TestNoDriver(t *testing.T) {
	t.Setenv("HOPMESH_LIBCUDA", "/nowhere/libcuda.so") // whatever this machine has
	device, reason, err := Detect("auto")
	if device != "cpu" || !strings.Contains(reason, "stat /nowhere/libcuda.so") || err != nil {
		t.Errorf("got %q, %q, %v", device, reason, err)
	}
	if d, err := Open("cuda:0"); d != nil || !errors.Is(err, ErrNoGPU) || !errors.Is(err, driver.ErrNoDriver) {
		t.Errorf("got %v, %v", d, err)
	}
	if _, err := Open("cpu"); !errors.Is(err, ErrDevice) {
		t.Errorf("got %v", err)
	}
}
