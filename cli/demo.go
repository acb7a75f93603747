package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

func demo(run func(context.Context, DemoConfig, io.Writer, io.Writer) error) *cobra.Command {
	var cfg DemoConfig
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Form a mesh on this machine, train on it, and watch it lose its leader",
		Long: "Starts some nodes on loopback in this one process, forms a mesh of them, puts a graph on it, trains a\n" +
			"model by leap and by centric, and kills the leader while it trains once more: the job goes on, to the\n" +
			"same weights. With --strategy pipe or graph a step is the whole graph, by centric too. Leaves nothing behind.",
		Example:           "  hopmesh demo\n  hopmesh demo --nodes 5",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Nodes < 3 || cfg.Nodes > 9 {
				return wrongUsage(cmd, "--nodes %d: the demo kills a leader, which takes 3 nodes, and runs all of them here, 9 at most", cfg.Nodes)
			}
			if cfg.Epochs < 1 || cfg.Epochs > 10_000 {
				return wrongUsage(cmd, "--epochs %d: it takes 1 to 10000", cfg.Epochs)
			}
			if !slices.Contains([]string{"leap", "centric", "p3", "grappa", "pipe", "graph", "auto"}, cfg.Strategy) {
				return wrongUsage(cmd, "--strategy %s: the demo trains by leap, centric, p3, grappa, pipe, graph or auto", cfg.Strategy)
			}
			if !devices.MatchString(cfg.Device) {
				return wrongUsage(cmd, "--device %s: it is none of auto, cpu, cuda or cuda:N", cfg.Device)
			}
			return run(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&cfg.Nodes, "nodes", 3, "how many nodes, `N`")
	cmd.Flags().StringVar(&cfg.Strategy, "strategy", "leap", "train by `NAME`, beside centric: leap, centric, p3, grappa, pipe, graph or auto")
	cmd.Flags().IntVar(&cfg.Epochs, "epochs", 200, "train for `N` epochs")
	cmd.Flags().StringVar(&cfg.Device, "device", "cpu", "`DEVICE` that all nodes compute on: auto, cpu, cuda or cuda:N")
	completeFlag(cmd, "device", []string{"auto", "cpu", "cuda"})
	jsonFlag(cmd, &cfg.JSON)
	return cmd
}
