package source

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Classes numbers classes that are given by their names, as they come. Sort then numbers
// them in the order of their names, so that the order of rows does not matter.
type Classes struct {
	Memory  *Memory
	numbers map[string]int32
}

// Number returns the number of a class, a new one if need be. Of what means that there is
// no label, it returns NoLabel.
func (c *Classes) Number(name []byte) (int32, error) {
	if len(name) == 0 || string(name) == "-1" || bytes.EqualFold(name, []byte("nan")) {
		return graph.NoLabel, nil
	}
	if is, known := c.numbers[string(name)]; known {
		return is, nil
	}
	switch {
	case len(name) > graph.MaxClassName:
		return 0, fmt.Errorf("the label %s is longer than %d bytes: write the name of a class, or its number", Shorten(name), graph.MaxClassName)
	case !utf8.Valid(name) || bytes.ContainsFunc(name, unicode.IsControl):
		return 0, fmt.Errorf("the label %s is not one line of text in UTF-8: write the name of a class, or its number", Shorten(name))
	case len(c.numbers) == MaxClasses:
		return 0, fmt.Errorf("there are more than %d different labels: write the names of classes, or their numbers", MaxClasses)
	}
	const entry = 64 // bytes that a map takes for one, about
	if err := c.Memory.Grow(0, uint64(len(name))+entry); err != nil {
		return 0, err
	}
	if c.numbers == nil {
		c.numbers = map[string]int32{}
	}
	is := int32(len(c.numbers))
	c.numbers[string(name)] = is
	return is, nil
}

// Quote returns the name of a class for a sentence.
func (c *Classes) Quote(number int32) string {
	for name, is := range c.numbers {
		if is == number {
			return Shorten([]byte(name))
		}
	}
	return ""
}

// Sort numbers the classes of labels in the order of their names, and returns the names.
func (c *Classes) Sort(labels []int32) []string {
	names := slices.Sorted(maps.Keys(c.numbers))
	to := make([]int32, len(names))
	for i, name := range names {
		to[c.numbers[name]] = int32(i)
	}
	for i, label := range labels {
		if label != graph.NoLabel {
			labels[i] = to[label]
		}
	}
	return names
}

// Named returns the names that are kept with the graph, and a note on them.
func Named(file string, names []string) (kept []string, note string) {
	note = fmt.Sprintf("%s: labels are text, and classes are numbered from 0 in sorted order: %s.", file, Listed(names))
	if graph.CheckClassNames(names, len(names)) != nil {
		return nil, note + fmt.Sprintf(" The names take more than %s and are not kept.", Size(graph.MaxClassNames))
	}
	return names, note
}

// ErrWord is the error of a label that is not a number.
var ErrWord = errors.New("is not an integer: number the classes 0, 1, 2 and so on")

// isWord reports whether text is neither a number nor missing.
func isWord(b []byte) bool {
	_, err := ParseFloat(b)
	return errors.Is(err, ErrNotANumber) && strings.TrimSpace(string(b)) != ""
}
