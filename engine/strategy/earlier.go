package strategy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Recipes and checkpoints of earlier versions have an object for each strategy, in place
// of Values: {"strategy": "leap", "leap": {"mode": "stay", "uneven": true}}.

// earlierNames are settings whose names there were not those that users give. A switch
// there stood for this value.
var earlierNames = map[string]struct{ key, value string }{
	"leap.apart":          {"leap.pregather", Off},
	"leap.repeated":       {"leap.dedup", Off},
	"leap.uneven":         {"leap.balance", Off},
	"grappa.serial":       {"grappa.prefetch", Off},
	"pipe.ordered":        {"pipe.shuffle", Off},
	"pipe.single":         {"pipe.compensate", Off},
	"pipe.keep_gradients": {"pipe.gradients", "kept"},
	"pipe.keep":           {"pipe.recompute", Off},
	"pipe.again":          {"pipe.recompute", On},
}

// UnmarshalJSON reads settings as they are stored now, or by earlier versions.
func (s *Settings) UnmarshalJSON(text []byte) error {
	type plain Settings // has no UnmarshalJSON
	var now plain
	if err := json.Unmarshal(text, &now); err != nil {
		return err
	}
	*s = Settings(now)
	var earlier map[string]json.RawMessage
	if err := json.Unmarshal(text, &earlier); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(earlier)) {
		switch name {
		case "strategy", "deterministic", "values":
			continue
		}
		if err := s.adopt(name, earlier[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(s.Values) == 0 {
		s.Values = nil
	}
	return nil
}

// adopt adds what an earlier version stored under a name.
func (s *Settings) adopt(name string, text json.RawMessage) error {
	switch name {
	case "wire":
		name = wireKey
		fallthrough
	case topologyKey:
		var value string
		if err := json.Unmarshal(text, &value); err != nil {
			return err
		}
		s.put(name, value)
		return nil
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return nil // a field of a later version, as any other that is not known
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		value, key := fields[field], name+"."+field
		switch value := value.(type) {
		case string:
			s.put(key, value)
		case float64:
			if value == Asked {
				s.put(key, Auto)
			} else {
				s.put(key, number(value))
			}
		case bool:
			if of, known := earlierNames[key]; known && value {
				s.put(of.key, of.value)
			}
		default:
			return fmt.Errorf("%s is %v, which is no setting", field, value)
		}
	}
	return nil
}
