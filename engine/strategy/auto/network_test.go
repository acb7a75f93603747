package auto

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// The network is measured for long enough that what comes at once at first, and never
// again, counts for little.
func TestNetworkForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, bandwidth, trip = 3, 1e8, 2 * time.Millisecond
		w := newWorld(t, nodes, linksOf(nodes, link{bandwidth, trip}))
		slow := w.net.Trouble
		var parcels atomic.Int32
		w.net.Trouble = func(ctx context.Context, from, to int, q peer.Query) error {
			if q.Part == uint32(exchange.LaneMessages)<<24|parcelAt && parcels.Add(1) <= nodes {
				return nil // a parcel each for nothing
			}
			return slow(ctx, from, to, q)
		}
		jobs := make([]*Job, nodes)
		for node := range nodes {
			jobs[node] = w.job(node)
		}
		done := make(chan struct{}, nodes)
		for _, j := range jobs {
			go func() {
				defer func() { done <- struct{}{} }()
				got, roundTrip, err := Network(t.Context(), j.Exchange, j.Work, j.Tally)
				if err != nil || math.Abs(got/bandwidth-1) > 0.15 || math.Abs(roundTrip-trip.Seconds()) > 1e-9 {
					t.Errorf("%g bytes a second, and %g s for a question: %v", got, roundTrip, err)
				}
			}()
		}
		for range nodes {
			<-done
		}
	})
}

// A node that stands still between two looks at its clock measures with the others all the same.
func TestANodeThatStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, linksOf(2, link{1e8, 2 * time.Millisecond}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error, 2)
		for node, long := range []time.Duration{1, 200 * time.Millisecond} {
			p := w.job(node).probe()
			p.long = long
			go func() {
				_, err := p.measure(ctx, Rates{Hands: 1})
				done <- err
			}()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
