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
	sum := 0
	for node := range nodes {
		sum += of(node)
	}
	if whole(nodes, columns*size, of) {
		for self := range nodes {
			came := (nodes-1)*(peer.QueryFraming+peer.AnswerFraming+noteSize) + (sum-of(self))*columns*size
			all.Bytes[peer.Gradient] += uint64(came)
			busiest = max(busiest, uint64(came))
		}
		all.Requests[peer.Gradient] = uint64(nodes * (nodes - 1))
		return all, busiest
	}
	for self := range nodes {
		first, end := share(columns, self, nodes)
		came := (nodes-1)*(peer.QueryFraming+columnsSize+peer.AnswerFraming+noteSize) + (sum-of(self))*(end-first)*size
		requests := nodes - 1
		for node := range nodes {
			if first, end := share(columns, node, nodes); node != self && end > first {
				came += peer.QueryFraming + peer.AnswerFraming + (end-first)*size
				requests++
			}
		}
		all.Bytes[peer.Gradient] += uint64(came)
		all.Requests[peer.Gradient] += uint64(requests)
		busiest = max(busiest, uint64(came))
	}
	return all, busiest
}
