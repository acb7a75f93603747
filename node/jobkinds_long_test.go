//go:build long

package node_test

import "testing"

func TestJobsOfEachKindOutliveANodeByOtherStrategies(t *testing.T) {
	kindsOutliveANode(t, func(k jobKind) []string { return k.by })
}
