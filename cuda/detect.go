package cuda

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrNoGPU says that a GPU was asked for and cannot be had.
	ErrNoGPU = errors.New("no GPU can be used")
	// ErrDevice says that what was asked for is no device.
	ErrDevice = errors.New("no such device")
)

// A candidate is a GPU of this machine: its name, and why it can't be computed on
// if it can't.
type candidate struct {
	name  string
	wrong error
}

// Detect turns what the operator wants into the device that this node uses, and
// says why it is that one. want is auto, cpu, cuda or cuda:N.
func Detect(want string) (device, reason string, err error) { return detect(want, candidates) }

// detect asks look for GPUs, by their numbers, only if one would be used. Its
// error says why there is none to choose from.
func detect(want string, look func() ([]candidate, error)) (device, reason string, err error) {
	if want == "cpu" {
		return "cpu", "the processor was asked for", nil
	}
	if want == "auto" {
		device, reason = best(look())
		return device, reason, nil
	}
	n, err := number(want)
	if err != nil {
		return "", "", err
	}
	list, err := look()
	if err == nil {
		err = usable(list, n)
	}
	if err != nil {
		return "", "", fmt.Errorf("device %s: %w: %w; use --device auto or --device cpu", want, ErrNoGPU, err)
	}
	return "cuda:" + strconv.Itoa(n), list[n].name + " was asked for", nil
}

// number is that of the GPU that is wanted: cuda is the first.
func number(want string) (int, error) {
	kind, text, numbered := strings.Cut(want, ":")
	n, err := strconv.ParseUint(text, 10, 8)
	if kind != "cuda" || numbered && err != nil {
		return 0, fmt.Errorf("device %q: %w; use auto, cpu, cuda or cuda:N, where N is the number of a GPU", want, ErrDevice)
	}
	return int(n), nil
}

// best is the first GPU that can be computed on, or else the processor. none says
// why there is none to choose from.
func best(list []candidate, none error) (device, reason string) {
	if none == nil {
		none = usable(list, 0)
	}
	for n := range list {
		if usable(list, n) == nil {
			return "cuda:" + strconv.Itoa(n), list[n].name
		}
	}
	return "cpu", none.Error()
}

func usable(list []candidate, n int) error {
	switch {
	case len(list) == 0:
		return errors.New("the NVIDIA driver finds no GPU")
	case n >= len(list):
		return fmt.Errorf("GPU %d is not there: the last is %d", n, len(list)-1)
	case list[n].wrong != nil:
		return fmt.Errorf("GPU %d is %s, but %w", n, list[n].name, list[n].wrong)
	}
	return nil
}
