package baseline

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A worker is one thread of ours.
type worker struct {
	sampler *sample.Sampler
	batch   sample.Batch
	edges   uint64
	sum     uint64
	err     error
	_       [128]byte // apart from the next
}

// Ours does the work with hopmesh's sampler.
func Ours(t *sample.Topology, work Work) (Result, error) {
	workers := make([]worker, work.Threads)
	for i := range workers {
		workers[i].sampler = sample.New(t, sample.Options{Fanouts: work.Fanouts, Seed: work.Seed})
	}
	if err := pass(workers, work, true); err != nil {
		return Result{}, err
	}
	start, used := time.Now(), cpuSeconds()
	err := pass(workers, work, false)
	r := Result{Seconds: time.Since(start).Seconds(), CPU: cpuSeconds() - used}
	for i := range workers {
		r.Edges += workers[i].edges
		r.Checksum += workers[i].sum
	}
	return r, err
}

// cpuSeconds is how long this process has computed.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// pass draws all batches, which the workers take in turn.
func pass(workers []worker, work Work, check bool) error {
	var next atomic.Int64
	var running sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		w.edges = 0
		running.Go(func() {
			for w.err == nil {
				step := int(next.Add(1)) - 1
				first := step * work.Batch
				if first >= len(work.Roots) {
					return
				}
				w.err = w.sampler.Sample(context.Background(), &w.batch, work.Epoch, uint64(step), work.Roots[first:min(first+work.Batch, len(work.Roots))])
				for i := range w.batch.Blocks {
					w.edges += uint64(w.batch.Blocks[i].Entries())
				}
				if check {
					w.sum += checksum(&w.batch, uint64(step))
				}
			}
		})
	}
	running.Wait()
	for i := range workers {
		if err := workers[i].err; err != nil {
			return err
		}
	}
	return nil
}

// checksum is of the edges of a batch, in any order.
func checksum(b *sample.Batch, step uint64) uint64 {
	sum := uint64(0)
	for i := range b.Blocks {
		block := &b.Blocks[i]
		hop := keyed.Key(0).With(step).With(uint64(len(b.Blocks) - 1 - i))
		for r := range block.Rows {
			target := hop.With(uint64(block.Vertices[r]))
			for _, u := range block.Indices[block.Indptr[r]:block.Indptr[r+1]] {
				sum += uint64(target.With(uint64(block.Vertices[u])))
			}
		}
	}
	return sum
}
