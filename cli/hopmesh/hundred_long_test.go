//go:build long

package main

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
)

// The hundredth job of the same daemons takes what the first took, whatever the strategy, and
// all give back what they took after each.
func TestTheHundredthJobOfAnyStrategy(t *testing.T) {
	const bound, rounds = 384 << 20, 12
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	nodes := meshIn(t, box(t), freePorts(t, 3), func(args []string) *exec.Cmd { return exec.Command(path, append(args, "--memory", "384MiB")...) })
	m := newLimitedMesh(t, nodes)
	generatedOn(t, nodes[0], "--vertices", "30000", "--edges", "600000", "--features", "64", "--classes", "8", "--shards", "12", "--replicas", "2")
	const sampled = "--model sage --hidden 32 --fanout 10,10 --batch 1024 --layers 2"
	all := []trial{
		{"single", sampled}, {"leap", sampled}, {"centric", sampled + " --set topology=sharded"}, {"p3", sampled}, {"local", sampled}, {"grappa", sampled},
		{"graph", "--model gcn --hidden 32 --layers 3"}, {"pipe", "--model gcn --hidden 32 --layers 3"}, {"auto", sampled},
	}
	takes := make([][]uint64, len(all))
	var settled []uint64 // what each holds after two rounds
	for round := range rounds {
		if round == 2 {
			m.rest("two rounds")
			for _, d := range nodes {
				settled = append(settled, d.held())
			}
		}
		for i, of := range all {
			o := m.try(of, bound)
			if !o.done {
				t.Fatalf("round %d, %v: %v", round+1, of, o)
			}
			takes[i] = append(takes[i], slices.Max(o.peaks))
		}
	}
	for i, d := range nodes {
		until(t, "what is kept from job to job is little", func() bool { return d.held() < settled[i]+16<<20 })
		t.Logf("%s: %s after two rounds, %s in the end", d.dir, budget.Format(settled[i]), budget.Format(d.held()))
	}
	for i, of := range all {
		t.Logf("%s: %s", of.strategy, formats(takes[i]))
		// When the collector runs is chance. What is kept from job to job raises even the least
		// of the later ones.
		if early, late := slices.Min(takes[i][:rounds/2]), slices.Min(takes[i][rounds/2:]); late > early+max(early/10, 24<<20) {
			t.Errorf("%s: later jobs took %s at least, and earlier ones %s", of.strategy, budget.Format(late), budget.Format(early))
		}
	}
}
