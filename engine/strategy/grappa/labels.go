package grappa

import (
	"context"
	"fmt"
	"slices"
)

// known are the labels of seed vertices of this node's groups in shards that other nodes
// hold. Nobody answers questions for them in an epoch.
type known struct {
	vertices []uint32 // ascending
	labels   []int32
}

// bringLabels fetches the labels that this node computes with and others hold.
func (n *Method) bringLabels(ctx context.Context) (k known, err error) {
	t := n.Run
	var target []int32
	for _, v := range t.Data.Training {
		var here bool
		if target, here = t.Data.Target(target[:0], v); !here && slices.Contains(n.mine, n.Schedule.Of(n.layout.Shard(v))) {
			k.vertices = append(k.vertices, v)
		}
	}
	slices.Sort(k.vertices) // epochs shuffle them
	k.labels, err = t.Session.Labels.Append(ctx, nil, k.vertices, &t.Session.Start)
	if err != nil {
		return k, fmt.Errorf("bring the labels of the groups of this node: %w", err)
	}
	return k, nil
}

// labels appends the labels of seed vertices of this node's groups.
func (n *Method) labels(to []int32, roots []uint32) ([]int32, error) {
	words := n.Run.Data.About.Words()
	for _, v := range roots {
		var here bool
		if to, here = n.Run.Data.Target(to, v); !here {
			at, found := slices.BinarySearch(n.known.vertices, v)
			if !found {
				return nil, fmt.Errorf("group %d trains in isolation and would learn the label of vertex %d, which it has not been given", n.Schedule.Of(n.layout.Shard(v)), v)
			}
			to = append(to, n.known.labels[at*words:][:words]...)
		}
	}
	return to, nil
}

// Bytes returns the memory that they take.
func (k *known) Bytes() uint64 { return 4 * uint64(len(k.vertices)+len(k.labels)) }
