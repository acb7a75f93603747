// Package once finds JSON documents in which a field stands twice.
package once

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Check returns an error, a sentence for whoever wrote the document, if an object of it has a field
// twice, since it would be unclear which one counts. It compares names as the decoder does, which
// ignores case. Invalid JSON is left to the decoder.
func Check(document []byte) error {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	type level struct {
		fields map[string]bool // seen in an object; nil in a list
		value  bool            // the next token is the value of a field
	}
	const deepest = 10_000 // which the decoder rejects
	var open []level
	for len(open) <= deepest {
		token, err := d.Token()
		if err != nil {
			return nil //nolint:nilerr // the decoder says it better
		}
		var at *level
		if len(open) > 0 {
			at = &open[len(open)-1]
		}
		if name, is := token.(string); is && at != nil && at.fields != nil && !at.value {
			folded := strings.ToLower(strings.ToUpper(name)) // some letters have two lower-case forms
			if at.fields[folded] {
				return fmt.Errorf("the request has the field %q twice: leave one out", name)
			}
			at.fields[folded], at.value = true, true
			continue
		}
		if at != nil {
			at.value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{fields: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
	return nil
}
