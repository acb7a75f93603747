package cuda

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrNoGPU means that a GPU was requested and none is usable.
	ErrNoGPU = errors.New("no GPU can be used")
	// ErrDevice means that the requested device name is invalid.
	ErrDevice = errors.New("no such device")
)

// candidate is a GPU of this machine: its name, and why it is unusable, if it is.
type candidate struct {
	name  string
	wrong error
}

// Detect chooses the device that this node computes on, and returns the reason for the
// choice. want is auto, cpu, cuda or cuda:N.
func Detect(want string) (device, reason string, err error) { return detect(want, candidates) }

// detect calls look to list the GPUs only if one would be used. look returns an error if
// there is none to choose from.
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

// number returns the number of the requested GPU; cuda is the first one.
func number(want string) (int, error) {
	kind, text, numbered := strings.Cut(want, ":")
	n, err := strconv.ParseUint(text, 10, 8)
	if kind != "cuda" || numbered && err != nil {
		return 0, fmt.Errorf("device %q: %w; use auto, cpu, cuda or cuda:N, where N is the number of a GPU", want, ErrDevice)
	}
	return int(n), nil
}

// best returns the first usable GPU, or else the CPU. none is the reason if the list is
// empty.
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
