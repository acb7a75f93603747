package train

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/headroom"
)

// The messages in which nodes tell each other of memory, before they take any for weights
// and before they do for steps. Offers go by in the order of their tags: the first comes
// before that by which nodes meet, in its step, and the second after those by which they
// choose a strategy.
var (
	roomForWeights = exchange.Tag{Lane: exchange.LaneMessages, Index: 1}
	roomForSteps   = exchange.Tag{Lane: exchange.LaneMessages, Step: 1 << 20}
)

// A means is what a node tells the others of memory: what a run needs there and has, and
// what of that it has yet to take of a machine that may be other nodes', too.
type means struct {
	Needs, Has uint64
	Bounded    bool   // Has is what --memory allows
	Machine    uint64 // 0: not known
	Missing    uint64 // that this node does not hold yet
	Free       uint64 // of the machine
}

// measured is this machine's memory, or what a test has instead.
func (o *Options) measured() (free, resident, machine uint64) {
	if o.memory != nil {
		return o.memory()
	}
	return headroom.Available(), headroom.Resident(), headroom.Machine()
}

// afford says what is short of what a run needs. Nodes that share it all come to the same,
// and none has taken anything before all have said what they need: those on one machine
// must have room beside each other.
func (t *trainer) afford(ctx context.Context, tag exchange.Tag, needs uint64) error {
	if t.shared == nil {
		return enough(t.options.Memory, needs, len(t.learners))
	}
	free, resident, machine := t.options.measured()
	mine := means{Needs: needs, Has: t.options.Memory, Bounded: t.options.Memory > 0, Machine: machine, Missing: needs - min(needs, resident), Free: free}
	if !mine.Bounded {
		mine.Has = free + resident
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
		if n, err := binary.Decode(m, binary.LittleEndian, &all[node]); err != nil || n != len(m) {
			return fmt.Errorf("node %s tells of its memory in %d bytes, which is not what that takes", s.name(node), len(m))
		}
		if err := lacking(all[node].Has, all[node].Needs, all[node].Bounded, len(t.learners)); err != nil {
			return &agreed{fmt.Errorf("on node %s, %w", s.name(node), err)}
		}
	}
	for node := range all {
		note, err := beside(all, node, s.work.Nodes, len(t.learners))
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
func beside(all []means, node int, names []string, models int) (note string, err error) {
	first := &all[node]
	missing, free := uint64(0), first.Free
	var on []string
	for other := range all {
		if all[other].Machine != first.Machine {
			continue
		}
		if other < node {
			return "", nil
		}
		on = append(on, names[other])
		missing += min(all[other].Missing, 1<<56)
		free = min(free, all[other].Free)
	}
	if len(on) < 2 || first.Machine == 0 {
		return "", nil
	}
	nodes := fmt.Sprintf("nodes %s and %s are on one machine", strings.Join(on[:len(on)-1], ", "), on[len(on)-1])
	switch {
	case missing > free:
		return "", fmt.Errorf("%s, where the training needs %s of memory for all of them and %s are free: take %s, run fewer nodes there, or free some", nodes, gib(missing), gib(free), smaller(models))
	case missing > free/2:
		return fmt.Sprintf("%s, where the training takes %s of memory for all of them, and %s are free", nodes, gib(missing), gib(free)), nil
	}
	return "", nil
}

// enough says what is short of what a run needs: of what it may use or, where nothing
// bounds that, of what the machine has left beside what this process holds.
func enough(memory, needs uint64, models int) error {
	return lacking(cmp.Or(memory, headroom.Available()+headroom.Resident()), needs, memory > 0, models)
}

func lacking(has, needs uint64, bounded bool, models int) error {
	if needs <= has {
		return nil
	}
	advice := "free some"
	if bounded {
		advice = "allow more with `hopmesh agent --memory`"
	}
	return fmt.Errorf("the training needs %s of memory and has %s: take %s, or %s", gib(needs), gib(has), smaller(models), advice)
}

// smaller is what takes less memory.
func smaller(models int) string {
	if models > 1 {
		return "a smaller --batch, --fanout or --hidden, or fewer models in the sweep"
	}
	return "a smaller --batch, --fanout or --hidden"
}
