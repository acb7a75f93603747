package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func datasetImport() *cobra.Command {
	var d daemon
	var r api.ImportRequest
	var cut cutFlags
	cmd := &cobra.Command{
		Use:   "import NAME SOURCE",
		Short: "Cut a graph into shards and spread them over the mesh",
		Long: "Reads a graph, cuts it into shards and spreads them over the nodes. The daemon reads SOURCE, so it must\n" +
			"lie on the daemon's machine. For csv and parquet SOURCE is an edge file, or a folder of files called\n" +
			"edges, features, labels and splits. A forecast of memory and cut comes first; interrupted, the import\n" +
			"leaves nothing behind.",
		Example: "  hopmesh dataset import cora ./cora.npz\n" +
			"  hopmesh dataset import web /data/web --format csv --undirected --shards 256 --memory 8GiB",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return wrongUsage(cmd, "`%s` needs NAME and SOURCE", cmd.CommandPath())
			case len(args) == 1:
				return wrongUsage(cmd, "`%s` needs SOURCE beside the name %q: a file or a folder", cmd.CommandPath(), args[0])
			case len(args) > 2:
				return wrongUsage(cmd, "`%s` takes NAME and SOURCE, so %q is one too many", cmd.CommandPath(), args[2])
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cut.into(cmd, &r.DatasetOptions)
			if err != nil {
				return err
			}
			if r.Name = args[0]; args[1] == "" {
				return wrongUsage(cmd, "SOURCE is empty: give a file or a folder")
			}
			if r.Source, err = filepath.Abs(args[1]); err != nil {
				return fmt.Errorf("find %s: %w", args[1], err)
			}
			if err := r.Check(); err != nil {
				return wrongUsage(cmd, "%v", err)
			}
			return makeDataset(cmd, &d, r.Name, func(ctx context.Context, c *api.Client, tell func(api.DatasetEvent)) (api.Dataset, error) {
				return c.ImportDataset(ctx, r, tell)
			})
		},
	}
	cmd.Flags().StringVar(&r.Format, "format", "auto", "`FORMAT` of SOURCE: "+oneOf(api.Formats()))
	completeFlag(cmd, "format", api.Formats())
	cut.flags(cmd, &r.DatasetOptions)
	cmd.Flags().BoolVar(&r.Undirected, "undirected", false, "add the reverse of each edge")
	d.flags(cmd)
	return cmd
}

func datasetGenerate() *cobra.Command {
	var d daemon
	var r api.GenerateRequest
	var cut cutFlags
	var inside, homophily float64
	cmd := &cobra.Command{
		Use:   "generate NAME (--kind KIND --vertices N --edges E | --preset PRESET)",
		Short: "Make a graph up and spread it over the mesh",
		Long: "Makes a graph up, cuts it into shards and spreads them over the nodes. An rmat graph has few vertices\n" +
			"with very many edges; an sbm graph has communities. A preset is as large as a known graph and cuts about\n" +
			"as well. The same seed makes the same graph.",
		Example: "  hopmesh dataset generate social --kind rmat --vertices 1000000 --edges 16000000 --features 64 --classes 16\n" +
			"  hopmesh dataset generate small --preset products --scale 0.1",
		Args:              oneArg("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			if flags.Changed("scale") && r.Scale == 0 {
				return wrongUsage(cmd, "--scale 0 leaves no graph: give a number above 0")
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
				return wrongUsage(cmd, "%v", err)
			}
			return makeDataset(cmd, &d, r.Name, func(ctx context.Context, c *api.Client, tell func(api.DatasetEvent)) (api.Dataset, error) {
				return c.GenerateDataset(ctx, r, tell)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Kind, "kind", "", "`KIND` of graph: "+oneOf(api.Kinds()))
	f.Uint64Var(&r.Vertices, "vertices", 0, "how many vertices")
	f.Uint64Var(&r.Edges, "edges", 0, "how many edges, before equal ones are merged")
	f.IntVar(&r.Features, "features", 0, "how many features a vertex has")
	f.IntVar(&r.Classes, "classes", 0, "how many classes there are; 0: neither labels nor a split")
	f.IntVar(&r.Communities, "communities", 0, "how many communities an sbm graph has (default: by its size)")
	f.Float64Var(&inside, "inside", 0, "`SHARE` of an sbm graph's edges that stay in their community (default 0.8)")
	f.Float64Var(&homophily, "homophily", 0, "`SHARE` of edges whose ends have the same class (default 0.8)")
	f.StringVar(&r.Preset, "preset", "", "a graph like a known one, `PRESET`: "+oneOf(api.Presets()))
	f.Float64Var(&r.Scale, "scale", 0, "multiply a preset's size by this `FACTOR` (default 1)")
	completeFlag(cmd, "kind", api.Kinds())
	completeFlag(cmd, "preset", api.Presets())
	cut.flags(cmd, &r.DatasetOptions)
	d.flags(cmd)
	return cmd
}

// cutFlags are the flags whose values need a look before a request can hold them.
type cutFlags struct {
	memory   string
	replicas int
}

func (c *cutFlags) flags(cmd *cobra.Command, o *api.DatasetOptions) {
	f := cmd.Flags()
	f.IntVar(&o.Shards, "shards", 0, "how many shards to make (default 64, fewer for a small graph)")
	f.StringVar(&o.Partitioner, "partitioner", "auto", "what cuts the graph, a `NAME`: "+oneOf(api.Partitioners()))
	f.StringVar(&o.DType, "dtype", "f32", "how features are stored, a `TYPE`: "+oneOf(api.DTypes()))
	f.IntVar(&c.replicas, "replicas", 1, "how many copies of each shard to keep beside its owner's")
	f.StringVar(&c.memory, "memory", "", "how much memory this may take, a `SIZE` such as 8GiB (default: the node's own bound)")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of all that is random")
	completeFlag(cmd, "partitioner", api.Partitioners())
	completeFlag(cmd, "dtype", api.DTypes())
}

func (c *cutFlags) into(cmd *cobra.Command, o *api.DatasetOptions) (err error) {
	if cmd.Flags().Changed("shards") && o.Shards == 0 {
		return wrongUsage(cmd, "--shards 0 leaves no graph: give 1 or more")
	}
	if cmd.Flags().Changed("replicas") {
		o.Replicas = &c.replicas
	}
	if c.memory != "" {
		if o.Memory, err = parseSize(c.memory); err != nil {
			return wrongUsage(cmd, "--memory %v", err)
		}
	}
	return nil
}

// makeDataset has the daemon make a dataset, and shows how it comes about.
func makeDataset(cmd *cobra.Command, d *daemon, name string, run func(context.Context, *api.Client, func(api.DatasetEvent)) (api.Dataset, error)) error {
	w, p := cmd.OutOrStdout(), newProgress(cmd.ErrOrStderr(), d.json)
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	tell := func(e api.DatasetEvent) {
		if e.Forecast == nil {
			p.tell(e)
			return
		}
		if d.json {
			return
		}
		p.clear()
		// Nobody would see what the import comes to, so it ends.
		if err := printForecast(w, *e.Forecast); err != nil {
			cancel(err)
		}
	}
	set, err := ask(cmd, d, func(_ context.Context, c *api.Client) (api.Dataset, error) { return run(ctx, c, tell) })
	p.end(err == nil)
	switch {
	case err == nil:
	case cmd.Context().Err() != nil:
		return fmt.Errorf("interrupted: nothing of %s is kept", name)
	default:
		return err
	}
	if d.json {
		return printJSON(w, set)
	}
	return printDataset(w, set)
}
