//go:build long

package node_test

import "testing"

func TestJobsOfEachKindOutliveANodeByAnyStrategy(t *testing.T) {
	kindsOutliveANode(t, func(k jobKind) []string {
		if k.quick {
			return k.by
		}
		return append([]string{"leap"}, k.by...)
	})
}
