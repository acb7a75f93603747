package cli

import (
	"context"
	"io"
	"slices"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/spf13/cobra"
)

func demo(run func(context.Context, DemoConfig, io.Writer, io.Writer) error, strategy string, all []string) *cobra.Command {
	// The demo shows that a job comes to the same weights though a node dies. One node
	// would train alone, and local's weights depend on how many nodes there are.
	strategies := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "single" || s == "local" })
	var cfg DemoConfig
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Form a mesh on this machine, train on it, and kill its leader",
		Long: "Starts several nodes on loopback in this process, forms a mesh, imports a graph, trains a model with the\n" +
			"strategy and with centric, and kills the leader while it trains once more: the job continues, to the same\n" +
			"weights. With --strategy pipe or graph a step is the whole graph, with centric too. Leaves nothing behind.",
		Example:           "  hopmesh demo\n  hopmesh demo --nodes 5",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Nodes < 3 || cfg.Nodes > 9 {
				return usage.Errorf(cmd, "--nodes %d: choose 3 to 9, as the demo kills a leader and runs all nodes on this machine", cfg.Nodes)
			}
			if cfg.Epochs < 1 || cfg.Epochs > 10_000 {
				return usage.Errorf(cmd, "--epochs %d: choose 1 to 10000", cfg.Epochs)
			}
			if !slices.Contains(strategies, cfg.Strategy) {
				return usage.Errorf(cmd, "--strategy %s: choose %s", cfg.Strategy, usage.OneOf(strategies))
			}
			if !devices.MatchString(cfg.Device) {
				return usage.Errorf(cmd, "--device %s: choose auto, cpu, cuda or cuda:N", cfg.Device)
			}
			return run(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&cfg.Nodes, "nodes", 3, "number of nodes, `N`")
	cmd.Flags().StringVar(&cfg.Strategy, "strategy", strategy, "strategy `NAME` to compare with centric: "+usage.OneOf(strategies))
	usage.CompleteFlag(cmd, "strategy", strategies)
	cmd.Flags().IntVar(&cfg.Epochs, "epochs", 200, "train for `N` epochs")
	cmd.Flags().StringVar(&cfg.Device, "device", "cpu", "`DEVICE` that all nodes compute on: auto, cpu, cuda or cuda:N")
	usage.CompleteFlag(cmd, "device", []string{"auto", "cpu", "cuda"})
	daemon.JSONFlag(cmd, &cfg.JSON)
	return cmd
}

func doctor(run func(context.Context, DoctorConfig, io.Writer) error) *cobra.Command {
	var cfg DoctorConfig
	cmd := &cobra.Command{
		Use:   "doctor [HOST:PORT]",
		Short: "Check this machine and the way to another node",
		Long: "Checks this machine: kernel, UDP buffer sizes, GPU. With HOST:PORT of a running agent, also checks both\n" +
			"directions of the network, the clocks and the versions. The exit code is 1 if something keeps a node from\n" +
			"working.",
		Example:           "  hopmesh doctor\n  hopmesh doctor 10.0.0.1:7946",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage.OneArg("HOST:PORT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				cfg.Peer = args[0]
			}
			w := cmd.OutOrStdout()
			if !cfg.JSON {
				w = output.Plain(w) // the peer is another machine
			}
			return run(cmd.Context(), cfg, w)
		},
	}
	cmd.Flags().StringVar(&cfg.Listen, "listen", defaultListen, "the UDP address, `IP:PORT`, that this machine's agent has or will have")
	daemon.JSONFlag(cmd, &cfg.JSON)
	return cmd
}

func recovery(run func(context.Context, RecoverConfig, io.Writer) error) *cobra.Command {
	var cfg RecoverConfig
	cmd := &cobra.Command{
		Use:   "recover --data-dir DIR --voters FILE",
		Short: "Restore a mesh that lost most of its voters for good",
		Long: "Restores a mesh that lost more than half of its voters for good. If they can come back, start them\n" +
			"instead.\n\n" +
			"Stop the agents of all survivors. Write the ids of the new voters into a file, one per line. Run this\n" +
			"command on each survivor with the same file; then start the agents. The plan of a survivor becomes the\n" +
			"plan, even if the nodes had not agreed on all of it.",
		Example:           "  hopmesh recover --data-dir /var/lib/hopmesh --voters voters.txt",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// No default for either: this rewrites the state of the node.
			if cfg.DataDir == "" {
				return usage.Errorf(cmd, "`hopmesh recover` needs --data-dir DIR")
			}
			if cfg.VotersFile == "" {
				return usage.Errorf(cmd, "`hopmesh recover` needs --voters FILE, with the ids of the new voters, one per line")
			}
			return run(cmd.Context(), cfg, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&cfg.DataDir, "data-dir", "", "the node's data `DIR`")
	cmd.Flags().StringVar(&cfg.VotersFile, "voters", "", "the `FILE` with the ids of the new voters, one per line")
	return cmd
}
