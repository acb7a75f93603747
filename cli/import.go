package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func datasetImport() *cobra.Command {
	var d daemon.Flags
	var r api.ImportRequest
	var cut cutFlags
	cmd := &cobra.Command{
		Use:   "import NAME SOURCE...",
		Short: "Partition a graph into shards and store them in the mesh",
		Long: "Reads a graph, partitions it into shards and stores them on the nodes. The daemon reads SOURCE, so it\n" +
			"must be on the daemon's machine, or NODE:/PATH on another node's, or a URL (https, http, s3, gs). Without\n" +
			"SOURCE, ogbn-arxiv and ogbn-products are fetched from where the Open Graph Benchmark serves them. For csv\n" +
			"and parquet SOURCE is an edge file, or a folder of files called edges and nodes, or edges, features, labels\n" +
			"and splits; several of one format are read as one. First prints a forecast of memory and edge cut. An\n" +
			"interrupted import " +
			"leaves nothing behind.",
		Example: "  hopmesh dataset import cora ./cora.npz\n" +
			"  hopmesh dataset import web /data/web --format csv --undirected --shards 256 --memory 8GiB\n" +
			"  hopmesh dataset import web n1:/data/part-0 n2:/data/part-1\n" +
			"  hopmesh dataset import people /data/people --label-columns ill,smokes\n" +
			"  hopmesh dataset import library /data/library --type-column kind --relation-column verb --undirected\n" +
			"  hopmesh dataset import papers s3://bucket/papers",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage.Errorf(cmd, "`%s` needs NAME and SOURCE", cmd.CommandPath())
			case len(args) == 1 && fetched(args[0]) != "":
				return nil
			case len(args) == 1 && bring(cmd.CommandPath(), args[0]) != "":
				return usage.Errorf(cmd, "`%s` fetches no %s by its name: %s", cmd.CommandPath(), args[0], bring(cmd.CommandPath(), args[0]))
			case len(args) == 1:
				return usage.Errorf(cmd, "`%s` needs SOURCE beside the name %q: a file or a folder", cmd.CommandPath(), args[0])
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) >= 1 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cut.into(cmd, &r.DatasetOptions)
			if err != nil {
				return err
			}
			r.Name = args[0]
			if len(args) == 1 {
				r.Source, r.Undirected = fetched(r.Name), r.Undirected || !cmd.Flags().Changed("undirected")
			} else if err := chooseSources(cmd, &r, args[1:]); err != nil {
				return err
			}
			if err := r.Check(); err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			err = makeDataset(cmd, &d, r.Name, func(ctx context.Context, c *api.Client, show func(api.DatasetEvent)) (api.Dataset, error) {
				return c.ImportDataset(ctx, r, show)
			})
			if len(args) == 1 && cmd.Context().Err() == nil && unread(err, r.Name) {
				err = fmt.Errorf("%w; if the daemon's network allows no other way, %s", err, bring(cmd.CommandPath(), r.Name))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&r.Format, "format", "auto", "`FORMAT` of SOURCE: "+usage.OneOf(api.Formats()))
	usage.CompleteFlag(cmd, "format", api.Formats())
	cmd.Flags().StringVar(&r.Task, "task", "", "what labels are, a `TASK`: "+usage.OneOf(api.Tasks())+" (default: whatever they look like)")
	usage.CompleteFlag(cmd, "task", api.Tasks())
	cmd.Flags().StringSliceVar(&r.LabelColumns, "label-columns", nil, "`COLUMNS` of tables that hold labels, such as a,b (default: those called label, or label_0 and so on)")
	cmd.Flags().StringSliceVar(&r.EdgeFeatures, "edge-features", nil, "`COLUMNS` of tables of edges that hold features of edges, such as a,b, or all (default: none)")
	cmd.Flags().StringVar(&r.TypeColumn, "type-column", "", "`COLUMN` of a table of nodes that says the type of each, or none (default: one called type, node_type and so on that holds words)")
	cmd.Flags().StringVar(&r.RelationColumn, "relation-column", "", "`COLUMN` of a table of edges that says the relation of each, or none (default: one called relation, edge_type, type and so on that holds words)")
	cut.flags(cmd, &r.DatasetOptions)
	cmd.Flags().BoolVar(&r.Undirected, "undirected", false, "add the reverse of every edge")
	d.Add(cmd)
	return cmd
}

// chooseSources puts the sources into the request, local paths as absolute ones.
func chooseSources(cmd *cobra.Command, r *api.ImportRequest, sources []string) error {
	far := false
	for _, s := range sources {
		node, _ := api.SplitSource(s)
		far = far || node != ""
		switch {
		case s == "":
			return usage.Errorf(cmd, "SOURCE is empty: give a file or a folder")
		case node == "" && !api.IsURL(s):
			path, err := filepath.Abs(s)
			if err != nil {
				return fmt.Errorf("find %s: %w", s, err)
			}
			s = path
		}
		r.Sources = append(r.Sources, s)
	}
	if len(sources) == 1 && !far {
		r.Source, r.Sources = r.Sources[0], nil
	}
	return nil
}

func datasetGenerate() *cobra.Command {
	var d daemon.Flags
	var r api.GenerateRequest
	var cut cutFlags
	var inside, homophily float64
	cmd := &cobra.Command{
		Use:   "generate NAME (--kind KIND --vertices N --edges E | --preset PRESET)",
		Short: "Generate a synthetic graph and store it in the mesh",
		Long: "Generates a graph, partitions it into shards and stores them on the nodes. An rmat graph has a few vertices\n" +
			"with very many edges; an sbm graph has communities. A preset has the size of a known graph and partitions\n" +
			"about as well. The same seed gives the same graph.",
		Example: "  hopmesh dataset generate social --kind rmat --vertices 1000000 --edges 16000000 --features 64 --classes 16\n" +
			"  hopmesh dataset generate small --preset products --scale 0.1",
		Args:              usage.OneArg("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			if flags.Changed("scale") && r.Scale == 0 {
				return usage.Errorf(cmd, "--scale 0 leaves no graph: give a number above 0")
			}
			if flags.Changed("inside") {
				r.Inside = &inside
			}
			if flags.Changed("homophily") {
				r.Homophily = &homophily
			}
			if err := cut.into(cmd, &r.DatasetOptions); err != nil {
				return err
			}
			r.Name = args[0]
			if err := r.Check(); err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			return makeDataset(cmd, &d, r.Name, func(ctx context.Context, c *api.Client, show func(api.DatasetEvent)) (api.Dataset, error) {
				return c.GenerateDataset(ctx, r, show)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Kind, "kind", "", "`KIND` of graph: "+usage.OneOf(api.Kinds()))
	f.Uint64Var(&r.Vertices, "vertices", 0, "how many vertices")
	f.Uint64Var(&r.Edges, "edges", 0, "how many edges, before duplicates are removed")
	f.IntVar(&r.Features, "features", 0, "how many features a vertex has")
	f.IntVar(&r.Classes, "classes", 0, "how many classes; 0: neither labels nor a split")
	f.IntVar(&r.Communities, "communities", 0, "how many communities an sbm graph has (default: by its size)")
	f.Float64Var(&inside, "inside", 0, "`SHARE` of an sbm graph's edges that stay in their community (default 0.8)")
	f.Float64Var(&homophily, "homophily", 0, "`SHARE` of edges whose ends have the same class (default 0.8)")
	f.StringVar(&r.Preset, "preset", "", "generate a graph like a known one, `PRESET`: "+usage.OneOf(api.Presets()))
	f.BoolVar(&r.Undirected, "undirected", false, "add the reverse of every edge")
	f.Float64Var(&r.Scale, "scale", 0, "multiply a preset's size by this `FACTOR` (default 1)")
	usage.CompleteFlag(cmd, "kind", api.Kinds())
	usage.CompleteFlag(cmd, "preset", api.Presets())
	cut.flags(cmd, &r.DatasetOptions)
	d.Add(cmd)
	return cmd
}

// cutFlags are flags that must be converted for a request.
type cutFlags struct {
	memory   string
	replicas int
}

func (c *cutFlags) flags(cmd *cobra.Command, o *api.DatasetOptions) {
	f := cmd.Flags()
	f.IntVar(&o.Shards, "shards", 0, "how many shards to make (default 64, fewer for a small graph)")
	f.StringVar(&o.Partitioner, "partitioner", "auto", "partitioner `NAME`: "+usage.OneOf(api.Partitioners()))
	f.StringVar(&o.DType, "dtype", "f32", "`TYPE` of stored features: "+usage.OneOf(api.DTypes()))
	f.IntVar(&c.replicas, "replicas", 1, "how many copies of each shard to keep in addition to its owner's")
	f.StringVar(&c.memory, "memory", "", "limit of the memory for this, a `SIZE` such as 8GiB (default: the node's limit)")
	f.Uint64Var(&o.Seed, "seed", 0, "random seed")
	usage.CompleteFlag(cmd, "partitioner", api.Partitioners())
	usage.CompleteFlag(cmd, "dtype", api.DTypes())
}

func (c *cutFlags) into(cmd *cobra.Command, o *api.DatasetOptions) (err error) {
	if cmd.Flags().Changed("shards") && o.Shards == 0 {
		return usage.Errorf(cmd, "--shards 0 leaves no shards: give 1 or more")
	}
	if cmd.Flags().Changed("replicas") {
		o.Replicas = &c.replicas
	}
	if c.memory != "" {
		if o.Memory, err = output.ParseSize(c.memory); err != nil {
			return usage.Errorf(cmd, "--memory %v", err)
		}
	}
	return nil
}

// makeDataset imports or generates a dataset and shows the progress.
func makeDataset(cmd *cobra.Command, d *daemon.Flags, name string, run func(context.Context, *api.Client, func(api.DatasetEvent)) (api.Dataset, error)) error {
	w, p := cmd.OutOrStdout(), newProgress(cmd.ErrOrStderr(), d.JSON)
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	show := func(e api.DatasetEvent) {
		if e.Forecast == nil {
			p.show(e)
			return
		}
		if d.JSON {
			return
		}
		p.live.Clear()
		// Nobody would see the result, so the import ends.
		if err := printForecast(w, *e.Forecast); err != nil {
			cancel(err)
		}
	}
	set, err := daemon.Ask(cmd, d, func(_ context.Context, c *api.Client) (api.Dataset, error) { return run(ctx, c, show) })
	p.end(err == nil)
	switch {
	case err == nil:
	case cmd.Context().Err() != nil:
		return fmt.Errorf("interrupted: nothing of %s is kept", name)
	default:
		return err
	}
	if d.JSON {
		return output.JSON(w, set)
	}
	return printDataset(w, set)
}

// progress shows what a daemon reports while it works on a dataset: stages one after
// the other, each with an amount that is done, and notes.
type progress struct {
	live  *output.Live
	quiet bool // --json: notes only

	stage api.Progress // the latest report of the current stage
	begun time.Time    // when the stage began; zero before the first
}

// worthALine is how long a stage must last on a terminal to be mentioned at its end.
const worthALine = time.Second

func newProgress(w io.Writer, quiet bool) *progress {
	return &progress{live: output.NewLive(w), quiet: quiet}
}

// show shows one event.
func (p *progress) show(e api.DatasetEvent) {
	if e.Note != "" {
		p.live.Line(output.Sentence(e.Note))
	}
	if e.Progress == nil || p.quiet {
		return
	}
	now := p.live.Now()
	if p.begun.IsZero() || e.Progress.Stage != p.stage.Stage {
		p.end(true)
		p.begun = now
		p.live.Begin()
	}
	p.stage = *e.Progress
	text := output.Cell(p.stage.Stage) + ": " + p.status(now.Sub(p.begun))
	switch {
	case p.live.Terminal:
		share := 0.0
		if p.stage.Total > 0 {
			share = float64(p.stage.Done) / float64(p.stage.Total)
		}
		p.live.Bar(share, text)
	case p.live.Due():
		p.live.Begin()
		p.live.Line(text)
	}
}

// end ends the current stage, with a summary if the stage was completed.
func (p *progress) end(completed bool) {
	p.live.Clear()
	if p.begun.IsZero() {
		return
	}
	took := p.live.Now().Sub(p.begun)
	p.begun = time.Time{}
	if !completed || took < worthALine && p.live.Terminal {
		return
	}
	text := "done"
	if took >= worthALine {
		text = fmt.Sprintf("done in %s", output.Duration(took))
		if p.stage.Done > 0 {
			text += ", " + p.rate(took)
		}
	}
	p.live.Line(output.Cell(p.stage.Stage) + ": " + text)
}

// status returns how far the stage is, how fast it is, and how long it will take.
func (p *progress) status(took time.Duration) string {
	s := p.stage
	share := float64(s.Done) / float64(max(s.Total, 1))
	switch {
	case s.Done == 0:
		return "begun " + output.Duration(took) + " ago"
	case s.Total == 0 || share > 1:
		return fmt.Sprintf("%s, %s", p.amount(float64(s.Done)), p.rate(took))
	case took <= 0:
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	left := time.Duration(min(float64(took)*(1-share)/share, float64(1<<62)))
	return fmt.Sprintf("%.0f %%, %s, about %s left", 100*share, p.rate(took), output.Duration(left))
}

func (p *progress) rate(took time.Duration) string {
	return p.amount(float64(p.stage.Done)/max(took, time.Millisecond).Seconds()) + "/s"
}

func (p *progress) amount(n float64) string {
	if p.stage.Unit == "bytes" {
		return output.Size(uint64(n))
	}
	prefix := ""
	for _, next := range []string{"k", "M", "G"} {
		if n < 1000 {
			break
		}
		n, prefix = n/1000, next
	}
	digits := 0
	if n < 10 {
		digits = 1
	}
	return fmt.Sprintf("%.*f%s %s", digits, n, prefix, output.Cell(p.stage.Unit))
}
