//go:build cuda

package driver

// #include <cuda.h>
import "C"

import (
	"fmt"

	"gorgonia.org/cu"
)

// Info describes a device.
type Info struct {
	Ordinal        int
	Name           string
	Memory         int64 // bytes
	Major, Minor   int   // compute capability
	Processors     int   // streaming multiprocessors
	SharedPerBlock int   // the maximum bytes of a block, if requested
}

// Found lists the devices of this machine.
type Found struct {
	Version int // of CUDA that the driver supports: 12040 is 12.4
	Devices []Info
}

// CUDA returns the driver's version as people write it.
func (f Found) CUDA() string { return fmt.Sprintf("%d.%d", f.Version/1000, f.Version%1000/10) }

// Probe looks for devices. Before it is called, the driver is not used. The error is
// ErrOff, ErrNoDriver, or an Error of the driver's initialisation; it is not an error if
// there are no devices. The version is set if the driver reports it, even with an error.
func Probe() (Found, error) {
	err := open()
	f := Found{Version: max(cu.Version(), 0)}
	if err != nil {
		return f, err
	}
	n, err := cu.NumDevices()
	if err != nil {
		return f, failed("cuDeviceGetCount", err)
	}
	for i := range n {
		info, err := info(i)
		if err != nil {
			return f, fmt.Errorf("GPU %d: %w", i, err)
		}
		f.Devices = append(f.Devices, info)
	}
	return f, nil
}

// cu has no name for this attribute.
const maxSharedPerBlock = cu.DeviceAttribute(C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)

func info(ordinal int) (Info, error) {
	i := Info{Ordinal: ordinal}
	d, err := cu.GetDevice(ordinal)
	if err != nil {
		return i, failed("cuDeviceGet", err)
	}
	if i.Name, err = d.Name(); err != nil {
		return i, failed("cuDeviceGetName", err)
	}
	if i.Memory, err = d.TotalMem(); err != nil {
		return i, failed("cuDeviceTotalMem", err)
	}
	for _, a := range []struct {
		of cu.DeviceAttribute
		to *int
	}{
		{cu.ComputeCapabilityMajor, &i.Major}, {cu.ComputeCapabilityMinor, &i.Minor},
		{cu.MultiprocessorCount, &i.Processors}, {maxSharedPerBlock, &i.SharedPerBlock},
	} {
		if *a.to, err = d.Attribute(a.of); err != nil {
			return i, failed("cuDeviceGetAttribute", err)
		}
	}
	return i, nil
}
