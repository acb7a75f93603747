package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/cli"
	clioutput "github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/train"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/cputime"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/data"
	"github.com/hopmesh/hopmesh/node/bench/forecast"
	"github.com/hopmesh/hopmesh/node/bench/kernels"
	"github.com/hopmesh/hopmesh/node/bench/kills"
	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/bench/scale"
	"github.com/hopmesh/hopmesh/node/bench/soak"
	"github.com/hopmesh/hopmesh/node/bench/speedup"
	"github.com/hopmesh/hopmesh/node/bench/strategies"
	"github.com/hopmesh/hopmesh/node/bench/transport"
	"github.com/hopmesh/hopmesh/node/demo"
	"github.com/hopmesh/hopmesh/node/doctor"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
)

// local returns the commands that run in this process instead of in a daemon.
func local(version string) cli.Local {
	return cli.Local{
		Agent: func(ctx context.Context, cfg cli.AgentConfig, stdout, stderr io.Writer) error {
			if err := instructions(); err != nil {
				return err
			}
			return agent(ctx, cfg, nil, version, stdout, stderr)
		},
		Shaped: func(ctx context.Context, cfg cli.ShapedConfig, stdout, stderr io.Writer) error {
			if err := instructions(); err != nil {
				return err
			}
			return shaped(ctx, cfg, version, stdout, stderr)
		},
		Demo: func(ctx context.Context, cfg cli.DemoConfig, stdout, stderr io.Writer) error {
			if err := instructions(); err != nil {
				return err
			}
			return demo.Run(ctx, demo.Config{Nodes: cfg.Nodes, Strategy: cfg.Strategy, Epochs: cfg.Epochs, Device: cfg.Device, JSON: cfg.JSON, Version: version}, stdout, stderr)
		},
		Bench: func(ctx context.Context, cfg cli.BenchConfig, stdout io.Writer) error {
			if err := instructions(); err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			suite := map[string]func(context.Context, bench.Config, io.Writer, io.Writer) error{
				"transport": transport.Measure, "data": data.Measure, "kernels": kernels.Measure, "sampler": kernels.Sampler,
				"strategies": strategies.Measure, "scale": scale.Measure, "forecast": forecast.Measure, "kills": kills.Measure, "soak": soak.Measure,
				"speedup": speedup.Measure,
			}[cfg.Suite]
			return suite(ctx, bench.Config{
				JSON: cfg.JSON, Out: cfg.Out, Version: version, Program: program, Graphs: cfg.Graphs, Nodes: cfg.Nodes, Plot: cfg.Plot, PlotPipe: cfg.PlotPipe, PipeGraphs: cfg.PipeGraphs, Only: cfg.Only,
				Scale: bench.ScaleConfig(cfg.Scale), Minutes: cfg.Minutes,
			}, stdout, os.Stderr)
		},
		Doctor: func(ctx context.Context, cfg cli.DoctorConfig, stdout io.Writer) error {
			return doctor.Run(ctx, doctor.Config{Peer: cfg.Peer, Listen: cfg.Listen, Version: version, JSON: cfg.JSON}, stdout)
		},
		Recover: func(_ context.Context, cfg cli.RecoverConfig, stdout io.Writer) error {
			return recoverNode(cfg, stdout)
		},
		Restore: func(ctx context.Context, cfg cli.RestoreConfig, stdout io.Writer) error {
			return restoreNode(ctx, cfg, stdout)
		},
		Strategies:   recipe.Strategies.Choices(),
		Draw:         train.Draw{Check: plot.Check, Draw: drawForecast},
		DemoStrategy: demo.DefaultStrategy,
		Parts:        strategies.Parts(),
		ScaleParts:   scale.Parts(),
		Options:      trainOptions,
	}
}

// drawForecast draws what a forecast has of each strategy on each number of nodes.
func drawForecast(file, title string, rows []api.ForecastRow) error {
	c := plot.Chart{Title: title, Panels: []plot.Panel{{Title: "seconds an epoch"}, {Title: "GB sent an epoch"}, {Title: "GiB a node"}}}
	for _, r := range rows {
		if label := fmt.Sprintf("%d nodes", r.Nodes); !slices.Contains(c.Rows, label) {
			c.Rows = append(c.Rows, label)
		}
		if !slices.Contains(c.Series, r.Strategy) {
			c.Series = append(c.Series, r.Strategy)
		}
	}
	for p := range c.Panels {
		for _, series := range c.Series {
			marks := make([]plot.Mark, len(c.Rows))
			for i := range marks {
				marks[i].Missing = true
			}
			for _, r := range rows {
				if r.Strategy != series || r.Seconds == 0 {
					continue
				}
				x := [...]float64{r.Seconds, float64(r.Bytes.Total()) / 1e9, float64(r.Memory) / (1 << 30)}[p]
				marks[slices.Index(c.Rows, fmt.Sprintf("%d nodes", r.Nodes))] = plot.Mark{Value: x, Label: fmt.Sprintf("%.3g", x)}
			}
			c.Panels[p].Marks = append(c.Panels[p].Marks, marks)
		}
	}
	return c.Draw(file)
}

// instructions returns an error if the CPU lacks the instructions that the environment asks for.
func instructions() error {
	if err := family.Err(); err != nil {
		return usage.Wrap(err)
	}
	return nil
}

// trainOptions lists the settings of `train start --set`.
func trainOptions() []train.Option {
	var list []train.Option
	for _, o := range node.TrainSettings() {
		list = append(list, train.Option{Key: o.Key, Applies: o.Applies, Values: o.Values, Default: o.Default, Help: o.Help})
	}
	return list
}

// agent runs a node until ctx ends, over a socket of its own unless it is given one.
// The join command goes to stdout or a file, everything else to the log on stderr.
func agent(ctx context.Context, cfg cli.AgentConfig, conn net.PacketConn, version string, stdout, stderr io.Writer) error {
	log, err := logger(stderr, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return err
	}
	// Before anything is taken, as it counts what is left.
	memory := budget.Granted(cfg.Memory)
	budget.Govern(memory.Bytes)
	log.Info("memory", "bound", budget.Format(memory.Bytes), "from", memory.From)
	if share := cputime.Share(); oneThread(share, os.Getenv("GOMAXPROCS")) {
		runtime.GOMAXPROCS(1)
		log.Info("one thread computes", "processors", share, "from", "its control group")
	}
	var n *node.Node
	ready := func(r node.Ready) {
		_, _ = fmt.Fprintf(stdout, "%s is ready at %s in mesh %s\n", r.Name, r.Addr, r.MeshID)
		if r.Founded {
			// OnReady has not returned yet, so the node can't answer here.
			go invite(ctx, n, cfg.DataDir, stdout, log)
		}
	}
	var read func() (string, error)
	if cfg.TokenFile != "" {
		read = func() (string, error) { return cli.ReadToken(ctx, cfg.TokenFile, os.Stdin) }
	}
	n, err = node.New(node.Options{
		DataDir: cfg.DataDir, Name: cfg.Name, Version: version, Listen: cfg.Listen, Advertise: cfg.Advertise, API: cfg.API, APIGroup: cfg.APIGroup,
		Bootstrap: cfg.Bootstrap, Join: cfg.Join, Token: cfg.Token, ReadToken: read, Device: cfg.Device, Memory: memory.Bytes, LogDir: cfg.LogDir, Python: cfg.Python, Log: log, OnReady: ready, Conn: conn,
	})
	if err != nil {
		return usage.Wrap(err)
	}
	err = n.Run(ctx)
	if errors.Is(err, node.ErrLeft) {
		return nil
	}
	return err
}

// oneThread reports whether one thread is to compute, by the share of processors that the daemon has.
// Go takes two at least. These would use up what the kernel grants for a period in half the time, and
// whoever asks this node would wait for the next period: steps took up to a tenth longer. GOMAXPROCS in the
// environment goes first.
func oneThread(share float64, procs string) bool { return procs == "" && share > 0 && share <= 1 }

func logger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: choose debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("--log-format %q: choose text or json", format)
}

func recoverNode(cfg cli.RecoverConfig, stdout io.Writer) error {
	r, err := node.Recover(node.Options{DataDir: cfg.DataDir}, cfg.VotersFile)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "The voters are now %v. Run the same command on every other survivor, then start all of them.\n", r.Voters)
	if r.Warning != "" {
		_, _ = fmt.Fprintln(stdout, "Warning: "+r.Warning)
	}
	return nil
}

func restoreNode(ctx context.Context, cfg cli.RestoreConfig, stdout io.Writer) error {
	r, err := node.Restore(ctx, node.Options{DataDir: cfg.DataDir}, cfg.File)
	if err != nil {
		return err
	}
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(stdout, format+"\n", args...) }
	line("%s is node %s of mesh %s again, with plan %d of %s, and votes alone.", cfg.DataDir, clioutput.Cell(r.Name), clioutput.Cell(r.Mesh), r.Index, r.Made.Format("2006-01-02 15:04:05 MST"))
	for _, l := range []struct {
		what string
		list []string
	}{
		{"Whole datasets", r.Datasets}, {"Datasets of which nothing is here", r.Absent}, {"Jobs with checkpoints", r.Jobs},
		{"Members that may come back with their own data directories, or be removed with `hopmesh force-leave`", r.Others},
	} {
		if len(l.list) > 0 {
			line("%s: %s.", l.what, clioutput.Cell(strings.Join(l.list, ", ")))
		}
	}
	line("Start it with `hopmesh agent --data-dir %s` and its other settings.", cfg.DataDir)
	line("Warning: start it only if no node of the lost mesh runs. There would be two meshes with one identity, and nodes that reach this one would drop what they decided since the backup.")
	return nil
}
