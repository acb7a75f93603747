//go:build long

package main

import "testing"

// TestQuickRowsReachTheirBars trains what takes a second or two a seed.
func TestQuickRowsReachTheirBars(t *testing.T) {
	reachBars(t, map[string]int{
		"cora/GCN": 3, "cora/SAGE-mean": 3, "cora/GAT": 2, "citeseer/GCN": 3, "citeseer/SAGE-mean": 3, "citeseer/GAT": 2, "amazon_photo/quick GCN": 1,
	})
}

func TestNodesLearnAsWellAsOneByMean(t *testing.T) {
	learnAsWell(t, 3, apart)
}
