package auto

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Network measures what the network gives to the slowest of some nodes: bytes a second,
// and seconds for the smallest question. All call it at the same place of their run, when
// they have met and before anything is offered for an epoch.
func Network(ctx context.Context, x *exchange.Exchange, work strategy.Work, tally *strategy.Tally) (bandwidth, roundTrip float64, err error) {
	j := &Job{Exchange: x, Work: work, Tally: tally}
	p := j.probe()
	p.long = 200 * time.Millisecond
	r, err := p.measure(ctx, Rates{Hands: 1})
	if err != nil {
		return 0, 0, fmt.Errorf("measure the network: %w", err)
	}
	return r.Bandwidth, r.RoundTrip, nil
}
