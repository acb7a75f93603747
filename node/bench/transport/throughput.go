package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/cputime"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/pair"
)

const (
	piece   = 4 << 20 // one stream's payload
	volume  = 192 << 20
	streams = 4
	repeats = 5 // in turn with the baseline; medians count
)

// Bulk fetches pieces of 4 MiB, four at a time into reused buffers, and moves as many
// bytes through one TLS connection. Both ends of either are in this process, so that its
// processor time is that of both.
func Bulk(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
	source := make([]byte, piece)
	p, err := pair.Open(run.Dir, run.Version, run.Log, func(m *mesh.Mesh) {
		m.HandleBulk(mesh.Shard, func(_ context.Context, r *mesh.Request) error { return r.Reply(1, source) })
	})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	client, server, err := p.OverTLS(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer server.Close()

	var ours, theirs rates
	for range repeats {
		if err := ours.move(func() (time.Duration, error) { return fetchAll(ctx, p) }); err != nil {
			return nil, err
		}
		if err := theirs.move(func() (time.Duration, error) { return pump(server, client, source) }); err != nil {
			return nil, err
		}
	}
	const baseline = "TLS 1.3 over TCP"
	return []bench.Figure{
		bench.Against("bulk throughput, 4 MiB streams, 4 at a time", "GB/s", stats.Median(ours.speed), baseline, stats.Median(theirs.speed), bench.Least(0.5)),
		perByte(stats.Median(ours.effort), baseline, stats.Median(theirs.effort)),
	}, nil
}

// rates are how often so many bytes were moved: each time a throughput, in GB/s, and the
// processor time of a byte at both ends together, in ns.
type rates struct{ speed, effort []float64 }

// move moves the volume once more.
func (r *rates) move(how func() (time.Duration, error)) error {
	before := cputime.Process()
	took, err := how()
	if err != nil {
		return err
	}
	r.speed = append(r.speed, volume/1e9/took.Seconds())
	r.effort = append(r.effort, (cputime.Process()-before)*1e9/volume)
	return nil
}

// perByte has its own bar, and not the baseline's.
func perByte(ours float64, baseline string, theirs float64) bench.Figure {
	const most = 5
	f := bench.Beside("processor time of a byte moved, both ends", "ns", ours, baseline, theirs)
	f.Bar, f.Holds = fmt.Sprintf("at most %d ns", most), ours <= most
	return f
}

func fetchAll(ctx context.Context, p *pair.Pair) (time.Duration, error) {
	begin := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, streams)
	for i := range streams {
		wg.Go(func() {
			dst := make([]byte, piece)
			for range volume / piece / streams {
				_, errs[i] = p.B.Fetch(ctx, p.A.ID(), mesh.Question{Header: mesh.Header{Kind: mesh.Shard, Count: 1}, Into: dst, Limit: piece, Exact: true})
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
				done <- fmt.Errorf("write to the baseline: %w", err)
				return
			}
		}
		done <- nil
	}()
	dst := make([]byte, piece)
	for range volume / piece {
		if _, err := io.ReadFull(to, dst); err != nil {
			return 0, fmt.Errorf("read from the baseline: %w", err)
		}
	}
	return time.Since(begin), <-done
}

const (
	turns = 10
	calls = 300 // in each
	small = 64
)

// roundTrip calls a peer that echoes 64 bytes, and does the same over TLS.
func roundTrip(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
	p, err := pair.Open(run.Dir, run.Version, run.Log, func(m *mesh.Mesh) {
		m.Handle("echo", func(_ context.Context, _ string, body []byte) ([]byte, error) { return body, nil })
	})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	client, server, err := p.OverTLS(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	echoed := make(chan error, 1)
	go func() {
		_, err := io.Copy(server, server)
		echoed <- err
	}()
	body := make([]byte, small)
	call := func() error {
		_, err := p.B.Call(ctx, p.A.ID(), "echo", body)
		return err
	}
	baseline := func() error {
		if _, err := client.Write(body); err != nil {
			return fmt.Errorf("write to the baseline: %w", err)
		}
		if _, err := io.ReadFull(client, body); err != nil {
			return fmt.Errorf("read from the baseline: %w", err)
		}
		return nil
	}
	// In turns of many calls: one at a time, each would find the other's caches and
	// sleeping threads.
	var ours, theirs []time.Duration
	for range turns {
		if ours, err = timed(ours, call); err != nil {
			return nil, err
		}
		if theirs, err = timed(theirs, baseline); err != nil {
			return nil, err
		}
	}
	_ = server.Close()
	if err := <-echoed; err != nil && !errors.Is(err, net.ErrClosed) {
		return nil, fmt.Errorf("echo through the baseline: %w", err)
	}
	return []bench.Figure{bench.Against("control round trip, 64 B, p50", "µs", micro(stats.Median(ours)), "TLS 1.3 over TCP", micro(stats.Median(theirs)),
		bench.Most(7))}, nil
}

func timed(all []time.Duration, f func() error) ([]time.Duration, error) {
	for range calls {
		begin := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		all = append(all, time.Since(begin))
	}
	return all, nil
}

func micro(d time.Duration) float64 { return float64(d) / 1e3 }
