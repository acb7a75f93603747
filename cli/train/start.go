package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func start(strategies []string) *cobra.Command {
	var d daemon.Flags
	var watch bool
	var spec, from string
	cmd := &cobra.Command{
		Use:   "start --dataset D [--model MODEL]",
		Short: "Start a training job",
		Long: "Puts a job into the queue and prints its id. The daemon checks it first. Flags that are not given have the\n" +
			"usual values for the model. All nodes that own shards of the dataset train the model together, except with\n" +
			"--strategy single, where one node with every shard trains alone. --spec reads settings from a TOML file:\n" +
			"its keys are names of flags, and its tables [set] and [sweep] hold the values of --set and --sweep. Flags\n" +
			"override the file. `hopmesh train options` lists the keys of --set.\n\n" +
			"With --from the job starts from the weights of another job's model, on the same dataset or on another with\n" +
			"the same columns of features and as many classes. What is left out of the model, of --task and of\n" +
			"--normalize-features is as in that job, which must have ended.\n\n" +
			"With --sweep a job trains one model for each combination of values, at most 64, all on the same\n" +
			"mini-batches, which are sampled and gathered once. The values of the last --sweep vary fastest. KEY is a key\n" +
			"of --set that belongs to models or training, or one of these flags:\n" + strings.Join(api.SweptFlags(), ", ") + ".",
		Example: "  hopmesh train start --dataset cora --watch\n" +
			"  hopmesh train start --dataset august --from j1 --lr 0.001 --epochs 20\n" +
			"  hopmesh train start --dataset cora --sweep lr=0.01,0.001 --sweep hidden=16,64\n" +
			"  hopmesh train start --dataset reddit --model sage --layers 2 --hidden 256 --batch 1024 --fanout 25,10\n" +
			"  hopmesh train start --dataset reddit --strategy leap --set leap.mode=stay --deterministic\n" +
			"  hopmesh train start --dataset cora --model gat --set gat.version=2 --patience 100\n" +
			"  hopmesh train start --dataset cora --task link --edge-split 0.85,0.05,0.1 --watch\n" +
			"  hopmesh train start --dataset cora --task link --decoder mlp --negatives batch:5 --loss bpr",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			if spec != "" {
				if err := readSpec(f, spec); err != nil {
					if wrong, ok := errors.AsType[errSpec](err); ok {
						return usage.Errorf(cmd, "%v", wrong)
					}
					return err
				}
			}
			r, err := request(f, true)
			if r.From = from; err == nil {
				err = r.Check()
			}
			if err == nil && r.Strategy != "" && !slices.Contains(strategies, r.Strategy) {
				err = fmt.Errorf("there is no strategy %q: use %s", r.Strategy, usage.OneOf(strategies))
			}
			if err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			id, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.JobID, error) { return c.StartJob(ctx, r) })
			if err != nil {
				return err
			}
			if d.JSON {
				err = output.JSON(cmd.OutOrStdout(), id)
			} else {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), output.Cell(id.ID))
			}
			if err != nil || !watch {
				return err
			}
			return watchJob(cmd, &d, id.ID, false)
		},
	}
	flags(cmd, strategies)
	cmd.Flags().StringVar(&from, "from", "", "start from the weights of the model of another `JOB`")
	usage.CompleteFlag(cmd, "from", nil)
	cmd.Flags().StringVar(&spec, "spec", "", "read settings from a TOML `FILE`; flags override it")
	cmd.Flags().BoolVar(&watch, "watch", false, "watch the job until it ends")
	d.Add(cmd)
	return cmd
}

// flags adds the flags that a spec may hold, too. The node chooses defaults for those that are
// not given.
func flags(cmd *cobra.Command, strategies []string) {
	f := cmd.Flags()
	f.SortFlags = false
	f.String("dataset", "", "`NAME` of the dataset")
	f.String("model", "", "`MODEL` to train: "+usage.OneOf(api.Models())+" (default gcn)")
	f.Int("layers", 0, "number of convolutions")
	f.Int("hidden", 0, "hidden width (per head for gat)")
	f.Int("heads", 0, "number of attention heads of a gat or hgt")
	f.Float64("dropout", 0, "dropout probability, a `SHARE` from 0 to 1")
	f.Float64("lr", 0, "learning `RATE`")
	f.Float64("weight-decay", 0, "weight decay, a `NUMBER`")
	f.String("optimizer", "", "optimizer `NAME`: "+usage.OneOf(api.Optimizers()))
	f.Int("epochs", 0, "number of epochs at most")
	f.String("batch", "", "training vertices per step over all nodes, `full|N`")
	f.String("fanout", "", "neighbours to sample at each hop from the seed vertices outwards, such as `25,10|full`; of relations with names so\n"+
		"many each, such as 10,5,cites=20/10 (default full)")
	f.String("normalize-features", "", "normalization of features, a `NAME`: "+usage.OneOf(api.Normalizations()))
	f.String("norm", "", "normalization after each layer, a `NAME`: "+usage.OneOf(api.Norms()))
	f.Bool("residual", false, "add a linear map of its input to each layer")
	f.Int("patience", 0, "stop after this many evaluations without improvement (default: never)")
	f.Int("eval-every", 0, "evaluate every this many epochs (default 1)")
	f.Int("split", 0, "index of the dataset's split to use")
	f.String("task", "", "what to learn, a `TASK`: "+usage.OneOf(api.TrainTasks())+" (default: what the dataset has targets for)")
	f.String("edge-split", "", "`SHARES` of the edges for training, validation and test, for --task link (default 0.85,0.05,0.1)")
	f.String("decoder", "", "what scores a pair of embeddings, a `NAME`, for --task link, as --set link.decoder: dot, distmult or mlp")
	f.String("negatives", "", "what stands in place of a pair's target, `N|FROM|FROM:N`, for --task link, as --set link.negatives: uniform, source or batch (default uniform:1)")
	f.String("loss", "", "loss `NAME`, as --set train.loss")
	f.String("class-weights", "", "weigh the losses of classes, or of a yes in each column, `balanced|W,W...`, as --set train.class_weights")
	f.Uint64("seed", 0, "random seed")
	f.String("strategy", "", "how nodes train together, a strategy `NAME`: "+usage.OneOf(strategies)+" (default auto)")
	f.Bool("deterministic", false, "sum gradients shard by shard, so that any number of nodes gives the same weights bit for bit")
	f.StringArray("sweep", nil, "train a model for each value of `KEY=V,V`; may be repeated, for all combinations")
	f.StringArray("set", nil, "change a setting that has no flag, `KEY=VALUE`; may be repeated")
	for flag, values := range map[string][]string{
		"model": api.Models(), "optimizer": api.Optimizers(), "normalize-features": api.Normalizations(), "norm": api.Norms(),
		"task": api.TrainTasks(), "strategy": strategies, "batch": {"full"}, "fanout": {"full"}, "class-weights": {"balanced"},
		"decoder": {"dot", "distmult", "mlp"}, "negatives": {"uniform", "source", "batch"},
	} {
		usage.CompleteFlag(cmd, flag, values)
	}
}

// A setting is one of --set that has a flag, too.
type setting struct{ flag, key string }

// asSettings are the flags that a request has as settings.
var asSettings = []setting{
	{"class-weights", "train.class_weights"}, {"decoder", "link.decoder"}, {"negatives", "link.negatives"},
}

// request asks for what flags, or a spec, say. needs means that a dataset must be named.
func request(f *pflag.FlagSet, needs bool) (api.TrainRequest, error) {
	r := api.TrainRequest{
		Dataset: text(f, "dataset"), Model: text(f, "model"), Optimizer: text(f, "optimizer"), Norm: text(f, "norm"),
		Features: text(f, "normalize-features"), Strategy: text(f, "strategy"), Task: text(f, "task"), Loss: text(f, "loss"),
		Layers: given(f, "layers", f.GetInt), Hidden: given(f, "hidden", f.GetInt), Heads: given(f, "heads", f.GetInt),
		Epochs: given(f, "epochs", f.GetInt), Patience: given(f, "patience", f.GetInt), EvalEvery: given(f, "eval-every", f.GetInt), Split: given(f, "split", f.GetInt),
		Dropout: given(f, "dropout", f.GetFloat64), Rate: given(f, "lr", f.GetFloat64), WeightDecay: given(f, "weight-decay", f.GetFloat64),
		Residual: given(f, "residual", f.GetBool), Seed: given(f, "seed", f.GetUint64), Deterministic: text(f, "deterministic") == "true",
	}
	if needs && r.Dataset == "" {
		return r, errors.New("--dataset is missing: `hopmesh dataset list` shows the datasets")
	}
	var err error
	if r.Batch, err = batch(text(f, "batch")); err != nil {
		return r, err
	}
	if r.Fanout, r.RelationFanout, err = fanout(text(f, "fanout")); err != nil {
		return r, err
	}
	if r.EdgeSplit, err = edgeSplit(text(f, "edge-split")); err != nil {
		return r, err
	}
	settings, err := f.GetStringArray("set")
	if err != nil {
		return r, err
	}
	for _, s := range settings {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return r, fmt.Errorf("--set %q is not KEY=VALUE, such as sage.aggregator=max", s)
		}
		r.Set = append(r.Set, api.Setting{Key: key, Value: value})
	}
	for _, s := range asSettings {
		if value := text(f, s.flag); value != "" {
			r.Set = append(r.Set, api.Setting{Key: s.key, Value: value})
		}
	}
	if settings, err = f.GetStringArray("sweep"); err != nil {
		return r, err
	}
	for _, s := range settings {
		key, values, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return r, fmt.Errorf("--sweep %q is not KEY=V,V, such as lr=0.01,0.001", s)
		}
		sweep := api.Sweep{Key: key}
		for v := range strings.SplitSeq(values, ",") {
			sweep.Values = append(sweep.Values, strings.TrimSpace(v))
		}
		r.Sweep = append(r.Sweep, sweep)
	}
	return r, nil
}

func text(f *pflag.FlagSet, name string) string { return f.Lookup(name).Value.String() }

// given returns the value of a flag, or nil if the flag was not given.
func given[T any](f *pflag.FlagSet, name string, get func(string) (T, error)) *T {
	if !f.Changed(name) {
		return nil
	}
	v, err := get(name)
	if err != nil {
		panic(fmt.Sprintf("cli: flag %s: %v", name, err)) // the flag has another type
	}
	return &v
}

func batch(s string) (*int, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // nobody given
	}
	n := 0
	if s == "full" {
		return &n, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("--batch %q is neither full nor a number of training vertices", s)
	}
	return &n, nil
}

func edgeSplit(s string) (shares []float64, err error) {
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		share, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return nil, fmt.Errorf("--edge-split %q is no list of three shares such as 0.85,0.05,0.1", s)
		}
		shares = append(shares, share)
	}
	return shares, nil
}

// fanout parses a number for each hop, and numbers for the hops of relations with names, which have
// slashes between them.
func fanout(s string) (list []int, relations map[string][]int, err error) {
	if s == "" || s == "full" {
		return nil, nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if i := strings.LastIndexByte(part, '='); i > 0 {
			name := part[:i]
			if relations == nil {
				relations = map[string][]int{}
			}
			if relations[name] != nil {
				return nil, nil, fmt.Errorf("--fanout names the relation %s twice: name it once", name)
			}
			for hop := range strings.SplitSeq(part[i+1:], "/") {
				n, err := strconv.Atoi(hop)
				if err != nil || n < 1 {
					return nil, nil, fmt.Errorf("--fanout %q has no number of neighbours for each hop of the relation %s, such as %s=20/10", s, name, name)
				}
				relations[name] = append(relations[name], n)
			}
			continue
		}
		n, err := strconv.Atoi(part)
		if part == "full" {
			n, err = 0, nil
		} else if n < 1 {
			err = errors.New("too few")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("--fanout %q is neither full nor a list of numbers such as 25,10", s)
		}
		list = append(list, n)
	}
	return list, relations, nil
}
