package auto

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// parcelBytes is what a node takes from each other node to measure bandwidth, and
// envelopes how many empty answers it takes to measure latency.
const (
	parcelBytes = 1 << 20
	envelopes   = 3
)

// fastest is the rate of a network that is too fast to be measured.
const fastest = 1e12

// mostParcels is how many parcels a node takes at most.
const mostParcels = 256

// A probe measures the network. Once it is made, others can measure this node.
type probe struct {
	job *Job
	// long is the least time of measuring: the first burst of a CPU's share may be
	// faster than what follows.
	long time.Duration
}

func (j *Job) probe() probe {
	if len(j.Work.Nodes) > 1 {
		j.Exchange.Offer(tag(0, parcelAt), make([]byte, parcelBytes))
		j.Exchange.Offer(tag(0, envelopeAt))
	}
	return probe{job: j}
}

// measure adds the network to this node's rates, and returns the rates of the slowest
// node. Each node asks the others in turn, beginning with the one after itself. So each
// is asked about as much as it asks at any time, as in a step.
func (p probe) measure(ctx context.Context, mine Rates) (slowest Rates, err error) {
	j, nodes := p.job, len(p.job.Work.Nodes)
	mine.Bandwidth = fastest
	parcel, under, parcels := make([]byte, parcelBytes), 0.0, 0
	usual, err := p.usual(ctx)
	if err != nil {
		return mine, err
	}
	begin := time.Now()
	for ; parcels < nodes-1 || parcels > 0 && parcels < mostParcels && time.Since(begin) < p.long; parcels++ {
		node := (j.Work.Self + 1 + parcels%(nodes-1)) % nodes
		trip, err := p.trip(ctx, node)
		if err != nil {
			return mine, fmt.Errorf("measure how far node %s is: %w", j.Work.Nodes[node], err)
		}
		mine.RoundTrip = max(mine.RoundTrip, trip)
		took, err := p.take(ctx, node, parcelAt, parcel)
		if err != nil {
			return mine, fmt.Errorf("measure how fast bytes come from node %s: %w", j.Work.Nodes[node], err)
		}
		under += max(took-trip, took/8) // must not be zero where trips vary
	}
	if p.long > 0 {
		mine.RoundTrip = usual
	}
	if under > 0 {
		mine.Bandwidth = min(fastest, float64(parcels)*parcelBytes/under)
	}
	message, err := mine.encode()
	if err != nil {
		return mine, fmt.Errorf("encode rates: %w", err)
	}
	messages, err := j.Exchange.Gather(ctx, tag(1, ratesAt), message, j.Tally)
	if err != nil {
		return mine, err
	}
	slowest = mine
	for node, m := range messages {
		of, err := readRates(m)
		if err != nil {
			return mine, fmt.Errorf("node %s %w", j.Work.Nodes[node], err)
		}
		slowest = slowest.slower(of)
	}
	// All have sent their results, so that nobody needs it any more.
	return slowest, p.end(ctx)
}

// usual returns the mean time of a question where nothing else is under way; 0, where a
// probe is not long.
func (p probe) usual(ctx context.Context) (float64, error) {
	j, nodes, trips, asked := p.job, len(p.job.Work.Nodes), 0.0, 0
	if nodes < 2 || p.long == 0 {
		return 0, nil
	}
	// Whether a node takes part below may not depend on its clock: each asks once at least.
	for begin := time.Now(); asked == 0 || asked < mostParcels && time.Since(begin) < p.long/2; asked++ {
		node := (j.Work.Self + 1 + asked%(nodes-1)) % nodes
		took, err := p.take(ctx, node, envelopeAt, nil)
		if err != nil {
			return 0, fmt.Errorf("measure how far node %s is: %w", j.Work.Nodes[node], err)
		}
		trips += took
	}
	// Parcels come when nobody asks any more.
	if _, err := j.Exchange.Gather(ctx, tag(0, askedAt), nil, j.Tally); err != nil {
		return 0, fmt.Errorf("wait for all nodes to have measured how far others are: %w", err)
	}
	return trips / float64(asked), nil
}

// trip returns the time of the fastest of some questions.
func (p probe) trip(ctx context.Context, node int) (float64, error) {
	least := 0.0
	for i := range envelopes {
		took, err := p.take(ctx, node, envelopeAt, nil)
		if err != nil {
			return 0, err
		}
		if i == 0 || took < least {
			least = took
		}
	}
	return least, nil
}

func (p probe) take(ctx context.Context, node int, index uint32, to []byte) (float64, error) {
	start := time.Now()
	err := p.job.Exchange.Take(ctx, node, peer.Control, tag(0, index), to, p.job.Tally)
	return time.Since(start).Seconds(), err
}

func (p probe) end(ctx context.Context) error {
	for _, index := range []uint32{parcelAt, envelopeAt} {
		if err := p.job.Exchange.Withdraw(ctx, tag(0, index)); err != nil {
			return fmt.Errorf("end measuring the network: %w", err)
		}
	}
	return nil
}
