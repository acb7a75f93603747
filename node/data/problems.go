package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// A problem is one thing that is wrong with a dataset. The kinds are in the order in which users
// should read of them.
type problem struct {
	kind   kind
	shards int // that have it
	text   string
}

type kind int

const (
	lost kind = iota
	unserved
	waiting
	tooFewNodes
	thin
	importing
	kinds
)

// folded says what is wrong with many datasets at once.
var folded = [kinds]string{
	lost:        "%d datasets have lost SHARDS, of which no copy was left whole: remove these datasets and import them anew",
	unserved:    "no node that answers holds some shards of %d datasets, SHARDS in all: start the nodes that do again, or remove these datasets and import them anew",
	waiting:     "%d datasets are about to give SHARDS another owner, as theirs do not answer",
	tooFewNodes: "%d datasets lack copies of SHARDS, since they want more nodes than the mesh has: add some",
	thin:        "%d datasets lack copies of SHARDS: they are on their way, or wait for nodes that do not answer",
	importing:   "%d datasets are being imported",
}

// apart is how many datasets with a problem of the same kind are named.
const apart = 3

// lacks finds what datasets lack, by which nodes answer.
type lacks struct{ answers func(id string) bool }

// ofAll returns sentences on what the datasets lack, and what to do: the worst first. Where many
// lack the same, one sentence says so.
func (l lacks) ofAll(s *plan.State) (list []string) {
	var all [kinds][]problem
	byName := func(a, b plan.Dataset) int { return cmp.Compare(a.Name, b.Name) }
	for _, of := range slices.SortedFunc(maps.Values(s.Datasets), byName) {
		for _, p := range l.problems(s, of) {
			all[p.kind] = append(all[p.kind], p)
		}
	}
	for kind, of := range all {
		if len(of) <= apart {
			for _, p := range of {
				list = append(list, p.text)
			}
			continue
		}
		shards := 0
		for _, p := range of {
			shards += p.shards
		}
		text := strings.Replace(folded[kind], "SHARDS", shardCount(shards), 1)
		list = append(list, fmt.Sprintf(text, len(of))+" (`hopmesh dataset list` shows which)")
	}
	return list
}

// ofOne returns sentences on what one dataset lacks, and what to do.
func (l lacks) ofOne(s *plan.State, of plan.Dataset) (list []string) {
	for _, p := range l.problems(s, of) {
		list = append(list, p.text)
	}
	return list
}

func (l lacks) problems(s *plan.State, of plan.Dataset) (list []problem) {
	add := func(k kind, shards int, text string, args ...any) {
		list = append(list, problem{k, shards, fmt.Sprintf(text, args...)})
	}
	if of.Stage == plan.Importing {
		add(importing, 0, "dataset %s is being imported by node %s", of.Name, s.NameOf(of.Importer))
		return list
	}
	lack := of.Lacks(l.answers)
	gone := 0
	for i := range of.Shards {
		if of.Lost(i) {
			gone++
		}
	}
	if gone > 0 {
		add(lost, gone, "dataset %s has lost %s, of which no copy was left whole: remove it and import it anew", of.Name, shardCount(gone))
	}
	if n := lack.Unserved - gone; n > 0 {
		add(unserved, n, "no node that answers holds %s of dataset %s: start the nodes that do again, or remove it and import it anew", shardCount(n), of.Name)
	}
	if n := lack.Waiting; n > 0 {
		add(waiting, n, "dataset %s is about to give %s another owner, as theirs does not answer", of.Name, shardCount(n))
	}
	if n := lack.Thin; n > 0 {
		staying := 0
		for _, p := range s.Members {
			if !p.Leaving {
				staying++
			}
		}
		if staying <= of.Replicas {
			add(tooFewNodes, n, "dataset %s lacks copies of %s, with %d wanted beside the owner's: that takes %d nodes and the mesh has %d, so add some",
				of.Name, shardCount(n), of.Replicas, of.Replicas+1, staying)
		} else {
			add(thin, n, "dataset %s lacks copies of %s, with %d wanted beside the owner's: they are on their way, or wait for nodes that do not answer",
				of.Name, shardCount(n), of.Replicas)
		}
	}
	return list
}
