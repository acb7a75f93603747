package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
)

const (
	turns = 10
	calls = 300 // in each
	small = 64
)

// roundTrip calls a peer that echoes 64 bytes, and does the same over TLS.
func (b *bench) roundTrip(ctx context.Context) ([]Figure, error) {
	p, err := openPair(b, "roundtrip", func(m *mesh.Mesh) {
		m.Handle("echo", func(_ context.Context, _ string, body []byte) ([]byte, error) { return body, nil })
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
	echoed := make(chan error, 1)
	go func() {
		_, err := io.Copy(server, server)
		echoed <- err
	}()
	body := make([]byte, small)
	call := func() error {
		_, err := p.b.Call(ctx, p.a.ID(), "echo", body)
		return err
	}
	yardstick := func() error {
		if _, err := client.Write(body); err != nil {
			return fmt.Errorf("write to the yardstick: %w", err)
		}
		if _, err := io.ReadFull(client, body); err != nil {
			return fmt.Errorf("read from the yardstick: %w", err)
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
		if theirs, err = timed(theirs, yardstick); err != nil {
			return nil, err
		}
	}
	_ = server.Close()
	if err := <-echoed; err != nil && !errors.Is(err, net.ErrClosed) {
		return nil, fmt.Errorf("echo the yardstick: %w", err)
	}
	return []Figure{against("control round trip, 64 B, p50", "µs", micro(median(ours)), "TLS 1.3 over TCP", micro(median(theirs)),
		"at most 7x", func(r float64) bool { return r <= 7 })}, nil
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
