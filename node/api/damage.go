package api

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Damage is something that a node found damaged on its disk or in its memory, or has
// repaired since.
type Damage struct {
	// Kind is what is damaged: log, shard, checkpoint, model or identity.
	Kind string `json:"kind"`
	// Node is the name of the node that it happened to.
	Node string `json:"node"`
	// What is a sentence, without a full stop, on what is damaged and what becomes of it.
	What     string `json:"what"`
	Repaired bool   `json:"repaired"`
}

// Sentence describes the damage, without a full stop.
func (d Damage) Sentence() string { return fmt.Sprintf("%s of node %s: %s", d.Kind, d.Node, d.What) }

// Sentences lists the problems and the damage as sentences.
func (s Status) Sentences() []string {
	list := slices.Clone(s.Problems)
	for _, d := range s.Damage {
		list = append(list, d.Sentence())
	}
	return list
}

// bare is a Status without its methods.
type bare Status

// statusJSON is a Status as it travels: damage stands among the problems, after the sentences.
type statusJSON struct {
	bare
	Problems []any `json:"problems"`
}

// MarshalJSON puts the entries of Damage into "problems".
func (s Status) MarshalJSON() ([]byte, error) {
	j := statusJSON{bare(s), []any{}}
	for _, p := range s.Problems {
		j.Problems = append(j.Problems, p)
	}
	for _, d := range s.Damage {
		j.Problems = append(j.Problems, d)
	}
	return json.Marshal(j)
}

// UnmarshalJSON takes the entries of Damage out of "problems".
func (s *Status) UnmarshalJSON(b []byte) error {
	var j struct {
		bare
		Problems []json.RawMessage `json:"problems"`
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*s = Status(j.bare)
	s.Problems, s.Damage = []string{}, nil
	for _, raw := range j.Problems {
		var sentence string
		if json.Unmarshal(raw, &sentence) == nil {
			s.Problems = append(s.Problems, sentence)
			continue
		}
		var d Damage
		if err := json.Unmarshal(raw, &d); err != nil {
			return fmt.Errorf("an entry of problems is neither a sentence nor damage: %w", err)
		}
		s.Damage = append(s.Damage, d)
	}
	return nil
}
