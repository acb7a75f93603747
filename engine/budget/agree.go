package budget

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Nodes are the nodes of a run.
type Nodes struct {
	Names []string
	Self  int // this one's index
	// Gather sends a message to all nodes and returns those of all, in their order.
	Gather func(ctx context.Context, message []byte) ([][]byte, error)
	// Instead is advice on the settings of Node.Instead, with the verbs %d for the value
	// and %s for what the run then needs.
	Instead [Settings]Advice
	// Divides says of which settings the values divide what was set, so that of two the larger one
	// has a run take less.
	Divides [Settings]bool
}

// Node is what a run needs on a node, and what the node has. Nodes send it to each other.
type Node struct {
	Needs, Has uint64
	Limited    bool // Has is what the run may take, whatever the machine has
	Memory     Memory
	Instead    [Settings]Instead
}

// Settings is how many settings have a value in Node.Instead.
const Settings = 4

// Instead is a value of a setting with which a run would fit on a node, and what it would
// need there. The zero Instead stands for none.
type Instead struct{ Value, Needs uint64 }

// NewNode returns what a node has for a run: what the limit allows or, where that is 0 or
// more than there is, what its machine has left beside what the process holds, and what the
// process may map of that.
func NewNode(needs, limit uint64, m Memory) Node { return newNode(needs, limit, m, proc) }

func newNode(needs, limit uint64, m Memory, f files) Node {
	has := mappable(m.Free, f) + m.Resident
	if limit > 0 && limit <= has {
		return Node{Needs: needs, Has: limit, Limited: true, Memory: m}
	}
	return Node{Needs: needs, Has: has, Memory: m}
}

// Enough returns an error, a *Short, if a run on one node needs more than the limit allows
// or, where that is 0, than the machine has left. Advice is what to change about the run.
func Enough(needs, limit uint64, advice []Advice) error {
	n := NewNode(needs, limit, Here())
	return n.enough("", advice)
}

// Enough is the function of this name for a node that has been looked at, and what was
// found for it.
func (n *Node) Enough(instead [Settings]Advice, advice []Advice) error {
	return n.enough("", n.advice(instead, advice))
}

// Agreement is what the nodes of a run have learnt of each other's memory.
type Agreement struct {
	OnMachine int      // nodes on this one's machine, with itself
	InProcess int      // those of them in its process
	Notes     []string // on machines much of whose free memory will be taken
}

// Agree has the nodes of a run exchange what they need before any of them takes it. It
// returns the same *Short on all of them if the run needs more than a node has, or than a
// machine has for all nodes on it. Advice is what to change about the run.
func Agree(ctx context.Context, nodes Nodes, mine Node, advice []Advice) (Agreement, error) {
	message, err := binary.Append(nil, binary.LittleEndian, &mine)
	if err != nil {
		return Agreement{}, fmt.Errorf("encode how much memory this node has: %w", err)
	}
	messages, err := nodes.Gather(ctx, message)
	if err != nil {
		return Agreement{}, fmt.Errorf("gather how much memory each node has: %w", err)
	}
	all := make([]Node, len(messages))
	for node, m := range messages {
		if n, err := binary.Decode(m, binary.LittleEndian, &all[node]); err != nil || n != len(m) {
			return Agreement{}, fmt.Errorf("node %s sent a malformed report of its memory (%d bytes)", nodes.Names[node], len(m))
		}
	}
	for node := range all {
		if all[node].Needs <= all[node].Has {
			continue
		}
		all[node].Instead = nodes.forAll(all)
		return Agreement{}, all[node].enough("on node "+nodes.Names[node]+", ", all[node].advice(nodes.Instead, advice))
	}
	var a Agreement
	a.OnMachine, a.InProcess = neighbours(all, nodes.Self)
	for node := range all {
		note, err := fit(all, node, nodes.Names, advice)
		if err != nil {
			return Agreement{}, err
		}
		if note != "" {
			a.Notes = append(a.Notes, note)
		}
	}
	return a, nil
}

// forAll returns what makes a run fit on all nodes that have too little: of each setting the value by which
// it takes least, and none if one of them has found none.
func (n *Nodes) forAll(all []Node) (instead [Settings]Instead) {
	short := slices.DeleteFunc(slices.Clone(all), func(node Node) bool { return node.Needs <= node.Has })
	for i := range instead {
		least := short[0].Instead[i]
		for _, node := range short[1:] {
			switch of := node.Instead[i]; {
			case of.Needs == 0 || least.Needs == 0:
				least = Instead{}
			case of.Value == least.Value:
				least.Needs = max(least.Needs, of.Needs)
			case (of.Value > least.Value) == n.Divides[i]:
				least = of
			}
		}
		instead[i] = least
	}
	return instead
}

// advice puts what was found for a node before other advice.
func (n *Node) advice(instead [Settings]Advice, others []Advice) (all []Advice) {
	for i, of := range n.Instead {
		if of.Needs > 0 && instead[i] != "" {
			all = append(all, Advice(fmt.Sprintf(string(instead[i]), of.Value, Format(of.Needs))))
		}
	}
	return append(all, others...)
}

// enough returns an error if a run needs more than the node has; where begins its
// sentence.
func (n *Node) enough(where string, advice []Advice) error {
	if n.Needs <= n.Has {
		return nil
	}
	return &Short{
		Cause: fmt.Sprintf("%sthe training needs %s of memory and has %s", where, Format(n.Needs), Format(n.Has)),
		Needs: n.Needs, Has: n.Has, Advice: append(slices.Clip(advice), More(n.Limited)),
	}
}

// neighbours counts the nodes on a node's machine and in its process, with itself.
func neighbours(all []Node, self int) (onMachine, inProcess int) {
	own := &all[self].Memory
	for node := range all {
		of := &all[node].Memory
		if node != self && (own.Machine == 0 || own.Machine != of.Machine) {
			continue
		}
		onMachine++
		if node == self || own.Process != 0 && own.Process == of.Process {
			inProcess++
		}
	}
	return onMachine, inProcess
}

// fit returns an error if the nodes on a node's machine need more than that has free, and
// a note if they need much of it. It looks at machines of several nodes, once at each: for
// the first node there.
func fit(all []Node, node int, names []string, advice []Advice) (note string, err error) {
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
		return "", &Short{
			Cause: fmt.Sprintf("%s, where the training needs %s of memory for all of them and %s are free", nodes, Format(missing), Format(free)),
			Needs: missing, Has: free, Advice: append(slices.Clip(advice), "run fewer nodes there", FreeSome),
		}
	case missing > free/2:
		return fmt.Sprintf("%s, where the training takes %s of memory for all of them, and %s are free", nodes, Format(missing), Format(free)), nil
	}
	return "", nil
}

// missingOn returns how much nodes have yet to take of their machine. What a process
// holds counts once, however many nodes are in it.
func missingOn(machine uint64, all []Node) (missing uint64) {
	for i := range all {
		of := &all[i].Memory
		same := func(n Node) bool { return n.Memory.Machine == machine && n.Memory.Process == of.Process }
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
