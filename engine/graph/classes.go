package graph

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxClassNames bounds the bytes of all classes' names: every node keeps them in the plan.
// MaxClassName bounds one.
const (
	MaxClassNames = 16 << 10
	MaxClassName  = 256
)

// CheckClassNames returns an error unless names are those of so many classes, or there are
// none.
func CheckClassNames(names []string, classes int) error {
	if len(names) == 0 {
		return nil
	}
	size := 0
	for _, name := range names {
		if size += len(name) + 1; size > MaxClassNames || len(name) > MaxClassName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("the names of classes are not text of at most %d bytes", MaxClassNames)
		}
	}
	if len(names) != classes {
		return fmt.Errorf("%d classes have %d names", classes, len(names))
	}
	return nil
}

// Describe adds the names of classes to the metadata of a shard's file, as a list in JSON.
func (m *Meta) Describe(metadata map[string]string) map[string]string {
	if len(m.ClassNames) > 0 {
		names, _ := json.Marshal(m.ClassNames) // strings never fail
		metadata["class_names"] = string(names)
	}
	if text, err := m.Types.Text(); err == nil && text != "" { // CheckSource has seen the error
		metadata["types"] = text
	}
	return metadata
}
