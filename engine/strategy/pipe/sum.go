package pipe

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A summer adds up the gradients of all grains, stage by stage.
type summer interface {
	// of is the columns of a gradient that are this worker's stage's.
	of(gradients tensor.Matrix) tensor.Matrix
	// addUp sets the gradients to the sums of all stages.
	addUp(ctx context.Context) error
}

func (w *Worker) addUp(ctx context.Context) error {
	if err := w.sums.addUp(ctx); err != nil {
		return fmt.Errorf("add up the gradients: %w", err)
	}
	return nil
}

func (w *Worker) newSums() {
	if w.Device.Type() == tensor.F64 {
		w.sums = newSums[float64](w)
		return
	}
	w.sums = newSums[float32](w)
}

// sums is a summer in the device's own numbers. The shards of a stage are leaves of the
// tree over all shards; each of the stage's nodes adds up what it has, then a share of the
// columns of what all of them have, having taken it from the others. Everybody takes the
// shares that it does not have: all nodes have all weights.
type sums[T number] struct {
	w       *Worker
	from    []int // of each stage, the first of its columns, and the last
	to      []int
	members [][]int
	spans   [][][]exchange.Span // of each stage, of each node
	summer  *exchange.Summer[T]
	// Others take what lies here, until they have ended the epoch: so there are two.
	turn   int
	mine   [2][][]T // of each of this node's spans
	totals [2][]T   // of this node's share
	in     [][]T    // of each stage: what has come of its columns
}

func newSums[T number](w *Worker) *sums[T] {
	s := &sums[T]{w: w}
	shards := len(w.Shape.firsts) - 1
	for stage := range w.Seats.Stages {
		from, to := w.columns(w.Cuts[stage], w.Cuts[stage+1])
		holders := make([]int, shards)
		for shard := range holders {
			holders[shard] = -1
			if w.Shape.firsts[shard] < w.Shape.firsts[shard+1] {
				holders[shard] = w.Seats.Node(stage, w.Shape.WayOf(shard))
			}
		}
		s.from, s.to = append(s.from, from), append(s.to, to)
		s.members = append(s.members, w.Seats.Members(stage))
		s.spans = append(s.spans, exchange.Spans(holders, w.nodes()))
		s.in = append(s.in, make([]T, to-from))
	}
	if w.ways == nil {
		return s
	}
	columns := s.to[w.stage] - s.from[w.stage]
	s.summer = exchange.NewSummer[T](columns)
	for turn := range s.mine {
		for range s.spans[w.stage][w.Work.Self] {
			s.mine[turn] = append(s.mine[turn], make([]T, columns))
		}
		first, end := s.share(w.stage, slices.Index(s.members[w.stage], w.Work.Self))
		s.totals[turn] = make([]T, end-first)
	}
	for _, l := range w.leaves {
		l.sum = room(columns * w.Device.Type().Bytes())
	}
	return s
}

// nodes counts those of the job.
func (w *Worker) nodes() int { return max(1, len(w.Work.Nodes)) }

func (s *sums[T]) of(gradients tensor.Matrix) tensor.Matrix {
	from, to := s.from[s.w.stage], s.to[s.w.stage]
	return gradients.View(0, 1, from, to-from)
}

// share is which of a stage's columns a member adds up.
func (s *sums[T]) share(stage, member int) (first, end int) {
	n, of := s.to[stage]-s.from[stage], len(s.members[stage])
	return n * member / of, n * (member + 1) / of
}

func (s *sums[T]) addUp(ctx context.Context) error {
	w := s.w
	s.turn = 1 - s.turn
	if w.ways != nil {
		s.collect()
		if err := s.total(ctx); err != nil {
			return err
		}
	}
	if err := s.spread(ctx); err != nil {
		return err
	}
	for stage, row := range s.in {
		to := w.Gradients.View(0, 1, s.from[stage], s.to[stage]-s.from[stage])
		write(w.Device, to, raw(row))
	}
	return nil
}

// collect adds up this node's leaves, span by span.
func (s *sums[T]) collect() {
	w := s.w
	s.summer.Begin(s.spans[w.stage][w.Work.Self])
	for _, l := range w.leaves {
		copy(s.summer.Row(l.shard), numbers[T](l.sum))
	}
	for i, row := range s.summer.Sums() {
		copy(s.mine[s.turn][i], row)
	}
}

func (s *sums[T]) tag(lane uint8, stage, member int) exchange.Tag {
	return exchange.Tag{Epoch: uint32(s.w.epoch + 1), Lane: lane, Index: uint32(stage*s.w.nodes() + member)}
}

// total adds up this node's share of its stage's columns, and offers it.
func (s *sums[T]) total(ctx context.Context) error {
	w, stage := s.w, s.w.stage
	members, mine := s.members[stage], s.mine[s.turn]
	self := slices.Index(members, w.Work.Self)
	first, end := s.share(stage, self)
	for other := range members {
		a, b := s.share(stage, other)
		if other == self || a == b {
			continue
		}
		var parts [][]byte
		for _, row := range mine {
			parts = append(parts, raw(row[a:b]))
		}
		w.Exchange.Offer(s.tag(exchange.LanePiece, stage, other), parts...)
	}
	came := make([][]byte, len(members))
	var leaves []int
	var rows [][]T
	err := s.all(ctx, func(take func(node int, t exchange.Tag, to []byte)) {
		for other, node := range members {
			if other != self && end > first {
				came[other] = room(len(s.spans[stage][node]) * (end - first) * w.Device.Type().Bytes())
				take(node, s.tag(exchange.LanePiece, stage, self), came[other])
			}
		}
	})
	if err != nil {
		return err
	}
	for other, node := range members {
		for i, span := range s.spans[stage][node] {
			row := make([]T, end-first)
			if other == self {
				copy(row, mine[i][first:end])
			} else if end > first {
				copy(row, numbers[T](came[other])[i*(end-first):])
			}
			leaves, rows = append(leaves, span.First), append(rows, row)
		}
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return leaves[a] - leaves[b] })
	ascending, sorted := make([]int, 0, len(order)), make([][]T, 0, len(order))
	for _, i := range order {
		ascending, sorted = append(ascending, leaves[i]), append(sorted, rows[i])
	}
	exchange.Fold(ascending, sorted)
	copy(s.totals[s.turn], sorted[0])
	if w.nodes() > 1 && end > first {
		w.Exchange.Offer(s.tag(exchange.LaneTotal, stage, self), raw(s.totals[s.turn]))
	}
	return nil
}

// spread takes the sums of all stages' columns that this node has not made.
func (s *sums[T]) spread(ctx context.Context) error {
	return s.all(ctx, func(take func(node int, t exchange.Tag, to []byte)) {
		for stage, members := range s.members {
			for member, node := range members {
				first, end := s.share(stage, member)
				switch to := s.in[stage][first:end]; {
				case first == end:
				case node == s.w.Work.Self:
					copy(to, s.totals[s.turn])
				default:
					take(node, s.tag(exchange.LaneTotal, stage, member), raw(to))
				}
			}
		}
	})
}

// all takes some offers at once.
func (s *sums[T]) all(ctx context.Context, ask func(take func(node int, t exchange.Tag, to []byte))) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var under sync.WaitGroup
	ask(func(node int, t exchange.Tag, to []byte) {
		under.Go(func() {
			if err := s.w.Exchange.Take(ctx, node, strategy.Gradient, t, to, s.w.tally); err != nil {
				cancel(fmt.Errorf("take what node %s has added up: %w", s.w.Work.Nodes[node], err))
			}
		})
	})
	defer s.w.since(time.Now())
	under.Wait()
	return context.Cause(ctx)
}

// losses is the sum of the losses of all nodes.
func (w *Worker) losses(ctx context.Context) (sum float64, err error) {
	if w.Exchange == nil {
		return w.loss, nil
	}
	defer w.since(time.Now())
	mine := binary.LittleEndian.AppendUint64(nil, math.Float64bits(w.loss))
	all, err := w.Exchange.Gather(ctx, exchange.Tag{Epoch: uint32(w.epoch + 1)}, mine, w.tally)
	if err != nil {
		return 0, fmt.Errorf("add up the losses: %w", err)
	}
	for node, m := range all {
		if len(m) != 8 {
			return 0, fmt.Errorf("node %s tells of its loss in %d bytes", w.Work.Nodes[node], len(m))
		}
		sum += math.Float64frombits(binary.LittleEndian.Uint64(m))
	}
	return sum, nil
}
