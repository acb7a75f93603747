package pair

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/mesh"
)

// Rates returns how many bytes a second go between two nodes on this machine, encrypted,
// and the seconds of the smallest question: a link between machines is no faster. Both
// ends share this machine's processors, so bytes that only come are faster. It takes
// about a second. dir is for files, which it leaves there.
func Rates(ctx context.Context, dir, version string) (bandwidth, roundTrip float64, err error) {
	const (
		questions = 200
		bytes     = 64 << 20
		piece     = 4 << 20
		streams   = 4
	)
	source := make([]byte, piece)
	p, err := Open(dir, version, slog.New(slog.DiscardHandler), func(m *mesh.Mesh) {
		m.HandleBulk(mesh.Shard, func(_ context.Context, r *mesh.Request) error { return r.Reply(r.Count, source[:min(r.Count, piece)]) })
	})
	if err != nil {
		return 0, 0, fmt.Errorf("measure this machine's connections: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	ask := func(dst []byte) error {
		q := mesh.Question{Header: mesh.Header{Kind: mesh.Shard, Count: uint64(len(dst))}, Into: dst, Limit: len(dst), Exact: true}
		_, err := p.B.Fetch(ctx, p.A.ID(), q)
		return err
	}
	var trips []time.Duration
	for range questions {
		begin := time.Now()
		if err := ask(make([]byte, 1)); err != nil {
			return 0, 0, err
		}
		trips = append(trips, time.Since(begin))
	}
	begin := time.Now()
	var running sync.WaitGroup
	errs := make([]error, streams)
	for i := range streams {
		running.Go(func() {
			dst := make([]byte, piece)
			for range bytes / piece / streams {
				if errs[i] = ask(dst); errs[i] != nil {
					return
				}
			}
		})
	}
	running.Wait()
	return bytes / time.Since(begin).Seconds(), stats.Median(trips).Seconds(), errors.Join(errs...)
}
