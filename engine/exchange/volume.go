package exchange

import "github.com/hopmesh/hopmesh/engine/peer"

// Volume returns what all nodes together send for one Reduce over so many columns of so
// many bytes, where each node contributes these rows (nil: one each), and how many bytes
// come to the node to which most come.
func Volume(nodes, columns, size int, rows []int) (all peer.Counts, busiest uint64) {
	of := func(node int) int {
		if rows == nil {
			return 1
		}
		return rows[node]
	}
	bytes := func(node int) int { // of its share
		first, end := share(columns, node, nodes)
		return (end - first) * size
	}
	v := volume{came: make([]int, nodes)}
	apart := !whole(nodes, columns*size, of)
	for a := range nodes {
		for b := range a {
			if apart {
				v.add(a, b, noteSize+of(a)*bytes(b), noteSize+of(b)*bytes(a))
				v.add(a, b, bytes(a), bytes(b))
			} else {
				v.add(a, b, noteSize+of(a)*columns*size, noteSize+of(b)*columns*size)
			}
		}
	}
	for _, came := range v.came {
		all.Bytes[peer.Gradient] += uint64(came)
		busiest = max(busiest, uint64(came))
	}
	all.Requests[peer.Gradient] = uint64(v.questions)
	return all, busiest
}

// A volume is how many questions there are, and how many bytes come to each node.
type volume struct {
	came      []int
	questions int
}

// add counts what two nodes give each other, in bytes.
func (v *volume) add(a, b, gives, takes int) {
	if !asks(a, b, len(v.came)) {
		a, b, gives, takes = b, a, takes, gives
	}
	if swaps(a, b, len(v.came), gives, takes) {
		v.question(a, b, columnsSize+gives, takes)
		return
	}
	if gives > 0 {
		v.question(b, a, columnsSize, gives)
	}
	if takes > 0 {
		v.question(a, b, columnsSize, takes)
	}
}

// question counts one of a node to another, with so many bytes and for so many.
func (v *volume) question(from, to, brings, takes int) {
	v.questions++
	v.came[to] += peer.QueryFraming + brings
	v.came[from] += peer.AnswerFraming + takes
}
