package budget

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

// gathering has node 0 agree with nodes that send these messages.
func gathering(messages ...[]byte) Nodes {
	return Nodes{Names: []string{"n0", "n1", "n2"}[:len(messages)], Gather: func(_ context.Context, mine []byte) ([][]byte, error) {
		return append([][]byte{mine}, messages[1:]...), nil
	}}
}

func encoded(t *testing.T, n Node) []byte {
	t.Helper()
	b, err := binary.Append(nil, binary.LittleEndian, &n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAgree(t *testing.T) {
	on := func(machine, process, needs, limit, free uint64) Node {
		return NewNode(needs, limit, Memory{Machine: machine, Process: process, Free: free})
	}
	for _, c := range []struct {
		name                 string
		nodes                []Node
		want                 string
		onMachine, inProcess int
		notes                int
	}{
		{"apart", []Node{on(7, 1, 60, 0, 100), on(8, 2, 60, 0, 100), on(9, 3, 60, 0, 100)}, "", 1, 1, 0},
		{"unknown", []Node{on(0, 1, 60, 0, 100), on(0, 2, 60, 0, 100)}, "", 1, 1, 0},
		{"together", []Node{on(7, 1, 30, 0, 100), on(7, 2, 30, 0, 100), on(7, 1, 30, 0, 100)}, "", 3, 2, 1},
		{"of unknown processes", []Node{on(7, 0, 30, 0, 100), on(7, 0, 10, 0, 100)}, "", 2, 1, 0},
		{"too much together", []Node{on(7, 1, 1<<20, 0, 1<<20), on(8, 2, 60, 0, 100), on(7, 3, 1<<20, 0, 1<<20)}, "nodes n0 and n2 are on one machine, where the training needs 2.0 MiB of memory for all of them and 1.0 MiB are free: take a smaller {batch}, run fewer nodes there, or free some", 0, 0, 0},
		{"too much for one", []Node{on(7, 1, 60, 0, 100), on(8, 2, 2<<30, 1<<30, 4<<30)}, "on node n1, the training needs 2.0 GiB of memory and has 1.0 GiB: take a smaller {batch}, or allow more with {agent.memory}", 0, 0, 0},
		{"too much for a machine that has less than the limit", []Node{on(7, 1, 2<<20, 3<<20, 1<<20)}, "on node n0, the training needs 2.0 MiB of memory and has 1.0 MiB: take a smaller {batch}, or free some", 0, 0, 0},
		{"too much for a machine", []Node{on(7, 1, 2<<20, 0, 1<<20)}, "on node n0, the training needs 2.0 MiB of memory and has 1.0 MiB: take a smaller {batch}, or free some", 0, 0, 0},
	} {
		var messages [][]byte
		for _, n := range c.nodes {
			messages = append(messages, encoded(t, n))
		}
		a, err := Agree(t.Context(), gathering(messages...), c.nodes[0], []Advice{"take a smaller {batch}"})
		if c.want == "" {
			if err != nil || a.OnMachine != c.onMachine || a.InProcess != c.inProcess || len(a.Notes) != c.notes {
				t.Errorf("%s: %+v, %v", c.name, a, err)
			}
			continue
		}
		short, is := errors.AsType[*Short](err)
		if !is || err.Error() != c.want || short.Needs <= short.Has {
			t.Errorf("%s: %v, not %q", c.name, err, c.want)
		}
	}
}

// What is advised suits all nodes that have too little, and those that have enough don't matter.
func TestAdviceSuitsAllNodes(t *testing.T) {
	node := func(needs uint64, instead ...Instead) Node {
		n := Node{Needs: needs << 20, Has: 10 << 20}
		for i, of := range instead {
			n.Instead[i] = Instead{of.Value, of.Needs << 20}
		}
		return n
	}
	none, mib := Instead{}, func(value, needs uint64) Instead { return Instead{value, needs} }
	for _, c := range []struct {
		nodes []Node
		want  string
	}{
		{[]Node{node(12, mib(512, 9), none, mib(2, 8)), node(14, mib(256, 7), none, mib(4, 6))}, "on node n0, the training needs 12.0 MiB of memory and has 10.0 MiB: batch 256 7.0 MiB, fanout 4 6.0 MiB, or free some"},
		{[]Node{node(14, mib(256, 7), none, mib(4, 6)), node(12, mib(512, 9), none, mib(2, 8))}, "on node n0, the training needs 14.0 MiB of memory and has 10.0 MiB: batch 256 7.0 MiB, fanout 4 6.0 MiB, or free some"},
		{[]Node{node(9, mib(1, 1)), node(12, mib(512, 8)), node(12, mib(512, 9))}, "on node n1, the training needs 12.0 MiB of memory and has 10.0 MiB: batch 512 9.0 MiB, or free some"},
		{[]Node{node(12, mib(512, 9), mib(0, 9), mib(2, 8)), node(12, none, mib(0, 8)), node(12, mib(256, 8), mib(0, 7))}, "on node n0, the training needs 12.0 MiB of memory and has 10.0 MiB: topology 0 9.0 MiB, or free some"},
	} {
		var messages [][]byte
		for _, n := range c.nodes {
			messages = append(messages, encoded(t, n))
		}
		of := gathering(messages...)
		of.Instead, of.Divides = [Settings]Advice{"batch %d %s", "topology %d %s", "fanout %d %s"}, [Settings]bool{2: true}
		if _, err := Agree(t.Context(), of, c.nodes[0], nil); err == nil || err.Error() != c.want {
			t.Errorf("%v, not %q", err, c.want)
		}
	}
}

func TestAgreeRefusesMalformedReports(t *testing.T) {
	mine := NewNode(1, 2, Memory{})
	whole := encoded(t, mine)
	for _, m := range [][]byte{nil, {0, 0}, whole[:len(whole)-1], append(slices.Clone(whole), 0)} {
		_, err := Agree(t.Context(), gathering(whole, m), mine, nil)
		if _, short := errors.AsType[*Short](err); short || err == nil || !strings.Contains(err.Error(), "node n1 sent a malformed report of its memory") {
			t.Errorf("%d bytes: %v", len(m), err)
		}
	}
	lost := errors.New("lost")
	if _, err := Agree(t.Context(), Nodes{Gather: func(context.Context, []byte) ([][]byte, error) { return nil, lost }}, mine, nil); !errors.Is(err, lost) {
		t.Errorf("%v, not that nodes were lost", err)
	}
}

func TestEnough(t *testing.T) {
	if err := Enough(10, 10, nil); err != nil {
		t.Error(err)
	}
	if err := Enough(1, 0, nil); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	if err := Enough(2<<20, 1<<20, nil); err == nil || err.Error() != "the training needs 2.0 MiB of memory and has 1.0 MiB: allow more with {agent.memory}" {
		t.Errorf("with a limit: %v", err)
	}
	if err := Enough(1<<62, 0, nil); err == nil || !strings.HasSuffix(err.Error(), ": free some") {
		t.Errorf("of a machine: %v", err)
	}
}

func TestWhatNodesTakeTogetherIsNoted(t *testing.T) {
	on := func(machine, needs, free uint64) Node {
		return Node{Needs: needs, Memory: Memory{Machine: machine, Free: free}}
	}
	all := []Node{on(3, 4<<30, 9<<30), on(4, 1, 2), on(3, 1<<30, 8<<30)}
	names := []string{"a", "b", "c"}
	if note, err := fit(all, 0, names, nil); err != nil || note != "nodes a and c are on one machine, where the training takes 5.0 GiB of memory for all of them, and 8.0 GiB are free" {
		t.Errorf("%q, %v", note, err)
	}
	all[0].Needs = 1 << 30 // which is little
	for node := range all {
		if note, err := fit(all, node, names, nil); err != nil || note != "" {
			t.Errorf("%d: %q, %v", node, note, err)
		}
	}
	all[2].Needs = 1<<64 - 1 // whatever a node says
	if _, err := fit(all, 0, names, nil); err == nil {
		t.Error("what is far too much is fine")
	}
}

// What a process holds counts once, however many of its nodes report it.
func TestWhatAProcessHoldsCountsOnce(t *testing.T) {
	in := func(machine, process, needs, resident uint64) Node {
		return Node{Needs: needs, Memory: Memory{Machine: machine, Process: process, Resident: resident}}
	}
	for _, c := range []struct {
		all  []Node
		want uint64
	}{
		{[]Node{in(7, 1, 100, 60), in(7, 1, 100, 60), in(7, 1, 100, 60)}, 240},
		{[]Node{in(7, 1, 100, 60), in(7, 2, 100, 60), in(8, 1, 100, 60)}, 80},
		{[]Node{in(7, 1, 100, 60), in(8, 3, 100, 60), in(7, 2, 30, 60), in(7, 1, 100, 60)}, 140},
		{[]Node{in(7, 0, 100, 60), in(7, 0, 100, 60)}, 80}, // not known
		{[]Node{in(7, 1, 1<<64-1, 0), in(7, 1, 1<<64-1, 0)}, 1 << 57},
	} {
		if got := missingOn(7, c.all); got != c.want {
			t.Errorf("%+v: %d, not %d", c.all, got, c.want)
		}
	}
}
