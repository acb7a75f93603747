package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/spf13/cobra"
)

func bench(run func(context.Context, BenchConfig, io.Writer) error, shaped func(context.Context, ShapedConfig, io.Writer, io.Writer) error, parts, scaleParts []string) *cobra.Command {
	data, cfg := benchSuite(run, cobra.Command{
		Use:   "data",
		Short: "Measure partitioning, importing and placing of graphs",
		Long: "Compares edge cuts with those of METIS (if gpmetis is installed), streaming partitioning within a memory\n" +
			"limit, importing with copying the same bytes, and placing shards with the plain transport. It takes a few\n" +
			"minutes, 4 GB of disk in the folder for temporary files, and 3 GB of memory.",
		Example: "  hopmesh bench data\n  hopmesh bench data --graphs ./graphs --json\n  hopmesh bench data --out docs/results/data.md",
	})
	data.Flags().StringVar(&cfg.Graphs, "graphs", "", "also partition the graphs in NPZ files in `DIR`")
	transport, _ := benchSuite(run, cobra.Command{
		Use:   "transport",
		Short: "Compare the mesh's transport with TLS over TCP",
		Long: "Measures bulk throughput, round trips and commits of the plan on loopback, and compares each with TLS over\n" +
			"TCP or with the disk alone. Also measures how long a mesh takes to form.",
		Example: "  hopmesh bench transport\n  hopmesh bench transport --json",
	})
	kernels, _ := benchSuite(run, cobra.Command{
		Use:   "kernels",
		Short: "Measure matrix products, neighbour means and training steps",
		Long: "Compares matrix products with OpenBLAS (if it and a C compiler are installed) and neighbour means with\n" +
			"random reads of rows; measures training steps and their memory. It takes a few minutes, 1 GB of disk in\n" +
			"the folder for temporary files, and 3 GB of memory.",
		Example: "  hopmesh bench kernels\n  HOPMESH_CPU=avx2 hopmesh bench kernels --json",
	})
	sampler, _ := benchSuite(run, cobra.Command{
		Use:   "sampler",
		Short: "Compare sampling with the same algorithm in C++",
		Long: "Measures how fast neighbours are sampled, and compares it with the same algorithm in C++ (if g++ is\n" +
			"installed), which must sample the same edges.",
		Example: "  hopmesh bench sampler\n  hopmesh bench sampler --json",
	})
	strategies, config := benchSuite(run, cobra.Command{
		Use:   "strategies",
		Short: "Compare the strategies: bytes, and time on networks of chosen rates",
		Long: "Trains the same models with each strategy on several nodes of this machine. It counts the bytes they send;\n" +
			"measures epochs where each node has a network of a chosen rate and a fixed share of the processors (this\n" +
			"needs root on Linux; the head of the table says what was missing); measures the overhead of distribution,\n" +
			"and how soon training continues after a kill; and compares each strategy with its baseline. The part pipe\n" +
			"uses four nodes and eight, whatever --nodes says. All parts but pipe-time together take about 45 minutes,\n" +
			"1 GB of disk in the folder for temporary files, and 2 GB of memory. pipe-time is expected to take an hour\n" +
			"and a half, and 6 GB of disk: name the other parts by --only to leave it out, or some of its graphs by\n" +
			"--pipe-graphs.",
		Example: "  hopmesh bench strategies\n  hopmesh bench strategies --only bytes,time --plot ladder.svg --json\n  hopmesh bench strategies --only grappa\n" +
			"  hopmesh bench strategies --only pipe,pipe-time --plot-pipe pipe.svg",
	})
	strategies.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if config.Nodes < 2 || config.Nodes > 16 {
			return usage.Errorf(cmd, "--nodes %d: choose 2 to 16", config.Nodes)
		}
		if err := knownParts(cmd, config.Only, parts); err != nil {
			return err
		}
		if config.Plot != "" && len(config.Only) > 0 && !slices.Contains(config.Only, "time") {
			return usage.Errorf(cmd, "--plot draws what the part time measures, which --only %s leaves out: leave one of the two out, or add it", strings.Join(config.Only, ","))
		}
		if config.PlotPipe != "" && len(config.Only) > 0 && !slices.Contains(config.Only, "pipe-time") {
			return usage.Errorf(cmd, "--plot-pipe draws what the part pipe-time measures, which --only %s leaves out: leave one of the two out, or add it", strings.Join(config.Only, ","))
		}
		return nil
	}
	strategies.Flags().IntVar(&config.Nodes, "nodes", 4, "how many nodes train a job, `N` from 2 to 16; targets are for 4")
	strategies.Flags().StringSliceVar(&config.Only, "only", nil, "measure only these parts, `PART,PART` from "+strings.Join(parts, ", "))
	usage.CompleteFlag(strategies, "only", parts)
	strategies.Flags().StringSliceVar(&config.PipeGraphs, "pipe-graphs", nil, "time pipe on these graphs alone, `GRAPH,GRAPH`, such as squirrel")
	strategies.Flags().StringVar(&config.Plot, "plot", "", "plot the ablation of leap into an SVG `FILE`")
	strategies.Flags().StringVar(&config.PlotPipe, "plot-pipe", "", "plot the epoch times of pipe and graph into an SVG `FILE`")
	return usage.Group(cobra.Command{
		Use:     "bench",
		Short:   "Measure this machine, each figure beside its upper bound",
		Long:    "Measures this machine. Each figure is printed beside the upper bound measured in the same run.",
		Example: "  hopmesh bench kernels\n  hopmesh bench data --graphs ./graphs",
	}, transport, data, kernels, sampler, strategies, benchScale(run, scaleParts), benchForecast(run), benchKills(run), benchSoak(run), benchSpeedup(run), benchNode(shaped))
}

// benchScale returns the command that measures memory.
func benchScale(run func(context.Context, BenchConfig, io.Writer) error, parts []string) *cobra.Command {
	cmd, cfg := benchSuite(run, cobra.Command{
		Use:   "scale",
		Short: "Measure the memory of daemons for each strategy and number of nodes",
		Long: "Trains on 1 to 8 daemons of this machine and samples their memory: what each strategy takes, whether\n" +
			"--memory bounds it, whether it falls with nodes and is given back. Each cell is printed beside its bar. All\n" +
			"parts take about an hour on two cores, 5 GB of disk and up to 16 GB of memory; the command says more\n" +
			"before it begins. Finished cells are kept, so that it goes on where it stopped. The parts papers and links\n" +
			"are measured only if they are asked for.",
		Example: "  hopmesh bench scale --quick\n  hopmesh bench scale --only memory --rows leap,pipe --json\n  hopmesh bench scale --out docs/results/scale.md",
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return knownParts(cmd, cfg.Only, parts) }
	cmd.Flags().StringSliceVar(&cfg.Only, "only", nil, "measure only these parts, `PART,PART` from "+strings.Join(parts, ", "))
	usage.CompleteFlag(cmd, "only", parts)
	keptFlags(cmd, cfg, "cells", "keep finished cells and prepared data in `DIR`", "use graphs of a twentieth of the size and one or two nodes, to try it out")
	cmd.Flags().Float64Var(&cfg.Scale.Papers, "papers", 0.1, "size of the graph of the part papers, as a share `X` of ogbn-papers100M")
	return cmd
}

// benchForecast returns the command that compares forecasts with jobs.
func benchForecast(run func(context.Context, BenchConfig, io.Writer) error) *cobra.Command {
	cmd, cfg := benchSuite(run, cobra.Command{
		Use:   "forecast",
		Short: "Compare forecasts of jobs with what these take",
		Long: "Starts 2, 4 and 8 nodes on this machine, each behind a link of 400 Mbit/s and with its share of the\n" +
			"processors (needs root on Linux), has them train jobs of all strategies and then forecast these. Each cell is\n" +
			"printed beside its bars. It takes about half an hour; finished cells are kept, so that it goes on where it\n" +
			"stopped.",
		Example: "  hopmesh bench forecast --quick\n  hopmesh bench forecast --rows pipe,graph --json\n  hopmesh bench forecast --out docs/results/forecasts.md",
	})
	keptFlags(cmd, cfg, "cells", "keep finished cells in `DIR`", "use graphs of an eighth of the size and two nodes, to try it out")
	return cmd
}

// benchKills returns the command that kills nodes of jobs.
func benchKills(run func(context.Context, BenchConfig, io.Writer) error) *cobra.Command {
	cmd, cfg := benchSuite(run, cobra.Command{
		Use:   "kills",
		Short: "Measure what the loss of a node costs a job",
		Long: "Starts three nodes on this machine, trains jobs of every strategy, and ends a node of each at a random\n" +
			"moment, with kill -9 or SIGTERM. It prints how many steps are lost, when the others notice and go on, and\n" +
			"whether they come to the same weights. It takes about half an hour; finished events are kept, so that it goes\n" +
			"on where it stopped.",
		Example: "  hopmesh bench kills --quick\n  hopmesh bench kills --rows pipe --json\n  hopmesh bench kills --out docs/results/kills.md",
	})
	keptFlags(cmd, cfg, "events", "keep finished events in `DIR`", "one event of each kind, to try it out")
	return cmd
}

// benchSoak returns the command that has a mesh at work for hours.
func benchSoak(run func(context.Context, BenchConfig, io.Writer) error) *cobra.Command {
	cmd, cfg := benchSuite(run, cobra.Command{
		Use:   "soak",
		Short: "Measure whether a mesh at work goes on taking what it takes",
		Long: "Starts three nodes on this machine that train small jobs of all strategies, make and import graphs, and see\n" +
			"a fourth join and leave, again and again. It prints whether memory, goroutines, descriptors and disk of the\n" +
			"nodes grow.",
		Example: "  hopmesh bench soak --quick\n  hopmesh bench soak --minutes 30 --json\n  hopmesh bench soak --out docs/results/soak.md",
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cfg.Minutes < 1 || cfg.Minutes > 10_000 {
			return usage.Errorf(cmd, "--minutes %d: choose 1 to 10000", cfg.Minutes)
		}
		return nil
	}
	cmd.Flags().IntVar(&cfg.Minutes, "minutes", 120, "how long, in `MINUTES`")
	cmd.Flags().BoolVar(&cfg.Scale.Quick, "quick", false, "a few rounds, to try it out")
	return cmd
}

// benchSpeedup returns the command that compares several nodes with one.
func benchSpeedup(run func(context.Context, BenchConfig, io.Writer) error) *cobra.Command {
	cmd, cfg := benchSuite(run, cobra.Command{
		Use:   "speedup",
		Short: "Measure how much faster several nodes are than one",
		Long: "Starts 1, 2 and 4 nodes on this machine, each with 0.45 of a core, behind links of 400 Mbit/s and without a\n" +
			"bound (needs root on Linux), and trains GraphSAGE of four sizes on each, with the settings that a job has by\n" +
			"default. Beside each time stands the most that could come out. Also where nodes keep a quarter of the rows, eight\n" +
			"nodes with half the share, and grappa beside itself. It takes about 45 minutes.",
		Example: "  hopmesh bench speedup --quick\n  hopmesh bench speedup --json\n  hopmesh bench speedup --out docs/results/speedup.md",
	})
	cmd.Flags().BoolVar(&cfg.Scale.Quick, "quick", false, "a graph of a tenth of the size, to try it out")
	return cmd
}

// keptFlags adds the flags of a suite that keeps what it has finished and goes on from there.
func keptFlags(cmd *cobra.Command, cfg *BenchConfig, what, dir, quick string) {
	cmd.Flags().StringVar(&cfg.Scale.Dir, "dir", "", dir+" (default: in the user's cache)")
	cmd.Flags().StringVar(&cfg.Scale.Rows, "rows", "", "measure only "+what+" with one of these in their name, `TEXT,TEXT`")
	cmd.Flags().BoolVar(&cfg.Scale.Quick, "quick", false, quick)
	cmd.Flags().BoolVar(&cfg.Scale.Show, "show", false, "measure nothing, print the "+what+" that are kept")
	cmd.Flags().BoolVar(&cfg.Scale.Older, "older", false, "also take "+what+" that other versions of this program have measured")
}

// knownParts returns an error unless a suite has all parts that are asked for.
func knownParts(cmd *cobra.Command, only, parts []string) error {
	for _, name := range only {
		if !slices.Contains(parts, name) {
			return usage.Errorf(cmd, "--only %s: there is no such part: choose from %s", name, strings.Join(parts, ", "))
		}
	}
	return nil
}

// benchSuite returns the command of the suite that has its name.
func benchSuite(run func(context.Context, BenchConfig, io.Writer) error, c cobra.Command) (*cobra.Command, *BenchConfig) {
	cfg := &BenchConfig{Suite: c.Use}
	c.Args, c.ValidArgsFunction = usage.NoArgs, cobra.NoFileCompletions
	c.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), *cfg, cmd.OutOrStdout()) }
	daemon.JSONFlag(&c, &cfg.JSON)
	c.Flags().StringVar(&cfg.Out, "out", "", "also write the result into a Markdown `FILE`, with the machine and the date")
	return &c, cfg
}

// benchNode returns a hidden command: an agent with a slow socket, for benchmarks on machines
// that can't limit the rate of a network.
func benchNode(run func(context.Context, ShapedConfig, io.Writer, io.Writer) error) *cobra.Command {
	var shaped ShapedConfig
	cmd := agent(func(ctx context.Context, cfg AgentConfig, stdout, stderr io.Writer) error {
		shaped.AgentConfig = cfg
		return run(ctx, shaped, stdout, stderr)
	})
	cmd.Use = "node --data-dir DIR [--rate BITS] [--delay D] [AGENT FLAG]..."
	cmd.Short = "Run a node whose socket has a rate and a delay"
	cmd.Long = "Runs a node as `hopmesh agent` does, whose packets are sent at a limited rate and with a delay. Benchmarks\n" +
		"use it where this machine can't limit the rate of a network."
	cmd.Example = "  hopmesh bench node --data-dir ./n1 --bootstrap --rate 100000000 --delay 1ms"
	cmd.Hidden = true
	cmd.Flags().Uint64Var(&shaped.Rate, "rate", 0, "`BITS` a second to send at most; 0: no limit")
	cmd.Flags().DurationVar(&shaped.Delay, "delay", 0, "delay `D` of each packet")
	return cmd
}
