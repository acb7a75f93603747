package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// ShapedConfig is what `hopmesh bench node` was told.
type ShapedConfig struct {
	AgentConfig
	Rate  uint64 // bits a second that leave its socket; 0: no bound
	Delay time.Duration
}

// benchNode is an agent whose own socket is as slow as a network would be, where the
// machine can't make one. Programs start it, and people don't.
func benchNode(run func(context.Context, ShapedConfig, io.Writer, io.Writer) error) *cobra.Command {
	var shaped ShapedConfig
	cmd := agent(func(ctx context.Context, cfg AgentConfig, stdout, stderr io.Writer) error {
		shaped.AgentConfig = cfg
		return run(ctx, shaped, stdout, stderr)
	})
	cmd.Use = "node --data-dir DIR [--rate BITS] [--delay D] [AGENT FLAG]..."
	cmd.Short = "Run a node whose socket keeps a rate and a delay"
	cmd.Long = "Runs a node as `hopmesh agent` does, whose packets leave at a rate and with a delay. Benchmarks start it\n" +
		"where this machine can't shape a network itself."
	cmd.Example = "  hopmesh bench node --data-dir ./n1 --bootstrap --rate 100000000 --delay 1ms"
	cmd.Hidden = true
	cmd.Flags().Uint64Var(&shaped.Rate, "rate", 0, "`BITS` a second that leave; 0: no bound")
	cmd.Flags().DurationVar(&shaped.Delay, "delay", 0, "what each packet waits for before it leaves, `D`")
	return cmd
}
