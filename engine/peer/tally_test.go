package peer

import (
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/epoch"
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

// An epoch's record has each kind of bytes under its own name.
func TestCountsOfARecord(t *testing.T) {
	var c Counts
	for k := range Kinds {
		c.Bytes[k], c.Requests[k] = 10+uint64(k), 20+uint64(k)
	}
	requests, bytes := c.Record()
	if requests != (epoch.Requests{Feature: 21, Topology: 22, Activation: 25, Gradient: 24}) ||
		bytes != (epoch.Bytes{Control: 10, Feature: 11, Topology: 12, Model: 13, Gradient: 14, Activation: 15, Shard: 16}) {
		t.Errorf("%+v and %+v", requests, bytes)
	}
}
