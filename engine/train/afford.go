package train

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/headroom"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// The messages in which nodes tell each other of memory, before they take any for weights
// and before they do for steps; before a change of strategy there is another, see roomFor. Offers go by in the order of their tags: the first comes
// before that by which nodes meet, in its step, and the second after those by which they
// choose a strategy.
var (
	roomForWeights = exchange.Tag{Lane: exchange.LaneMessages, Index: 1}
	roomForSteps   = exchange.Tag{Lane: exchange.LaneMessages, Step: 1 << 20}
)

// A means is what a node tells the others of memory: what a run needs there and has, and
// of whose memory that is, which may be other nodes', too.
type means struct {
	Wire       uint32
	Needs, Has uint64
	Bounded    bool // Has is what --memory allows
	Memory     memory
}

// A memory is that of the machine, and of the process, that a node is in.
type memory struct {
	Machine, Process uint64 // 0: not known
	Free             uint64 // of the machine
	Resident         uint64 // what the process holds, for all nodes in it
}

// measured is this machine's memory, or what a test has instead.
func (o *Options) measured() memory {
	if o.memory != nil {
		return o.memory()
	}
	return memory{Machine: headroom.Machine(), Process: headroom.Process(), Free: headroom.Available(), Resident: headroom.Resident()}
}

// read reads what came from another node.
func (m *means) read(b []byte) error {
	if err := checkWire(b); err != nil {
		return &agreed{err}
	}
	if n, err := binary.Decode(b, binary.LittleEndian, m); err != nil || n != len(b) {
		return fmt.Errorf("tells of its memory in %d bytes, which is not what that takes", len(b))
	}
	return nil
}

// afford says what is short of what a run needs. Nodes that share it all come to the same,
// and none has taken anything before all have said what they need: those on one machine
// must have room beside each other.
func (t *trainer) afford(ctx context.Context, tag exchange.Tag, needs uint64) error {
	if t.shared == nil {
		return enough(t.options.Memory, needs, t.recipe.smaller())
	}
	mine := means{Wire: wire, Needs: needs, Has: t.options.Memory, Bounded: t.options.Memory > 0, Memory: t.options.measured()}
	if !mine.Bounded {
		mine.Has = mine.Memory.Free + mine.Memory.Resident
	}
	message, err := binary.Append(nil, binary.LittleEndian, &mine)
	if err != nil {
		return fmt.Errorf("encode how much memory there is: %w", err)
	}
	s := t.shared
	messages, err := s.exchange.Gather(ctx, tag, message, &s.start)
	if err != nil {
		return fmt.Errorf("hear how much memory the other nodes have: %w", err)
	}
	all := make([]means, len(messages))
	for node, m := range messages {
		if err := all[node].read(m); err != nil {
			return fmt.Errorf("node %s %w", s.name(node), err)
		}
		if err := lacking(all[node].Has, all[node].Needs, all[node].Bounded, t.recipe.smaller()); err != nil {
			return &agreed{fmt.Errorf("on node %s, %w", s.name(node), err)}
		}
	}
	s.onMachine, s.inProcess = 0, 0
	for node := range all {
		own, of := &mine.Memory, &all[node].Memory
		if node != s.work.Self && (own.Machine == 0 || own.Machine != of.Machine) {
			continue
		}
		s.onMachine++
		if node == s.work.Self || own.Process != 0 && own.Process == of.Process {
			s.inProcess++
		}
	}
	for node := range all {
		note, err := beside(all, node, s.work.Nodes, t.recipe.smaller())
		if err != nil {
			return &agreed{err}
		}
		if note != "" && tag == roomForSteps {
			t.notes = append(t.notes, note)
		}
	}
	return nil
}

// beside looks at the machine of a node, if that is the first on it and not alone. It
// returns a note where much of what is free will be taken.
func beside(all []means, node int, names []string, smaller string) (note string, err error) {
	first := &all[node].Memory
	free := first.Free
	var on []string
	for other := range all {
		if all[other].Memory.Machine != first.Machine {
			continue
		}
		if other < node {
			return "", nil
		}
		on = append(on, names[other])
		free = min(free, all[other].Memory.Free)
	}
	if len(on) < 2 || first.Machine == 0 {
		return "", nil
	}
	missing := missingOn(first.Machine, all)
	nodes := fmt.Sprintf("nodes %s and %s are on one machine", strings.Join(on[:len(on)-1], ", "), on[len(on)-1])
	switch {
	case missing > free:
		return "", fmt.Errorf("%s, where the training needs %s of memory for all of them and %s are free: %s, run fewer nodes there, or free some", nodes, gib(missing), gib(free), smaller)
	case missing > free/2:
		return fmt.Sprintf("%s, where the training takes %s of memory for all of them, and %s are free", nodes, gib(missing), gib(free)), nil
	}
	return "", nil
}

// missingOn is what nodes have yet to take of their machine. What a process holds counts
// once, however many of them are in it.
func missingOn(machine uint64, all []means) (missing uint64) {
	for i := range all {
		of := &all[i].Memory
		same := func(m means) bool { return m.Memory.Machine == machine && m.Memory.Process == of.Process }
		if of.Machine != machine || of.Process != 0 && slices.ContainsFunc(all[:i], same) {
			continue
		}
		needs := uint64(0)
		for other := i; other < len(all); other++ {
			if other == i || of.Process != 0 && same(all[other]) {
				needs += min(all[other].Needs, 1<<56)
			}
		}
		missing += needs - min(needs, of.Resident)
	}
	return missing
}

// enough says what is short of what a run needs: of what it may use or, where nothing
// bounds that, of what the machine has left beside what this process holds. smaller is
// what to do about it.
func enough(memory, needs uint64, smaller string) error {
	return lacking(cmp.Or(memory, headroom.Available()+headroom.Resident()), needs, memory > 0, smaller)
}

// smaller is the advice for who has too little memory: of a sweep, its models come first,
// and what is full can't be a smaller number.
func (r *Recipe) smaller() string {
	advice := ""
	if len(r.Sweep) > 1 {
		advice = fmt.Sprintf("give fewer values to --sweep, which makes %d models, ", len(r.Sweep))
	}
	switch s := &r.Sharing; {
	case s.Strategy == strategy.Pipe && s.Pipe.Keep:
		return "leave out --set pipe.recompute=off, take a smaller --hidden, share the job among more nodes"
	case strategy.Piped(s.Strategy): // which have no batches
		return "take a smaller --hidden, share the job among more nodes"
	}
	some := slices.ContainsFunc(r.Fanouts, func(n int) bool { return n > 0 })
	switch {
	case r.Batch > 0 && some:
		return advice + "take a smaller --batch, --fanout or --hidden"
	case r.Batch > 0:
		return advice + "take a smaller --batch or --hidden"
	case some:
		return advice + "take a smaller --fanout or --hidden, or a number for --batch"
	}
	return advice + "take a smaller --hidden, or numbers for --batch and --fanout"
}

func lacking(has, needs uint64, bounded bool, smaller string) error {
	if needs <= has {
		return nil
	}
	advice := "free some"
	if bounded {
		advice = "allow more with `hopmesh agent --memory`"
	}
	return fmt.Errorf("the training needs %s of memory and has %s: %s, or %s", gib(needs), gib(has), smaller, advice)
}
