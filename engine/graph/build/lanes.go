package build

import (
	"context"
	"errors"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph/direct"
)

// A lane collects bytes that follow each other in one tensor of one shard.
type lane struct {
	shard int
	base  int64 // of the tensor in the file
	start int64 // of buf in the tensor
	buf   []byte
}

// room is how much the buffer takes, so that the next one begins where the disk may
// be written directly.
func (l *lane) room() int {
	n := cap(l.buf)
	if odd := int((l.base + l.start) % direct.Unit); odd < n {
		n -= odd
	}
	return n
}

// A parcel is a buffer on its way to a file.
type parcel struct {
	shard int
	at    int64
	buf   []byte
}

// A featureWriter takes rows on one goroutine and writes and digests them on
// others. A shard's parcels all take the same way, and so keep their order.
type featureWriter struct {
	b       *builder
	ctx     context.Context // ends with the first failure of a write
	stop    context.CancelCauseFunc
	next    []uint32 // of each shard, the row that is likely to come next
	lanes   []lane   // of each shard the values, then of each the sparse columns
	free    chan []byte
	queues  []chan parcel
	writers sync.WaitGroup
	dense   []float32 // a sparse row that is stored dense
	rounded []uint16
}

func newFeatureWriter(ctx context.Context, b *builder) *featureWriter {
	shards := b.plan.shards
	w := &featureWriter{b: b, next: make([]uint32, shards)}
	w.ctx, w.stop = context.WithCancelCause(ctx)
	values := "features"
	if b.sparseAt != nil {
		values = "features.values"
	}
	for shard, out := range b.outputs {
		w.lanes = append(w.lanes, lane{shard: shard, base: out.place[values]})
	}
	switch {
	case b.sparseAt != nil:
		for shard, out := range b.outputs {
			w.lanes = append(w.lanes, lane{shard: shard, base: out.place["features.indices"]})
			out.rehash = true // two tensors grow at once
		}
	case b.meta.Sparse:
		w.dense = make([]float32, b.meta.Features)
	}
	w.free = make(chan []byte, len(w.lanes)+parcels)
	for range cap(w.free) {
		w.free <- direct.Buffer(b.plan.laneBytes)[:0]
	}
	// Twice as many as compute, since half of them wait for the disk.
	for range 2 * b.plan.workers {
		queue := make(chan parcel, parcels)
		w.queues = append(w.queues, queue)
		w.writers.Go(func() { w.write(queue) })
	}
	return w
}

// parcels is how many may be on their way.
const parcels = 16

// write empties a queue to its end, also after a failure.
func (w *featureWriter) write(queue chan parcel) {
	for p := range queue {
		if w.ctx.Err() == nil {
			if err := w.b.outputs[p.shard].writeAt(p.buf, p.at); err != nil {
				w.stop(err)
			}
		}
		w.free <- p.buf[:0]
	}
}

// put appends bytes that belong at a place of the lane's tensor.
func (w *featureWriter) put(l *lane, at int64, b []byte) error {
	if at != l.start+int64(len(l.buf)) {
		if err := w.flush(l); err != nil {
			return err
		}
		l.start = at
	}
	for len(b) > 0 {
		if l.buf == nil {
			select {
			case l.buf = <-w.free:
			case <-w.ctx.Done():
				return context.Cause(w.ctx)
			}
		}
		n := min(len(b), l.room()-len(l.buf))
		l.buf = append(l.buf, b[:n]...)
		b = b[n:]
		if len(l.buf) == l.room() {
			if err := w.flush(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush sends what a lane holds on its way.
func (w *featureWriter) flush(l *lane) error {
	if len(l.buf) == 0 {
		return nil
	}
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	// All buffers together fit the queues only if the writers keep up: this waits
	// for them, and they never wait for anything but the disk.
	w.queues[l.shard%len(w.queues)] <- parcel{shard: l.shard, at: l.base + l.start, buf: l.buf}
	l.start += int64(len(l.buf))
	l.buf = nil
	return nil
}

// close writes what the lanes still hold, waits for the writers, and says what went
// wrong first.
func (w *featureWriter) close(err error) error {
	for i := range w.lanes {
		if err == nil {
			err = w.flush(&w.lanes[i])
		}
	}
	for _, queue := range w.queues {
		close(queue)
	}
	w.writers.Wait()
	failed := context.Cause(w.ctx)
	w.stop(nil)
	if failed != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return failed
	}
	return err
}
