package api

import (
	"bytes"
	"encoding/json"
	"strings"
)

// once refuses a document in which an object has a field twice: one of the two would be
// what is done, and which one is nobody's to guess. Fields are told apart as they are when
// the document is decoded, which takes no notice of case. What is no JSON is left to that.
func once(document []byte) error {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	type level struct {
		fields map[string]bool // seen in an object; nil in a list
		value  bool            // what comes next is the value of a field
	}
	const deepest = 10_000 // which the decoder refuses
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
			folded := strings.ToLower(strings.ToUpper(name)) // some letters have two small ones
			if at.fields[folded] {
				return Invalid("the request has the field %q twice: leave one out", name)
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
