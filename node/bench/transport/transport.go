// Package transport measures what the mesh's transport gives and what a mesh costs,
// beside TLS over TCP and the disk.
package transport

import (
	"context"
	"io"

	"github.com/hopmesh/hopmesh/node/bench"
)

// Measure runs the suite.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	return bench.Measure(ctx, cfg, bench.Suite{Title: "Transport", Parts: []bench.Part{
		{What: "bulk throughput", Measure: Bulk},
		{What: "control round trip", Measure: roundTrip},
		{What: "forming and losing a leader", Measure: form},
		{What: "Raft commit", Measure: commit},
		{What: "idle node", Measure: idle},
	}}, &bench.Report{}, stdout, stderr)
}
