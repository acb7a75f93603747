package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func bench(run func(context.Context, BenchConfig, io.Writer) error, shaped func(context.Context, ShapedConfig, io.Writer, io.Writer) error, parts []string) *cobra.Command {
	data, cfg := benchSuite(run, cobra.Command{
		Use:   "data",
		Short: "Measure how graphs come in: cuts, imports, placement",
		Long: "Measures cuts beside those of METIS (where gpmetis is installed), cutting in a stream within a bound of\n" +
			"memory, importing beside copying the same bytes, and placing shards beside the transport. It takes some\n" +
			"minutes, 4 GB of disk in the folder for temporary files, and 3 GB of memory.",
		Example: "  hopmesh bench data\n  hopmesh bench data --graphs ./graphs --json",
	})
	data.Flags().StringVar(&cfg.Graphs, "graphs", "", "a `DIR` with graphs in NPZ files to cut, beside made up ones")
	transport, _ := benchSuite(run, cobra.Command{
		Use:   "transport",
		Short: "Measure the mesh's transport beside TLS over TCP",
		Long: "Measures, on loopback, bulk throughput, round trips and commits of the plan, each beside what TLS over\n" +
			"TCP or the disk alone does here; and how long a mesh takes to form.",
		Example: "  hopmesh bench transport\n  hopmesh bench transport --json",
	})
	kernels, _ := benchSuite(run, cobra.Command{
		Use:   "kernels",
		Short: "Measure the arithmetic of layers: products, means of neighbours, steps of training",
		Long: "Measures products of matrices beside OpenBLAS' (where it and a C compiler are installed), means of\n" +
			"neighbours' rows beside how fast this machine reads rows at random, and steps of training with the memory\n" +
			"they take. It takes some minutes, 1 GB of disk in the folder for temporary files, and 3 GB of memory.",
		Example: "  hopmesh bench kernels\n  HOPMESH_CPU=avx2 hopmesh bench kernels --json",
	})
	sampler, _ := benchSuite(run, cobra.Command{
		Use:   "sampler",
		Short: "Measure sampling beside the same algorithm in C++",
		Long: "Measures how fast neighbours are drawn, beside the same algorithm in C++ (where g++ is installed), which\n" +
			"must draw the same edges.",
		Example: "  hopmesh bench sampler\n  hopmesh bench sampler --json",
	})
	strategies, told := benchSuite(run, cobra.Command{
		Use:   "strategies",
		Short: "Compare how nodes share a job: bytes, and time on a network of a chosen rate",
		Long: "Trains the same models with each strategy on nodes of this machine: counts what they send each other; takes\n" +
			"the time of epochs where each node has a network of a chosen rate and a fixed share of the processors (which\n" +
			"needs root on Linux; the head of the table says what could not be had); measures what sharing costs, and how\n" +
			"soon training goes on after a kill; and times what trains otherwise beside what it is to be faster than. The\n" +
			"part pipe does so on four nodes and on eight, whatever --nodes says. All parts together take some three\n" +
			"quarters of an hour, 1 GB of disk in the folder for temporary files, and 2 GB of memory.",
		Example: "  hopmesh bench strategies\n  hopmesh bench strategies --only bytes,time --plot ladder.svg --json\n  hopmesh bench strategies --only grappa\n" +
			"  hopmesh bench strategies --only pipe --plot-pipe pipe.svg",
	})
	strategies.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if told.Nodes < 2 || told.Nodes > 16 {
			return wrongUsage(cmd, "--nodes %d: choose 2 to 16", told.Nodes)
		}
		for _, name := range told.Only {
			if !slices.Contains(parts, name) {
				return wrongUsage(cmd, "--only %s: there is no such part: choose of %s", name, strings.Join(parts, ", "))
			}
		}
		if told.Plot != "" && len(told.Only) > 0 && !slices.Contains(told.Only, "time") {
			return wrongUsage(cmd, "--plot draws what the part time measures, which --only %s leaves out: leave one of the two out, or add it", strings.Join(told.Only, ","))
		}
		if told.PlotPipe != "" && len(told.Only) > 0 && !slices.Contains(told.Only, "pipe") {
			return wrongUsage(cmd, "--plot-pipe draws what the part pipe measures, which --only %s leaves out: leave one of the two out, or add it", strings.Join(told.Only, ","))
		}
		return nil
	}
	strategies.Flags().IntVar(&told.Nodes, "nodes", 4, "how many nodes share a job, `N` from 2 to 16; bars are those of 4")
	strategies.Flags().StringSliceVar(&told.Only, "only", nil, "measure these parts only, `PART,PART` of "+strings.Join(parts, ", "))
	completeFlag(strategies, "only", parts)
	strategies.Flags().StringVar(&told.Plot, "plot", "", "draw LeapGNN's ladder into an SVG `FILE`")
	strategies.Flags().StringVar(&told.PlotPipe, "plot-pipe", "", "draw the times of pipe beside graph's into an SVG `FILE`")
	return group(cobra.Command{
		Use:     "bench",
		Short:   "Measure this machine, each figure beside its ceiling",
		Long:    "Measures this machine. Each figure stands beside the ceiling measured in the same run.",
		Example: "  hopmesh bench kernels\n  hopmesh bench data --graphs ./graphs",
	}, transport, data, kernels, sampler, strategies, benchNode(shaped))
}

// benchSuite makes the command of one suite, which is what it is called.
func benchSuite(run func(context.Context, BenchConfig, io.Writer) error, c cobra.Command) (*cobra.Command, *BenchConfig) {
	cfg := &BenchConfig{Suite: c.Use}
	c.Args, c.ValidArgsFunction = noArgs, cobra.NoFileCompletions
	c.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), *cfg, cmd.OutOrStdout()) }
	jsonFlag(&c, &cfg.JSON)
	return &c, cfg
}
