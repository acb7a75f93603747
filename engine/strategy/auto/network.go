package auto

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Network measures the bandwidth, in bytes a second, and the seconds of the smallest
// question, for the slowest of some nodes. All call it at the same point of their run,
// when they have met and before anything is offered for an epoch.
func Network(ctx context.Context, x *exchange.Exchange, work peer.Work, tally *peer.Tally) (bandwidth, roundTrip float64, err error) {
	j := &Job{Exchange: x, Work: work, Tally: tally}
	p := j.probe()
	p.long = 200 * time.Millisecond
	r, err := p.measure(ctx, Rates{Hands: 1})
	if err != nil {
		return 0, 0, fmt.Errorf("measure the network: %w", err)
	}
	return r.Bandwidth, r.RoundTrip, nil
}
