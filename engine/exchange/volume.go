package exchange

import "github.com/hopmesh/hopmesh/engine/peer"

// A Volume is what nodes send for one Reduce.
type Volume struct {
	All     peer.Counts // by all nodes together
	Busiest uint64      // bytes that come to the node to which most come
	Asked   int         // questions of the node that asks most
	Rounds  int         // of questions, one after the other

	came  []int // bytes that come to each node
	asked []int // questions of each node
}

// VolumeOf returns what nodes send for a sum of so many columns of so many bytes, where each node
// contributes these rows (nil: one each).
func VolumeOf(nodes, columns, size int, rows []int) Volume {
	v := Volume{came: make([]int, nodes), asked: make([]int, nodes)}
	if nodes < 2 {
		return v
	}
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
	v.Rounds = 2
	if whole(nodes, columns*size, of) {
		v.Rounds = 1
	}
	for a := range nodes {
		for b := range a {
			if v.Rounds == 1 {
				v.add(a, b, noteSize+of(a)*columns*size, noteSize+of(b)*columns*size)
			} else {
				v.add(a, b, noteSize+of(a)*bytes(b), noteSize+of(b)*bytes(a))
				v.add(a, b, bytes(a), bytes(b))
			}
		}
	}
	for node, came := range v.came {
		v.All.Bytes[peer.Gradient] += uint64(came)
		v.All.Requests[peer.Gradient] += uint64(v.asked[node])
		v.Busiest, v.Asked = max(v.Busiest, uint64(came)), max(v.Asked, v.asked[node])
	}
	return v
}

// add counts what two nodes give each other, in bytes.
func (v *Volume) add(a, b, gives, takes int) {
	if !asks(a, b, len(v.came)) {
		a, b, gives, takes = b, a, takes, gives
	}
	switch {
	case swaps(a, b, len(v.came), gives, takes):
		v.question(a, b, columnsSize+gives, takes)
	default:
		if gives > 0 {
			v.question(b, a, columnsSize, gives)
		}
		if takes > 0 {
			v.question(a, b, columnsSize, takes)
		}
	}
}

// question counts a question of a node to another, and its answer: the bytes of either body.
func (v *Volume) question(from, to, body, answer int) {
	v.asked[from]++
	v.came[to] += peer.QueryFraming + body
	v.came[from] += peer.AnswerFraming + answer
}
