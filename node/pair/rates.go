package pair

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/cputime"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/mesh"
)

// Rates are how fast two nodes on this machine talk to each other, encrypted. A link
// between machines is no faster. Of a connection to itself a machine has both ends.
type Rates struct {
	Bandwidth float64 // bytes a second
	RoundTrip float64 // seconds of the smallest question, asked after a while
	// Byte and Question are the seconds of processor time that a byte and the smallest
	// question take at both ends together, that one asked after a while: what slept has to
	// be woken.
	Byte, Question float64
}

const (
	questions = 64
	pause     = 4 * time.Millisecond // between questions, in which a node computes
	bytes     = 64 << 20
	piece     = 1 << 20
	streams   = 4
)

// Measure measures the rates. It takes about a second. dir is for files, which it leaves
// there.
func Measure(ctx context.Context, dir, version string) (r Rates, err error) {
	source := make([]byte, piece)
	p, err := Open(dir, version, slog.New(slog.DiscardHandler), func(m *mesh.Mesh) {
		m.HandleBulk(mesh.Shard, func(_ context.Context, r *mesh.Request) error { return r.Reply(r.Count, source[:min(r.Count, piece)]) })
	})
	if err != nil {
		return r, fmt.Errorf("measure this machine's connections: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.trips(ctx, &r); err != nil {
		return r, err
	}
	return r, p.stream(ctx, &r)
}

// ask has one node ask the other for so many bytes.
func (p *Pair) ask(ctx context.Context, dst []byte) error {
	q := mesh.Question{Header: mesh.Header{Kind: mesh.Shard, Count: uint64(len(dst))}, Into: dst, Limit: len(dst), Exact: true}
	_, err := p.B.Fetch(ctx, p.A.ID(), q)
	return err
}

// trips measures questions.
func (p *Pair) trips(ctx context.Context, r *Rates) error {
	dst := make([]byte, 1)
	if err := p.ask(ctx, dst); err != nil { // connects them
		return err
	}
	var trips []time.Duration
	wait := time.NewTimer(pause)
	defer wait.Stop()
	used := cputime.Process()
	for range questions {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		begin := time.Now()
		if err := p.ask(ctx, dst); err != nil {
			return err
		}
		trips = append(trips, time.Since(begin))
		wait.Reset(pause)
	}
	r.RoundTrip, r.Question = stats.Median(trips).Seconds(), (cputime.Process()-used)/questions
	if r.Question <= 0 {
		r.Question = r.RoundTrip
	}
	return nil
}

// stream measures bytes.
func (p *Pair) stream(ctx context.Context, r *Rates) error {
	begin, used := time.Now(), cputime.Process()
	var running sync.WaitGroup
	errs := make([]error, streams)
	for i := range streams {
		running.Go(func() {
			dst := make([]byte, piece)
			for range bytes / piece / streams {
				if errs[i] = p.ask(ctx, dst); errs[i] != nil {
					return
				}
			}
		})
	}
	running.Wait()
	r.Bandwidth, r.Byte = bytes/time.Since(begin).Seconds(), (cputime.Process()-used)/bytes
	if r.Byte <= 0 {
		r.Byte = 1 / r.Bandwidth
	}
	return errors.Join(errs...)
}
