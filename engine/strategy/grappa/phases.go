package grappa

// phases returns the groups of this node in the runs in which they are computed, one after
// another.
func (n *Method) phases() (all [][]int) {
	runs := min(max(1, n.runs), max(1, len(n.mine)))
	for i := range runs {
		if groups := n.mine[i*len(n.mine)/runs : (i+1)*len(n.mine)/runs]; len(groups) > 0 {
			all = append(all, groups)
		}
	}
	return all
}
