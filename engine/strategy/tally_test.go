package strategy

import (
	"sync"
	"testing"
)

// What is counted while counts are taken is in one of the takes.
func TestNothingCountedIsLost(t *testing.T) {
	const askers, each = 4, 1000
	var tally Tally
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			for range each {
				tally.Count(Feature, 3)
			}
		})
	}
	var sum Counts
	counted := make(chan struct{})
	go func() { asking.Wait(); close(counted) }()
	for more := true; more; {
		select {
		case <-counted:
			more = false
		default:
		}
		sum.Add(tally.Take())
	}
	if sum.Bytes[Feature] != 3*askers*each || sum.Requests[Feature] != askers*each || tally.Read() != (Counts{}) {
		t.Errorf("took %+v, and left %+v", sum, tally.Read())
	}
}
