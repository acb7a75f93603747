package strategy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A Declaration is what a strategy declares of its settings. Each of its functions may be
// nil where there is nothing to declare.
type Declaration struct {
	Name string
	// Exact means that nodes compute what one does: auto may choose it.
	Exact bool
	Learns
	// Elsewhere means that steps are computed by a program beside each node, which alone
	// knows the model.
	Elsewhere bool
	// Sweepless is why the models of a sweep can't be trained side by side; "": they can.
	Sweepless string
	// Keys returns the strategy's settings, at their defaults.
	Keys func() Keys
	// CheckSettings returns an error if settings contradict each other. Each value by
	// itself is valid. It is called for jobs of other strategies, too.
	CheckSettings func(*Settings) error
	// Complete writes defaults down that depend on where a job begins, so that they stay
	// the same wherever it goes on.
	Complete func(*Settings, Place)
	// CheckNodes and CheckShards return an error if a job can't begin on so many nodes, or
	// on a dataset of so many shards.
	CheckNodes  func(s *Settings, nodes int) error
	CheckShards func(s *Settings, shards int) error
	// Begins returns the strategy's part of the schedule that a job begins with. It follows from
	// the settings and the nodes; nil: there is nothing to say. Measured means that the nodes
	// find the part once they have met, so that nobody knows it before.
	Begins   func(s *Settings, at Place) []byte
	Measured bool
	// Describe says a part of a schedule in words; nil: there is never one.
	Describe func(part []byte) (string, error)
	// Same reports whether a run that began with settings a learns the same with b.
	Same func(a, b *Settings) bool
}

// Learns is what a strategy learns.
type Learns struct {
	// Classes means that it learns one class of each vertex, and no other targets.
	Classes bool
	// Links means that it learns pairs of vertices, too.
	Links bool
	// Embeddings means that it learns rows of vertices, too.
	Embeddings bool
}

// A Place is what a job's nodes and dataset are like when it is created.
type Place struct {
	Nodes  int    // that own shards
	Shards int    // of the dataset
	Bytes  uint64 // of its edges and features
	Memory uint64 // the least bound of a node's memory; 0: none has one
}

// Declarations are those of all strategies that a program has.
type Declarations []Declaration

// everyStrategy marks settings that apply to all strategies.
const everyStrategy = "strategies"

// Keys lists the settings of all strategies, each once. They are bound to new variables.
func (d Declarations) Keys() Keys {
	all := sharedKeys()
	for i := range all {
		all[i].Applies = everyStrategy
	}
	for i := range d {
		if d[i].Keys == nil {
			continue
		}
		for _, k := range d[i].Keys() {
			if known := all.of(k.Key); known != nil {
				known.Applies += ", " + d[i].Name
				continue
			}
			k.Applies = d[i].Name
			all = append(all, k)
		}
	}
	return all
}

// Set sets one of Keys, and reports whether it is one. A setting that is set to its
// default is stored as unset, so that equal settings are stored alike.
func (d Declarations) Set(s *Settings, name, value string) (known bool, err error) {
	k := d.Keys().of(name)
	if k == nil {
		return false, nil
	}
	if err := k.set(value); err != nil {
		return true, fmt.Errorf("{%s}=%s: %w", name, value, err)
	}
	if value = k.get(); value == k.Default {
		value = ""
	}
	s.put(name, value)
	return true, nil
}

// Check returns an error if settings are invalid or contradict each other, whoever made
// them.
func (d Declarations) Check(s *Settings) error {
	keys := d.Keys()
	for _, name := range slices.Sorted(maps.Keys(s.Values)) {
		if keys.of(name) == nil {
			return fmt.Errorf("there is no setting %s: {train.options} lists what there is", name)
		}
	}
	if err := keys.Parse(s.Values); err != nil {
		return err
	}
	if s.Wire() == bf16 && s.Deterministic {
		return fmt.Errorf("%s=%s rounds the rows that travel, so weights depend on who holds which, and {deterministic} promises that they don't: leave one of the two out", wireKey, bf16)
	}
	return d.each(func(of *Declaration) error {
		if of.CheckSettings == nil {
			return nil
		}
		return of.CheckSettings(s)
	})
}

// Complete writes defaults of settings down that depend on where a job begins.
func (d Declarations) Complete(s *Settings, at Place) {
	for i := range d {
		if d[i].Complete != nil {
			d[i].Complete(s, at)
		}
	}
}

// CheckNodes returns an error if a job with these settings can't begin on so many
// nodes. A job that loses nodes later goes on with the rest.
func (d Declarations) CheckNodes(s *Settings, nodes int) error {
	return d.each(func(of *Declaration) error {
		if of.CheckNodes == nil {
			return nil
		}
		return of.CheckNodes(s, nodes)
	})
}

// CheckShards returns an error if a job with these settings can't begin on a dataset of
// so many shards.
func (d Declarations) CheckShards(s *Settings, shards int) error {
	return d.each(func(of *Declaration) error {
		if of.CheckShards == nil {
			return nil
		}
		return of.CheckShards(s, shards)
	})
}

// each returns the first error.
func (d Declarations) each(check func(*Declaration) error) error {
	for i := range d {
		if err := check(&d[i]); err != nil {
			return err
		}
	}
	return nil
}

// CheckUse returns an error if a setting has no effect with the requested strategy.
// auto may choose any exact strategy, so all of their settings have an effect with it.
func (d Declarations) CheckUse(s *Settings, asked string) error {
	for _, k := range d.Keys() {
		value, given := s.Values[k.Key]
		switch {
		case !given:
		case k.Applies == everyStrategy:
			if asked == Single {
				return fmt.Errorf("{%s}=%s is for nodes that share a job, and {strategy} %s has one do it all: leave one of the two out", k.Key, value, asked)
			}
		case asked == "" || asked == Auto:
			if !d.any(&k, func(of *Declaration) bool { return of.Exact }) {
				return fmt.Errorf("{%s}=%s is for {strategy} %s, which %s never chooses: leave it out, or name the strategy", k.Key, value, k.strategies(), Auto)
			}
		case d.any(&k, func(of *Declaration) bool { return of.Name == asked }):
		case d.any(&k, func(of *Declaration) bool { return of.Exact }):
			return fmt.Errorf("{%s}=%s is for {strategy} %s, and this job's is %s: leave it out, or choose that one or %s", k.Key, value, k.strategies(), asked, Auto)
		default:
			return fmt.Errorf("{%s}=%s is for {strategy} %s, and this job's is %s: leave it out, or choose another", k.Key, value, k.strategies(), asked)
		}
	}
	return nil
}

// CheckSweep returns an error if a job with these settings can't train a sweep; asked
// is the requested strategy.
func (d Declarations) CheckSweep(s *Settings, asked string) error {
	for i := range d {
		if d[i].Name == asked && d[i].Sweepless != "" {
			return fmt.Errorf("{sweep}: the strategy %s %s: take another {strategy}, or start one job for each model", asked, d[i].Sweepless)
		}
	}
	for _, k := range d.Keys() {
		value, given := s.Values[k.Key]
		if given && k.Applies != everyStrategy && !d.any(&k, func(of *Declaration) bool { return of.Sweepless == "" }) {
			return fmt.Errorf("{%s}=%s is for {strategy} %s, which trains no sweeps: leave it out, or start one job for each model", k.Key, value, k.strategies())
		}
	}
	return nil
}

// Begins returns the part of the schedule of a strategy by name that a job begins with, and false
// if that can't be known before its nodes have met.
func (d Declarations) Begins(name string, s *Settings, at Place) (part []byte, known bool) {
	i := slices.IndexFunc(d, func(of Declaration) bool { return of.Name == name })
	switch {
	case i < 0:
		return nil, name == Single
	case d[i].Measured:
		return nil, false
	case d[i].Begins == nil:
		return nil, true
	}
	return d[i].Begins(s, at), true
}

// Describe says a strategy's part of a schedule in words; "": there is nothing to say.
func (d Declarations) Describe(name string, part []byte) (string, error) {
	i := slices.IndexFunc(d, func(of Declaration) bool { return of.Name == name })
	if i < 0 || d[i].Describe == nil {
		if len(part) > 0 {
			return "", fmt.Errorf("this version has nothing to say of %s", name)
		}
		return "", nil
	}
	return d[i].Describe(part)
}

// any reports whether one of the strategies that a setting applies to is such.
func (d Declarations) any(k *Key, such func(*Declaration) bool) bool {
	names := strings.Split(k.Applies, ", ")
	return slices.ContainsFunc(d, func(of Declaration) bool { return slices.Contains(names, of.Name) && such(&of) })
}

// strategies returns those that a setting applies to, as a choice.
func (k *Key) strategies() string { return strings.ReplaceAll(k.Applies, ", ", " or ") }

// Same reports whether a run that began with settings a learns the same with b. Settings
// of another version, which can't be parsed, are the same only as themselves.
func (d Declarations) Same(a, b *Settings) bool {
	if a.Deterministic != b.Deterministic {
		return false
	}
	if d.Keys().Parse(a.Values) != nil || d.Keys().Parse(b.Values) != nil {
		return reflect.DeepEqual(a, b)
	}
	return !slices.ContainsFunc(d, func(of Declaration) bool { return of.Same != nil && !of.Same(a, b) })
}
