package costs

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
)

// timesAt is the message with which nodes exchange the times of layers: after those by
// which nodes meet and measure the network, and before arrange.ByTimes.
var timesAt = exchange.Tag{Step: 16, Lane: exchange.LaneMessages}

// roomsAt is the message with which nodes exchange what memory they have: after what they
// have counted, and before arrange.ByFormula.
var roomsAt = exchange.Tag{Step: 5, Lane: exchange.LaneMessages}

// Rooms sends all others what memory this node has for the job, and returns what each has.
func Rooms(ctx context.Context, x *exchange.Exchange, names []string, mine uint64, tally *peer.Tally) (all []uint64, err error) {
	messages, err := x.Gather(ctx, roomsAt, binary.LittleEndian.AppendUint64(nil, mine), tally)
	if err != nil {
		return nil, fmt.Errorf("exchange how much memory there is: %w", err)
	}
	for node, m := range messages {
		if len(m) != 8 {
			return nil, fmt.Errorf("node %s says in %d bytes how much memory it has: run the same version of hopmesh on all nodes of the job", names[node], len(m))
		}
		all = append(all, binary.LittleEndian.Uint64(m))
	}
	return all, nil
}

// Share sends this node's timing to all others, and returns the costs by those of all.
func Share(ctx context.Context, x *exchange.Exchange, names []string, mine *Timing, infos []nn.StageInfo, c *census.Census, tally *peer.Tally) (*Costs, error) {
	message, err := mine.Encode()
	if err != nil {
		return nil, err
	}
	messages, err := x.Gather(ctx, timesAt, message, tally)
	if err != nil {
		return nil, fmt.Errorf("exchange the times of layers: %w", err)
	}
	var all []*Timing
	for node, m := range messages {
		of, err := ReadTiming(m, len(infos))
		if err != nil {
			return nil, fmt.Errorf("node %s %w", names[node], err)
		}
		all = append(all, of)
	}
	return Measured(all, infos, c), nil
}
