package strategy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Key is a setting that users give by name.
type Key struct {
	Key     string
	Applies string // strategies: some of centric, leap, p3, grappa, pipe, graph and local; or strategies, which is all of them
	Values  string
	Default string
	Help    string
}

// appliesTo reports whether a setting applies to a strategy.
func (k *Key) appliesTo(strategy string) bool {
	return slices.Contains(strings.Split(k.Applies, ", "), strategy)
}

// The names of setting values.
const (
	on      = "on"
	off     = "off"
	stay    = "stay"
	migrate = "migrate"
	stored  = "stored"
	bf16    = "bf16"

	// everyStrategy marks settings that apply to all strategies.
	everyStrategy = "strategies"

	replicated = "replicated"
	sharded    = "sharded"

	grain    = "grain"
	sliced   = "slices"
	resample = "resample"
	blocks   = "blocks"
)

// A key is a setting with its setter and getter.
type key struct {
	Key
	set func(s *Settings, value string) error
	get func(s *Settings) string
}

var keys = slices.Concat([]key{
	{Key{"centric.cache", Centric, "ROWS", "0",
		"how many rows of other nodes are kept from the start: those from which most edges come"},
		func(s *Settings, v string) error { return setCache(v, &s.Centric.Cache) },
		func(s *Settings) string { return strconv.Itoa(s.Centric.Cache) }},
	{Key{"leap.cache", Leap, "ROWS", "0",
		"how many rows of other nodes are kept from the start: those from which most edges come"},
		func(s *Settings, v string) error { return setCache(v, &s.Leap.Cache) },
		func(s *Settings) string { return strconv.Itoa(s.Leap.Cache) }},
	{Key{"leap.mode", Leap, "auto|stay|migrate", Auto,
		"whether models tour the nodes that have the roots; auto lets them stay where touring changes nothing"},
		func(s *Settings, v string) error { return choose(v, &s.Leap.Mode, Auto, stay, migrate) },
		func(s *Settings) string { return orElse(s.Leap.Mode, Auto) }},
	{Key{"leap.pregather", Leap, "on|off", on,
		"ask once for the rows of all that a node computes in a step, and not group by group"},
		func(s *Settings, v string) error { return toggle(v, &s.Leap.Apart) },
		func(s *Settings) string { return toggled(s.Leap.Apart) }},
	{Key{"leap.dedup", Leap, "on|off", on,
		"ask for a row once, however many groups need it"},
		func(s *Settings, v string) error { return toggle(v, &s.Leap.Repeated) },
		func(s *Settings) string { return toggled(s.Leap.Repeated) }},
	{Key{"leap.merge", Leap, "auto|off|SLOTS", Auto,
		"how many slots a step of touring models has: as many as nodes (off), as epochs are fastest with (auto: without {deterministic}, the last digits of weights then depend on measured times), or at most so many"},
		setMerge,
		func(s *Settings) string { return orElse(s.Leap.Merge, Auto) }},
	{Key{"leap.balance", Leap, "on|off", on,
		"where nodes hold copies of others' shards, have them compute roots of owners that have more to do"},
		func(s *Settings, v string) error { return toggle(v, &s.Leap.Uneven) },
		func(s *Settings) string { return toggled(s.Leap.Uneven) }},
	{Key{"leap.sync_every", Leap, "STEPS", "1",
		"how many steps touring models update themselves before they are averaged, where a job that is interrupted goes on from; 1: gradients are added up in each step"},
		func(s *Settings, v string) error { return count(v, &s.Leap.SyncEvery) },
		func(s *Settings) string { return strconv.Itoa(max(1, s.Leap.SyncEvery)) }},
	{Key{"p3.inflight", P3, "BATCHES", "1",
		fmt.Sprintf("how many batches are under way at once, 1 to %d: with K, first layers are computed with weights that are up to K-1 updates old, so only 1 is exact", MostInflight)},
		setInflight,
		func(s *Settings) string { return strconv.Itoa(max(1, s.P3.Inflight)) }},
	{Key{"p3.roots", P3, "grain|slices", grain,
		"who computes a root beyond the first layer: the node that owns its shard, or the one whose slice of the batch it falls into, as published"},
		func(s *Settings, v string) error { return choose(v, &s.P3.Roots, grain, sliced) },
		func(s *Settings) string { return orElse(s.P3.Roots, grain) }},
	{Key{"p3.push", P3, "resample|blocks", resample,
		"how a node knows what the first layers of others read: it draws their blocks, too, from the seed, or is sent them, as published; where a node lacks edges they are sent"},
		func(s *Settings, v string) error { return choose(v, &s.P3.Push, resample, blocks) },
		func(s *Settings) string { return orElse(s.P3.Push, resample) }},
	{Key{"wire.features", everyStrategy, "stored|bf16", stored,
		"how features travel between nodes: as they are stored, or rounded to half of the bytes"},
		func(s *Settings, v string) error { return choose(v, &s.Wire, stored, bf16) },
		func(s *Settings) string { return orElse(s.Wire, stored) }},
	{Key{"topology", everyStrategy, "auto|replicated|sharded", Auto,
		"whether each node has all edges, or asks others for neighbours; auto replicates where memory allows"},
		func(s *Settings, v string) error { return choose(v, &s.Topology, Auto, replicated, sharded) },
		func(s *Settings) string { return orElse(s.Topology, Auto) }},
}, grappaKeys, pipeKeys, localKeys)

var localKeys = []key{
	{Key{"local.average_every", Local, "STEPS", strconv.Itoa(usualAverage),
		"how many steps each node updates a model of its own before all are averaged, where a job that is interrupted goes on from"},
		func(s *Settings, v string) error { return whole(v, &s.Local.Average, usualAverage) },
		func(s *Settings) string { return strconv.Itoa(s.Local.Steps()) }},
}

// Keys lists the settings of Set.
func Keys() []Key {
	var all []Key
	for _, k := range keys {
		all = append(all, k.Key)
	}
	return all
}

// Set sets one of Keys, and reports whether it is one. A setting set to its default is
// stored as unset, so a recipe has one form.
func (s *Settings) Set(name, value string) (known bool, err error) {
	for _, k := range keys {
		if k.Key.Key != name {
			continue
		}
		if err := k.set(s, value); err != nil {
			return true, fmt.Errorf("{%s}=%s: %w", name, value, err)
		}
		return true, nil
	}
	return false, nil
}

// Get returns a setting as users give it.
func (s *Settings) Get(name string) (value string, known bool) {
	for _, k := range keys {
		if k.Key.Key == name {
			return k.get(s), true
		}
	}
	return "", false
}

// choose sets one of some words, the first of which is the default, stored as "".
func choose(value string, to *string, words ...string) error {
	if !slices.Contains(words, value) {
		return fmt.Errorf("it is one of %s", strings.Join(words, ", "))
	}
	if value == words[0] {
		value = ""
	}
	*to = value
	return nil
}

func orElse(value, usual string) string {
	if value == "" {
		return usual
	}
	return value
}

// toggle sets what is on by default; it stores whether it is off.
func toggle(value string, to *bool) error {
	if value != on && value != off {
		return fmt.Errorf("it is %s or %s", on, off)
	}
	*to = value == off
	return nil
}

func toggled(isOff bool) string {
	if isOff {
		return off
	}
	return on
}

// mostCount bounds everything that is counted here.
const mostCount = 1 << 20

// count sets a number from 1 on; 1 is the default, stored as 0.
func count(value string, to *int) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > mostCount {
		return fmt.Errorf("it is a whole number from 1 to %d", mostCount)
	}
	if n == 1 {
		n = 0
	}
	*to = n
	return nil
}

func setInflight(s *Settings, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > MostInflight {
		return fmt.Errorf("it is a whole number from 1 to %d", MostInflight)
	}
	return count(value, &s.P3.Inflight)
}

// mostCached bounds how many rows may be cached.
const mostCached = 1 << 30

func setCache(value string, to *int) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > mostCached {
		return fmt.Errorf("it is a whole number of rows from 0 to %d", mostCached)
	}
	*to = n
	return nil
}

func setMerge(s *Settings, value string) error {
	if err := checkMerge(value); err != nil {
		return err
	}
	if value == Auto {
		value = ""
	}
	s.Leap.Merge = value
	return nil
}

func checkMerge(value string) error {
	if value == "" || value == Auto || value == off {
		return nil
	}
	if n, err := strconv.Atoi(value); err != nil || n < 1 || strconv.Itoa(n) != value {
		return fmt.Errorf("it is %s, %s, or a number of slots from 1 on", Auto, off)
	}
	return nil
}
