package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategies"
)

// What can happen. Files are damaged while their node does not run; one that runs is killed
// before.
const (
	kill      = "kill"      // as kill -9 does; every other process loses its power, and what it had not synced
	stop      = "stop"      // as SIGTERM does
	pause     = "pause"     // as SIGSTOP does, until all is healed
	restart   = "restart"   // of a node that was killed or stopped
	cut       = "cut"       // packets from one node to another
	isolate   = "isolate"   // both ways between a node and all others
	split     = "split"     // the nodes into two halves
	heal      = "heal"      // every cut, and a node's disk and clock
	lose      = "lose"      // a share of all packets, and reorder them
	slow      = "slow"      // all packets of a node
	narrow    = "narrow"    // the largest packet that a node sends
	fill      = "fill"      // a node's disk
	drag      = "drag"      // a node's disk, so that it takes long
	turn      = "turn"      // a node's clock, forward or back
	join      = "join"      // a new node, or two by a token for one
	leave     = "leave"     // a node, on request
	revoke    = "revoke"    // a node, for ever
	token     = "token"     // is created
	rotate    = "rotate"    // the mesh's CA
	generate  = "generate"  // a small dataset
	load      = "load"      // a dataset from files
	remove    = "remove"    // the generated one
	train     = "train"     // a small job
	cancel    = "cancel"    // that job
	flip      = "flip"      // bits of a file
	truncate  = "truncate"  // a file
	disappear = "disappear" // a file
)

// odds say how often each happens. Those of disk faults count in histories that have
// some.
var odds = []struct {
	kind string
	of   int
	disk bool
}{
	{kill, 5, false},
	{stop, 2, false},
	{pause, 2, false},
	{restart, 5, false},
	{cut, 3, false},
	{isolate, 3, false},
	{split, 1, false},
	{heal, 3, false},
	{lose, 2, false},
	{slow, 2, false},
	{narrow, 1, false},
	{fill, 2, false},
	{drag, 2, false},
	{turn, 2, false},
	{join, 2, false},
	{leave, 1, false},
	{revoke, 1, false},
	{token, 2, false},
	{rotate, 1, false},
	{generate, 1, false},
	{load, 1, false},
	{remove, 1, false},
	{train, 1, false},
	{cancel, 1, false},
	{flip, 5, true},
	{truncate, 2, true},
	{disappear, 2, true},
}

// A fault is something that happens to a mesh. What makes no sense at its time, such as
// the kill of a node that does not run, does not happen.
type fault struct {
	After time.Duration // since the one before
	Kind  string
	Node  uint64  // which node, modulo their number
	Other uint64  // another one, or which file
	Much  float64 // of 1
}

func (f fault) String() string {
	return fmt.Sprintf("%7.3fs %-9s node %d, other %d, %.3f", f.After.Seconds(), f.Kind, f.Node, f.Other, f.Much)
}

// A history is what happens to one mesh.
type history struct {
	Seed     uint64
	Strategy string // of the job that trains meanwhile
	Disk     bool   // files are damaged, too
	Faults   []fault
}

// trained lists the strategies whose weights do not depend on the nodes. Those of local do.
var trained = slices.DeleteFunc(strategies.Computed(), func(name string) bool { return name == "local" })

// faultsAtLeast is how many faults a history has at least.
const faultsAtLeast = 10

// draw returns the history of a seed. Each third one has damaged files.
func draw(seed uint64) history {
	r := rand.New(rand.NewPCG(seed, 0x6368616f73))
	h := history{Seed: seed, Strategy: trained[seed%uint64(len(trained))], Disk: seed/uint64(len(trained))%3 == 2}
	all := 0
	for _, w := range odds {
		if h.Disk || !w.disk {
			all += w.of
		}
	}
	for range faultsAtLeast + r.IntN(6) {
		f := fault{
			After: time.Duration(r.ExpFloat64() * float64(3*time.Second)), Node: r.Uint64() % 64, Other: r.Uint64() % 64, Much: r.Float64(),
		}
		at := r.IntN(all)
		for _, w := range odds {
			if w.disk && !h.Disk {
				continue
			}
			if at -= w.of; at < 0 {
				f.Kind = w.kind
				break
			}
		}
		h.Faults = append(h.Faults, f)
	}
	return h
}

// only returns the history with these of its faults, in their order. Each keeps its time.
func (h history) only(keep []int) history {
	var some []fault
	waited := time.Duration(0)
	for i, f := range h.Faults {
		waited += f.After
		if slices.Contains(keep, i) {
			f.After, waited = waited, 0
			some = append(some, f)
		}
	}
	h.Faults = some
	return h
}

func (h history) String() string {
	var s strings.Builder
	disk := ""
	if h.Disk {
		disk = ", with damaged files"
	}
	fmt.Fprintf(&s, "seed %d, a job of %s%s:\n", h.Seed, h.Strategy, disk)
	for i, f := range h.Faults {
		fmt.Fprintf(&s, "%3d %s\n", i, f)
	}
	return s.String()
}
