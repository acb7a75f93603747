package p3

// Columns are cut into blocks whose number does not depend on nodes, and a node has a
// run of them. So a join moves few, and sums have one order on any number of nodes.
const mostBlocks = 64

func blocks(columns int) int { return min(mostBlocks, columns) }

// blockStart returns the first column of a block.
func blockStart(columns, block int) int { return columns * block / blocks(columns) }

// A span is a range of columns; it may be empty.
type span struct{ first, cols int }

func (s span) end() int { return s.first + s.cols }

// share returns the columns of a node.
func share(columns, node, nodes int) span {
	n := blocks(columns)
	first, end := blockStart(columns, n*node/nodes), blockStart(columns, n*(node+1)/nodes)
	return span{first, end - first}
}

// A leaf is a set of columns that are multiplied by themselves, and its place in the
// order in which products are added up.
type leaf struct {
	number int
	span
}

// leaves returns those of a node: all its columns at once or, where sums must be the
// same on any number of nodes, block by block.
func leaves(columns, node, nodes int, deterministic bool) (all []leaf) {
	if !deterministic {
		if s := share(columns, node, nodes); s.cols > 0 {
			all = append(all, leaf{node, s})
		}
		return all
	}
	n := blocks(columns)
	for b := n * node / nodes; b < n*(node+1)/nodes; b++ {
		first := blockStart(columns, b)
		all = append(all, leaf{b, span{first, blockStart(columns, b+1) - first}})
	}
	return all
}

// holders returns the node of each leaf.
func holders(columns, nodes int, deterministic bool) []int {
	n := nodes
	if deterministic {
		n = blocks(columns)
	}
	all := make([]int, n)
	for i := range all {
		all[i] = -1
	}
	for node := range nodes {
		for _, l := range leaves(columns, node, nodes, deterministic) {
			all[l.number] = node
		}
	}
	return all
}
