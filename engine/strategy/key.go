package strategy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Key is a setting that users give by name. It is bound to a variable, as the flags of
// package flag are, which has the default until the key is set.
type Key struct {
	Key     string
	Applies string // the strategies that have it, or everyStrategy; filled in by Declarations.Keys
	Values  string
	Default string
	Help    string

	set func(value string) error
	get func() string
}

// Keys are the settings of a strategy, bound to one value of its own type.
type Keys []Key

// Parse sets those keys that there is a value for. Other values are left alone.
func (k Keys) Parse(values map[string]string) error {
	for i := range k {
		value, given := values[k[i].Key]
		if !given {
			continue
		}
		if err := k[i].set(value); err != nil {
			return fmt.Errorf("{%s}=%s: %w", k[i].Key, value, err)
		}
	}
	return nil
}

// of returns the key of a name; nil: there is none.
func (k Keys) of(name string) *Key {
	i := slices.IndexFunc(k, func(k Key) bool { return k.Key == name })
	if i < 0 {
		return nil
	}
	return &k[i]
}

// Word binds a key that is one of some words, the first of which is the default.
func Word(to *string, key, help string, words ...string) Key {
	*to = words[0]
	return Key{Key: key, Values: strings.Join(words, "|"), Default: words[0], Help: help,
		set: func(value string) error {
			if !slices.Contains(words, value) {
				return fmt.Errorf("it is one of %s", strings.Join(words, ", "))
			}
			*to = value
			return nil
		},
		get: func() string { return *to },
	}
}

// The values of a Switch.
const (
	On  = "on"
	Off = "off"
)

// Switch binds a key that is on by default.
func Switch(to *bool, key, help string) Key {
	*to = true
	return Key{Key: key, Values: On + "|" + Off, Default: On, Help: help,
		set: func(value string) error {
			if value != On && value != Off {
				return fmt.Errorf("it is %s or %s", On, Off)
			}
			*to = value == On
			return nil
		},
		get: func() string {
			if *to {
				return On
			}
			return Off
		},
	}
}

// Bounds of what is counted.
const (
	MostCount = 1 << 20
	MostRows  = 1 << 30
)

// A Whole is what a whole number may be.
type Whole struct {
	Unit    string // what users see for the number, such as STEPS
	Most    int    // 0: MostCount
	Default int
	Of      string // what is counted, as in "of rows"; or a unit, as in ", in percent"
	// Words may be given in place of a number: the first for 0, and a second one for Asked.
	Words []string
	Zero  bool // 0 is allowed
}

// Asked is the second word of a Whole: the nodes choose when they have met.
const Asked = -1

// Number binds a key that is a whole number.
func Number(to *int, key, help string, w Whole) Key {
	if w.Most == 0 {
		w.Most = MostCount
	}
	*to = w.Default
	return Key{Key: key, Values: strings.Join(append(slices.Clone(w.Words), w.Unit), "|"), Default: w.text(w.Default), Help: help,
		set: func(value string) error {
			if i := slices.Index(w.Words, value); i >= 0 {
				*to = -i
				return nil
			}
			n, err := strconv.Atoi(value)
			if err != nil || n < w.least() || n > w.Most {
				return w.refusal()
			}
			*to = n
			return nil
		},
		get: func() string { return w.text(*to) },
	}
}

// least returns the smallest number.
func (w *Whole) least() int {
	if w.Zero {
		return 0
	}
	return 1
}

// text returns a number as users give it.
func (w *Whole) text(n int) string {
	if n <= 0 && -n < len(w.Words) {
		return w.Words[-n]
	}
	return strconv.Itoa(n)
}

func (w *Whole) refusal() error {
	words := ""
	if len(w.Words) > 0 {
		words = strings.Join(w.Words, ", ") + ", or "
	}
	before, after := "", w.Of
	if !strings.HasPrefix(w.Of, ",") && w.Of != "" {
		before, after = " "+w.Of, ""
	}
	return fmt.Errorf("it is %sa whole number%s from %d to %d%s", words, before, w.least(), w.Most, after)
}

// Fraction binds a key that is a number from 0, the default, to most.
func Fraction(to *float64, key, unit string, most int, help string) Key {
	*to = 0
	return Key{Key: key, Values: unit, Default: "0", Help: help,
		set: func(value string) error {
			x, err := strconv.ParseFloat(value, 64)
			if err != nil || !(x >= 0 && x <= float64(most)) {
				return fmt.Errorf("it is a number from 0 to %d", most)
			}
			*to = x + 0 // -0 is 0
			return nil
		},
		get: func() string { return number(*to) },
	}
}

// number formats a number as users write it: a whole one without an exponent.
func number(x float64) string {
	if x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// Text binds a key that is checked by a function.
func Text(to *string, key, values, usual, help string, check func(value string) error) Key {
	*to = usual
	return Key{Key: key, Values: values, Default: usual, Help: help,
		set: func(value string) error {
			if err := check(value); err != nil {
				return err
			}
			*to = value
			return nil
		},
		get: func() string { return *to },
	}
}
