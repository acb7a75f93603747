package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
)

const (
	piece   = 4 << 20 // one stream's payload
	volume  = 192 << 20
	streams = 4
	repeats = 5 // interleaved with the yardstick; medians count
)

// bulk moves pieces of 4 MiB by Fetch, four at a time into reused buffers, and
// the same volume through one TLS connection.
func (b *bench) bulk(ctx context.Context) ([]Figure, error) {
	source := make([]byte, piece)
	p, err := openPair(b, "bulk", func(m *mesh.Mesh) {
		m.HandleBulk(mesh.Shard, func(_ context.Context, r *mesh.Request) error { return r.Reply(1, source) })
	})
	if err != nil {
		return nil, err
	}
	defer p.close()
	client, server, err := p.overTLS(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer server.Close()

	var ours, theirs []float64
	for range repeats {
		took, err := p.fetchAll(ctx)
		if err != nil {
			return nil, err
		}
		ours = append(ours, volume/1e9/took.Seconds())
		if took, err = pump(server, client, source); err != nil {
			return nil, err
		}
		theirs = append(theirs, volume/1e9/took.Seconds())
	}
	return []Figure{against("bulk throughput, 4 MiB streams, 4 at a time", "GB/s", median(ours), "TLS 1.3 over TCP", median(theirs),
		"at least 0.2x", func(r float64) bool { return r >= 0.2 })}, nil
}

func (p *pair) fetchAll(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, streams)
	for i := range streams {
		wg.Go(func() {
			dst := make([]byte, piece)
			for range volume / piece / streams {
				_, errs[i] = p.b.Fetch(ctx, p.a.ID(), mesh.Question{Header: mesh.Header{Kind: mesh.Shard, Count: 1}, Into: dst, Limit: piece, Exact: true})
				if errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begin), errors.Join(errs...)
}

// pump writes the volume on one end and reads it on the other.
func pump(from io.Writer, to io.Reader, source []byte) (time.Duration, error) {
	begin := time.Now()
	done := make(chan error, 1)
	go func() {
		for range volume / piece {
			if _, err := from.Write(source); err != nil {
				done <- fmt.Errorf("write to the yardstick: %w", err)
				return
			}
		}
		done <- nil
	}()
	dst := make([]byte, piece)
	for range volume / piece {
		if _, err := io.ReadFull(to, dst); err != nil {
			return 0, fmt.Errorf("read from the yardstick: %w", err)
		}
	}
	return time.Since(begin), <-done
}

func median[T float64 | time.Duration](v []T) T {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
