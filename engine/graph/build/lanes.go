package build

import (
	"context"
	"errors"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph/direct"
)

// A lane buffers consecutive bytes of one tensor of one shard.
type lane struct {
	shard int
	base  int64 // offset of the tensor in the file
	start int64 // offset of buf in the tensor
	buf   []byte
}

// room returns how much to buffer, so that the next buffer begins where direct writes are
// possible.
func (l *lane) room() int {
	n := cap(l.buf)
	if odd := int((l.base + l.start) % direct.Unit); odd < n {
		n -= odd
	}
	return n
}

// A parcel is a buffer waiting to be written to a file.
type parcel struct {
	shard int
	at    int64
	buf   []byte
}

// A featureWriter takes rows on one goroutine and writes and hashes them on others. A
// shard's parcels all go through the same queue, and so keep their order.
type featureWriter struct {
	b       *builder
	ctx     context.Context // canceled by the first failed write
	stop    context.CancelCauseFunc
	next    []uint32 // of each shard, the row expected next
	lanes   []lane   // the values of each shard, then the sparse columns of each
	free    chan []byte
	queues  []chan parcel
	writers sync.WaitGroup
	dense   []float32 // a sparse row expanded to a dense one
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
	own := 0
	for shard, out := range b.outputs {
		w.lanes = append(w.lanes, lane{shard: shard})
		if out != nil { // else another node makes the shard
			w.lanes[shard].base = out.place[values]
			own++
		}
	}
	switch {
	case b.sparseAt != nil:
		for shard, out := range b.outputs {
			w.lanes = append(w.lanes, lane{shard: shard, base: out.place["features.indices"]})
			out.rehash = true // two tensors grow at once, so the digest is computed at the end
		}
	case b.meta.Sparse:
		w.dense = make([]float32, b.meta.Features)
	}
	w.free = make(chan []byte, own+len(w.lanes)-shards+parcels)
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

// parcels bounds the number of parcels in flight.
const parcels = 16

// write drains a queue to its end, even after a failure.
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

// put appends bytes that belong at the given place of the lane's tensor.
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

// flush sends a lane's buffer to its writer.
func (w *featureWriter) flush(l *lane) error {
	if len(l.buf) == 0 {
		return nil
	}
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	// The queues hold all buffers only if the writers keep up. This waits for the
	// writers, which never wait for anything but the disk.
	w.queues[l.shard%len(w.queues)] <- parcel{shard: l.shard, at: l.base + l.start, buf: l.buf}
	l.start += int64(len(l.buf))
	l.buf = nil
	return nil
}

// close writes what the lanes still hold, waits for the writers and returns the first
// error.
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
