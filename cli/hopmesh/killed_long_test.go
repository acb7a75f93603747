//go:build long

package main

import "testing"

// Strategies that keep more than weights between epochs outlive a kill, too.
func TestTrainingByAnyStrategyOutlivesAKill(t *testing.T) {
	nodes := meshOf(t, 3)
	nodes[0].must(new(any), "dataset", "generate", "g", "--kind", "sbm", "--vertices", "12000", "--edges", "60000", "--features", "32",
		"--classes", "4", "--shards", "12", "--replicas", "2")
	outlivesAKill(t, nodes, 40,
		killing{recipe: "--strategy grappa --set grappa.period=7 --batch 1500 --fanout 5,5"},
		killing{recipe: "--strategy pipe --set pipe.period=7 --layers 3", leader: true},
		killing{recipe: "--strategy graph --set pipe.ways=3 --layers 3"},
	)
}

// Three processes share a job, the leader is killed with -9 in the middle of an epoch, and the
// others come to the same weights without it. A delay makes epochs last.
func TestSharedTrainingOutlivesAKill(t *testing.T) {
	t.Parallel() // it mostly waits
	nodes := meshAs(t, 3, "bench", "node", "--delay", "5ms")
	nodes[0].must(new(any), "dataset", "generate", "g", "--kind", "sbm", "--vertices", "1200", "--edges", "6000", "--features", "8",
		"--classes", "4", "--shards", "6", "--replicas", "1")
	outlivesAKill(t, nodes, 20, killing{recipe: "--strategy leap --batch 150 --fanout 5,5", leader: true})
}
