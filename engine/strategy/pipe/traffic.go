package pipe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// What moves between nodes keeps both ends from computing, wherever the processor that
// computes is the one that encrypts and sends; a network between idle nodes does not show
// that. So nodes compute what they have timed once more while they take pieces from each
// other, large ones and small ones: what that takes longer is what pieces cost.
const (
	largePiece = 256 << 10
	smallPiece = 16 << 10
	// taking is how long nodes compute by themselves, then beside large pieces, and then
	// beside small ones, so often: what else the machine does changes meanwhile.
	taking = 120 * time.Millisecond
	often  = 4
	// askers is how many large pieces a node takes at once, and half as many small ones: those
	// that come by themselves cost most.
	askers = 4
)

// A burden is what pieces cost: how long each keeps each of both ends from computing.
type burden struct{ Large, Small float64 }

// A weighing finds that out.
type weighing struct {
	*rehearsal
	turn  uint32
	taken [2]int     // of each size
	took  [2]float64 // how long was computed beside them
	due   [2]float64 // how long that should have been
	alone [2]float64 // both, of what was computed by itself
}

// weigh measures it. All nodes call it at the same place of their run.
func (r *rehearsal) weigh(ctx context.Context) (burden, error) {
	w := &weighing{rehearsal: r}
	sizes, atOnce := [2]int{largePiece, smallPiece}, [2]int{askers, askers / 2}
	for i, size := range sizes {
		r.Exchange.Offer(pieceTag(i), make([]byte, size))
	}
	for range often {
		if _, err := w.during(ctx, func(time.Time) (int, error) { return 0, nil }); err != nil {
			return burden{}, err
		}
		w.alone[0], w.alone[1] = w.alone[0]+r.took, w.alone[1]+r.due
		for i, size := range sizes {
			n, err := w.during(ctx, func(end time.Time) (int, error) { return w.take(ctx, i, size, atOnce[i], end) })
			if err != nil {
				return burden{}, err
			}
			w.taken[i], w.took[i], w.due[i] = w.taken[i]+n, w.took[i]+r.took, w.due[i]+r.due
		}
	}
	if err := w.meet(ctx); err != nil { // nobody asks any more
		return burden{}, err
	}
	for i := range sizes {
		if err := r.Exchange.Withdraw(ctx, pieceTag(i)); err != nil {
			return burden{}, fmt.Errorf("end measuring what pieces cost: %w", err)
		}
	}
	return burden{w.each(0), w.each(1)}, nil
}

// pieceTag is that of what is weighed: in the lane of rows between stages, before the first
// epoch.
func pieceTag(size int) exchange.Tag {
	return exchange.Tag{Lane: exchange.LaneBoundary, Index: uint32(size)}
}

// each is what a piece of a size costs: less than nothing, where a machine got faster.
func (w *weighing) each(size int) float64 {
	if w.taken[size] == 0 || w.alone[1] == 0 {
		return 0
	}
	const ends = 2 // as many are given as are taken, about
	return (w.took[size] - w.due[size]*w.alone[0]/w.alone[1]) / float64(ends*w.taken[size])
}

// meet waits for all nodes.
func (w *weighing) meet(ctx context.Context) error {
	const first = 10 // after those by which nodes measure the network
	at := exchange.Tag{Step: first, Index: w.turn}
	w.turn++
	if _, err := w.Exchange.Gather(ctx, at, nil, nil); err != nil {
		return fmt.Errorf("wait for all nodes to measure what pieces cost: %w", err)
	}
	return nil
}

// during computes while something else goes on, for a while at which all nodes do so.
func (w *weighing) during(ctx context.Context, other func(end time.Time) (int, error)) (n int, err error) {
	if err := w.meet(ctx); err != nil {
		return 0, err
	}
	end := time.Now().Add(taking)
	var failed error
	var done sync.WaitGroup
	done.Go(func() { n, failed = other(end) })
	w.rehearsal.took, w.rehearsal.due, w.until = 0, 0, end
	for err == nil && len(w.acts) > 0 && !w.over() {
		err = w.round(ctx)
	}
	done.Wait()
	if err == nil {
		err = failed
	}
	return n, err
}

// take takes pieces of all others in turn, so many at once, and says how many.
func (w *weighing) take(ctx context.Context, at, size, askers int, end time.Time) (n int, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	nodes := len(w.Work.Nodes)
	for first := range askers {
		all.Go(func() {
			to, taken := make([]byte, size), 0
			var failed error
			for failed == nil && time.Now().Before(end) {
				node := (w.Work.Self + 1 + (first+taken)%(nodes-1)) % nodes
				if failed = w.Exchange.Take(ctx, node, strategy.Control, pieceTag(at), to, nil); failed != nil {
					failed = fmt.Errorf("measure what a piece of node %s costs: %w", w.Work.Nodes[node], failed)
				}
				taken++
			}
			mu.Lock()
			defer mu.Unlock()
			n += taken
			if err == nil {
				err = failed
			}
		})
	}
	all.Wait()
	return n, err
}

// handling is what a byte costs, and a piece whatever it has, by what nodes have found that
// have computed something, on average.
func handling(all []*Timing) (perByte, perPiece float64) {
	nodes, large, small := 0.0, 0.0, 0.0
	for _, of := range all {
		if len(of.Shards) > 0 {
			nodes++
			large, small = large+of.Rest.Burden.Large, small+of.Rest.Burden.Small
		}
	}
	if nodes == 0 {
		return 0, 0
	}
	large, small = max(0, large/nodes), max(0, small/nodes)
	// Neither is less than nothing, nor is a large piece wrong.
	perByte = min(max(0, large-small)/(largePiece-smallPiece), large/largePiece)
	return perByte, large - largePiece*perByte
}
