package read

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// maxClasses bounds labels: a model has a column for each class.
const maxClasses = 1 << 20

// parseLabel reads a class as a file of text has it. What pandas makes of integers
// among which one is missing, as 3.0, is taken too.
func parseLabel(b []byte) (int32, error) {
	if len(b) == 0 || bytes.EqualFold(b, []byte("nan")) {
		return graph.NoLabel, nil
	}
	if v, ok := parseID(b); ok {
		return intLabel(v)
	}
	v, err := parseFloat(b)
	if err != nil {
		return 0, fmt.Errorf("the label %s is no integer: number the classes 0, 1, 2 and so on", shorten(b))
	}
	return floatLabel(float64(v))
}

func intLabel(v int64) (int32, error) {
	if v < -1 || v >= maxClasses {
		return 0, fmt.Errorf("the label %d is not between 0 and %d: number the classes 0, 1, 2 and so on, and leave what is missing empty or -1", v, maxClasses-1)
	}
	return int32(v), nil
}

func floatLabel(v float64) (int32, error) {
	if math.IsNaN(v) {
		return graph.NoLabel, nil
	}
	if v != math.Trunc(v) {
		return 0, fmt.Errorf("the label %v is no integer: number the classes 0, 1, 2 and so on", v)
	}
	return intLabel(int64(max(-2, min(v, maxClasses))))
}

// parseMark reads the part of a split; empty is none.
func parseMark(b []byte) (graph.Mark, error) {
	switch strings.ToLower(string(b)) {
	case "":
		return graph.Unmarked, nil
	case "train":
		return graph.Train, nil
	case "val", "valid", "validation":
		return graph.Validation, nil
	case "test":
		return graph.Test, nil
	}
	return 0, fmt.Errorf("%s is no part of a split: write train, val or test, or leave it empty", shorten(b))
}

// explainNumber says why a feature or a weight could not be read.
func explainNumber(what string, b []byte, err error) error {
	switch {
	case len(b) == 0:
		return fmt.Errorf("the %s is empty: write a number, 0 if there is nothing", what)
	case errors.Is(err, errNotFinite):
		return fmt.Errorf("the %s is %s: write a finite number", what, b)
	case errors.Is(err, errOutOfRange):
		return fmt.Errorf("the %s %s does not fit in 32 bits: scale it down", what, shorten(b))
	}
	return fmt.Errorf("the %s %s is not a number: write one with a decimal point", what, shorten(b))
}
