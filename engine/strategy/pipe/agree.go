package pipe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// The messages of a plan, among those of exchange.LaneMessages: after those by which nodes
// meet and measure the network, and before the first epoch.
var (
	timesAt = exchange.Tag{Step: 16, Lane: exchange.LaneMessages}
	planAt  = exchange.Tag{Step: 17, Lane: exchange.LaneMessages}
)

// Hear tells all nodes what this one has timed, and sets what it costs, and what memory
// there is, to what all have told.
func (f *Facts) Hear(ctx context.Context, x *exchange.Exchange, names []string, mine *Timing, tally *strategy.Tally) error {
	message, err := mine.encode()
	if err != nil {
		return err
	}
	messages, err := x.Gather(ctx, timesAt, message, tally)
	if err != nil {
		return fmt.Errorf("hear what layers take on other nodes: %w", err)
	}
	infos := f.Model.Stages()
	var all []*Timing
	for node, m := range messages {
		of, err := readTiming(m, len(infos), len(f.Layout.Owners))
		if err != nil {
			return fmt.Errorf("node %s %w", names[node], err)
		}
		all = append(all, of)
		f.Memory = append(f.Memory, of.Rest.Memory)
	}
	f.Network.Byte, f.Network.Piece = handling(all)
	f.Costs = Measured(all, infos, f.Census, f.Model.Size())
	return nil
}

// Agree has all nodes follow the first one's plan. They come to the same by the same
// numbers, but processors of two kinds may round them differently.
func (p *Plan) Agree(ctx context.Context, x *exchange.Exchange, names []string, f *Facts, tally *strategy.Tally) error {
	messages, err := x.Gather(ctx, planAt, p.encode(), tally)
	if err != nil {
		return fmt.Errorf("agree on stages and ways: %w", err)
	}
	stages, ways, cuts, err := readPlan(messages[0], len(f.Model.Stages()))
	if err != nil {
		return fmt.Errorf("node %s %w", names[0], err)
	}
	at := slices.IndexFunc(p.Tried, func(t Prediction) bool { return t.Stages == stages && t.Ways == ways })
	if at < 0 {
		return fmt.Errorf("node %s has planned %d stages of %d ways, which this one has not looked at: run the same version of hopmesh on all nodes of the job", names[0], stages, ways)
	}
	chosen := p.Tried[at]
	p.Tried = slices.Insert(slices.Delete(p.Tried, at, at+1), 0, chosen)
	p.Stages, p.Ways, p.Cuts = stages, ways, cuts
	return nil
}

func (p *Plan) encode() (to []byte) {
	to = binary.LittleEndian.AppendUint32(to, uint32(p.Stages))
	to = binary.LittleEndian.AppendUint32(to, uint32(p.Ways))
	for _, c := range p.Cuts {
		to = binary.LittleEndian.AppendUint32(to, uint32(c))
	}
	return to
}

// readPlan reads one for a model of so many stages.
func readPlan(m []byte, of int) (stages, ways int, cuts []int, err error) {
	wrong := errors.New("tells of a plan that is none: run the same version of hopmesh on all nodes of the job")
	if len(m) < 8 || len(m)%4 != 0 {
		return 0, 0, nil, wrong
	}
	stages, ways = int(binary.LittleEndian.Uint32(m)), int(binary.LittleEndian.Uint32(m[4:]))
	for at := 8; at < len(m); at += 4 {
		cuts = append(cuts, int(binary.LittleEndian.Uint32(m[at:])))
	}
	if stages < 1 || ways < 1 || len(cuts) != stages+1 || cuts[0] != 0 || cuts[stages] != of {
		return 0, 0, nil, wrong
	}
	for i := range stages {
		if cuts[i+1] <= cuts[i] {
			return 0, 0, nil, wrong
		}
	}
	return stages, ways, cuts, nil
}
