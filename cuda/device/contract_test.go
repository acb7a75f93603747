//go:build cuda && emulator

package device_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/cuda/device"
	"github.com/hopmesh/hopmesh/engine/tensor/contract"
)

func TestContract(t *testing.T) {
	d, err := device.Open(0, device.Options{F32: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	contract.Run(t, d)
}
