package source

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// IsBlank reports whether c is a space or a tab.
func IsBlank(c byte) bool { return c == ' ' || c == '\t' }

// What is wrong with a number.
var (
	ErrNotFinite  = errors.New("not finite")
	ErrOutOfRange = errors.New("out of range")
	ErrNotANumber = errors.New("not a number")
)

// Shorten quotes text of a file for a sentence.
func Shorten(b []byte) string {
	const most = 40
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}

// ParseID reads an integer if writing it gives the same text again: 007, +7 and -0 are
// text, so that every id comes back as it was.
func ParseID(b []byte) (int64, bool) {
	digits := b
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	var v uint64
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		v = v*10 + uint64(c) // 19 digits are below 1<<64
	}
	if negative {
		return -int64(v), v <= 1<<63
	}
	return int64(v), v < 1<<63
}

// PlainInteger reads an integer of up to 18 digits that is written as ParseID wants
// it, and returns where it ends. If there is none, it returns len(b), where no delimiter
// follows.
func PlainInteger(b []byte, at int) (int64, int) {
	from := at
	negative := at < len(b) && b[at] == '-'
	if negative {
		at++
		from++
	}
	var v int64
	for ; at < len(b); at++ {
		c := b[at] - '0'
		if c > 9 {
			break
		}
		v = v*10 + int64(c)
	}
	if n := at - from; n == 0 || n > 18 || b[from] == '0' && (n > 1 || negative) {
		return 0, len(b)
	}
	if negative {
		v = -v
	}
	return v, at
}

// Trim cuts off blanks and carriage returns.
func Trim(b []byte) []byte {
	for len(b) > 0 && IsBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && (IsBlank(b[len(b)-1]) || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// ParseFloat reads a finite number.
func ParseFloat(b []byte) (float32, error) {
	v, err := strconv.ParseFloat(string(b), 32) // neither copied nor kept, says the compiler
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, ErrOutOfRange
	case err != nil:
		return 0, ErrNotANumber
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, ErrNotFinite
	}
	return float32(v), nil
}

// MaxClasses bounds labels: a model has an output for each class.
const MaxClasses = 1 << 20

// ParseLabel reads a class from text, also as 3.0, which is how pandas writes integers
// if one is missing.
func ParseLabel(b []byte) (int32, error) {
	if len(b) == 0 || bytes.EqualFold(b, []byte("nan")) {
		return graph.NoLabel, nil
	}
	if v, ok := ParseID(b); ok {
		return IntLabel(v)
	}
	v, err := ParseFloat(b)
	if err != nil && isWord(b) {
		return 0, fmt.Errorf("the label %s %w", Shorten(b), ErrWord)
	} else if err != nil {
		return 0, fmt.Errorf("the label %s is not an integer: number the classes 0, 1, 2 and so on", Shorten(b))
	}
	return FloatLabel(float64(v))
}

// IntLabel reads a class.
func IntLabel(v int64) (int32, error) {
	if v < -1 || v >= MaxClasses {
		return 0, fmt.Errorf("the label %d is not between 0 and %d: number the classes 0, 1, 2 and so on, and leave what is missing empty or -1", v, MaxClasses-1)
	}
	return int32(v), nil
}

// ErrFraction is that of a label that has digits behind the point.
var ErrFraction = errors.New("not an integer")

// FloatLabel reads a class that is stored as a float.
func FloatLabel(v float64) (int32, error) {
	if math.IsNaN(v) {
		return graph.NoLabel, nil
	}
	if v != math.Trunc(v) {
		return 0, fmt.Errorf("the label %v is %w: number the classes 0, 1, 2 and so on", v, ErrFraction)
	}
	return IntLabel(int64(max(-2, min(v, MaxClasses))))
}

// ParseMark reads the part of a split. Empty text means none.
func ParseMark(b []byte) (graph.Mark, error) {
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
	return 0, fmt.Errorf("%s is not a part of a split: write train, val or test, or leave it empty", Shorten(b))
}

// ExplainNumber returns an error that says why a feature or a weight can't be read.
func ExplainNumber(what string, b []byte, err error) error {
	switch {
	case len(b) == 0:
		return fmt.Errorf("the %s is empty: write a number, 0 if there is nothing", what)
	case errors.Is(err, ErrNotFinite):
		return fmt.Errorf("the %s is %s: write a finite number", what, b)
	case errors.Is(err, ErrOutOfRange):
		return fmt.Errorf("the %s %s does not fit in 32 bits: scale it down", what, Shorten(b))
	}
	return fmt.Errorf("the %s %s is not a number: write one with a decimal point", what, Shorten(b))
}

// Listed joins names for a sentence, up to eight of them.
func Listed(names []string) string {
	const most = 8
	shown := make([]string, min(len(names), most))
	for i := range shown {
		shown[i] = Printable(names[i])
	}
	if len(names) > most {
		return strings.Join(shown, ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(shown, ", ")
}

// Printable replaces what would break a sentence apart, such as a line's end.
func Printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}

// Half converts a float of 16 bits.
func Half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch {
	case exponent == 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	case exponent == 0:
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
