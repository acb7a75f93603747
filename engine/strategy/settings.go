// Package strategy parses the settings by which nodes share the steps of a job. Each
// strategy is a package below this one and declares its own: what they are called, what
// they may be, and what contradicts what.
package strategy

import (
	"fmt"
	"maps"
	"strings"
)

// What a job may have in place of a strategy by which nodes share it.
const (
	Auto   = "auto"   // the nodes choose one when they have met
	Single = "single" // one node does it all
)

// Settings are how nodes share a job, as its recipe stores them: in the words of users.
// The zero Settings are those of single. A copy may share Values, which therefore never
// change.
type Settings struct {
	Strategy string `json:"strategy"`
	// Deterministic adds gradients up by grains, in a fixed binary tree over shards:
	// the weights are the same bits on any number of nodes.
	Deterministic bool `json:"deterministic,omitempty"`
	// Values are the settings that differ from their defaults, by key.
	Values map[string]string `json:"values,omitempty"`
}

// Given returns the settings of a strategy with values that a program gives, each as
// KEY=VALUE. It panics on anything else.
func Given(strategy string, values ...string) Settings {
	return Settings{Strategy: strategy}.With(values...)
}

// With returns a copy of the settings with other values, as of Given. "KEY=" drops one.
func (s Settings) With(values ...string) Settings {
	for _, v := range values {
		key, value, is := strings.Cut(v, "=")
		if !is {
			panic(fmt.Sprintf("strategy: %q is no KEY=VALUE", v))
		}
		s.put(key, value)
	}
	return s
}

// put sets a value, or drops it where it is "".
func (s *Settings) put(key, value string) {
	s.Values = maps.Clone(s.Values)
	if value == "" {
		delete(s.Values, key)
	} else {
		if s.Values == nil {
			s.Values = map[string]string{}
		}
		s.Values[key] = value
	}
	if len(s.Values) == 0 {
		s.Values = nil // settings that are equal have one form
	}
}

// The settings that all strategies have.
const (
	wireKey     = "wire.features"
	topologyKey = "topology"

	stored = "stored"
	bf16   = "bf16"
)

// The values of topology.
const (
	Replicated = "replicated"
	Sharded    = "sharded"
)

// Cache binds a key that says how many rows of other nodes' features are kept; Asked: as many as
// memory has room for.
func Cache(to *int, key string) Key {
	return Number(to, key,
		"how many rows of other nodes are brought at the start and kept: those from which most edges come; auto keeps those that steps bring, as far as half of the memory left goes (sparse ones, if all fit, are brought at the start)",
		Whole{Unit: "ROWS", Words: []string{Off, Auto}, Default: Asked, Zero: true, Most: MostRows, Of: "of rows"})
}

func sharedKeys() Keys {
	var to struct{ wire, topology string }
	return Keys{
		Word(&to.wire, wireKey, "how features travel between nodes: as they are stored, or rounded to half of the bytes", stored, bf16),
		Word(&to.topology, topologyKey, "whether each node has all edges, or asks others for neighbours; auto replicates where memory allows", Auto, Replicated, Sharded),
	}
}

// Wire returns the format in which features travel: bf16, or "" for that in which they
// are stored.
func (s *Settings) Wire() string {
	if s.Values[wireKey] == stored {
		return ""
	}
	return s.Values[wireKey]
}

// Topology returns whether nodes have all edges: Replicated, Sharded, or "" where their
// memory decides.
func (s *Settings) Topology() string { return s.Values[topologyKey] }
