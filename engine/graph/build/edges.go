package build

import (
	"context"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// An edgeStream yields edges in batches that are valid until yield returns.
type edgeStream func(ctx context.Context, yield func(graph.EdgeBatch) error) error

const (
	pipeBatch = 1 << 15 // edges
	pipeDepth = 3
)

// pipeMemory returns the memory that a pipe and its stream hold.
func pipeMemory(takers int) uint64 { return uint64(2*pipeDepth+takers) * pipeBatch * 12 }

// pipe runs the stream on one goroutine and take on several others, which it numbers;
// with a single taker batches keep their order. It checks the vertices and the shape of
// each batch. take may change its batch.
func pipe(ctx context.Context, from edgeStream, meta graph.Meta, takers int, take func(taker int, b graph.EdgeBatch) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	full := make(chan graph.EdgeBatch, pipeDepth)
	free := make(chan graph.EdgeBatch, pipeDepth+takers)
	for range cap(free) {
		b := graph.EdgeBatch{Src: make([]uint32, pipeBatch), Dst: make([]uint32, pipeBatch)}
		if meta.Weighted {
			b.Weights = make([]float32, pipeBatch)
		}
		free <- b
	}
	var all sync.WaitGroup
	for taker := range takers {
		all.Go(func() {
			for b := range full {
				err := inRange(b, meta.Vertices)
				if err == nil {
					err = take(taker, b)
				}
				if err != nil {
					stop(err)
					return
				}
				free <- b // never blocks: free has room for all
			}
		})
	}
	err := from(ctx, func(b graph.EdgeBatch) error { return refill(ctx, b, meta.Weighted, free, full) })
	close(full)
	all.Wait()
	if failed := context.Cause(ctx); failed != nil {
		return failed
	}
	return err
}

// refill copies a batch of a source into batches of the pipe.
func refill(ctx context.Context, b graph.EdgeBatch, weighted bool, free, full chan graph.EdgeBatch) error {
	if len(b.Src) != len(b.Dst) || weighted && len(b.Weights) != len(b.Src) {
		return fmt.Errorf("the source yields %d sources, %d destinations and %d weights at once", len(b.Src), len(b.Dst), len(b.Weights))
	}
	for at := 0; at < len(b.Src); {
		var to graph.EdgeBatch
		select {
		case to = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		n := min(pipeBatch, len(b.Src)-at)
		to.Src = append(to.Src[:0], b.Src[at:at+n]...)
		to.Dst = append(to.Dst[:0], b.Dst[at:at+n]...)
		if weighted {
			to.Weights = append(to.Weights[:0], b.Weights[at:at+n]...)
		}
		at += n
		select {
		case full <- to:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func inRange(b graph.EdgeBatch, vertices uint32) error {
	for i, src := range b.Src {
		if dst := b.Dst[i]; src >= vertices || dst >= vertices {
			return fmt.Errorf("an edge leads from vertex %d to %d, and there are %d vertices", src, dst, vertices)
		}
	}
	for i, w := range b.Weights {
		if w-w != 0 {
			return fmt.Errorf("the edge from vertex %d to %d has the weight %v, which is no number to sum", b.Src[i], b.Dst[i], w)
		}
	}
	return nil
}
