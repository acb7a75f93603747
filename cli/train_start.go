package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func trainStart() *cobra.Command {
	var d daemon
	var watch bool
	var spec string
	cmd := &cobra.Command{
		Use:   "start --dataset D [--model MODEL]",
		Short: "Start to train a model",
		Long: "Puts a job into the queue and prints its id. What is not said is as is usual for the model. The daemon\n" +
			"checks it first. The nodes that own the dataset's shards share the work, but with --strategy single, where\n" +
			"one that holds every shard does it all. --spec reads the same from a TOML file, whose keys are the flags'\n" +
			"names and whose tables [set] and [sweep] hold what --set and --sweep would; flags come before the file.\n" +
			"`hopmesh train options` lists what --set takes.\n\n" +
			"With --sweep a job trains a model for each combination of values, 64 at most, all on the same batches, which\n" +
			"are drawn and brought together once. Those of the last --sweep vary fastest. KEY is what --set takes of\n" +
			"models and training, or one of these flags:\n" + strings.Join(api.SweptFlags(), ", ") + ".",
		Example: "  hopmesh train start --dataset cora --watch\n" +
			"  hopmesh train start --dataset cora --sweep lr=0.01,0.001 --sweep hidden=16,64\n" +
			"  hopmesh train start --dataset reddit --model sage --layers 2 --hidden 256 --batch 1024 --fanout 25,10\n" +
			"  hopmesh train start --dataset reddit --strategy leap --set leap.mode=stay --deterministic\n" +
			"  hopmesh train start --dataset cora --model gat --set gat.version=2 --patience 100",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			if spec != "" {
				if err := readSpec(f, spec); err != nil {
					if wrong, ok := errors.AsType[errConfig](err); ok {
						return wrongUsage(cmd, "%v", wrong)
					}
					return err
				}
			}
			r, err := trainRequest(f)
			if err == nil {
				err = r.Check()
			}
			if err != nil {
				return wrongUsage(cmd, "%v", err)
			}
			id, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.JobID, error) { return c.StartJob(ctx, r) })
			if err != nil {
				return err
			}
			if d.json {
				err = printJSON(cmd.OutOrStdout(), id)
			} else {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), cell(id.ID))
			}
			if err != nil || !watch {
				return err
			}
			return watchJob(cmd, &d, id.ID, false)
		},
	}
	trainFlags(cmd)
	cmd.Flags().StringVar(&spec, "spec", "", "read what is not said by flags from a TOML `FILE`")
	cmd.Flags().BoolVar(&watch, "watch", false, "watch the job until it ends")
	d.flags(cmd)
	return cmd
}

// trainFlags makes the flags that a spec may hold too. Their values stay unless they
// were given, so the node chooses the rest.
func trainFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.String("dataset", "", "the `NAME` of the dataset to learn from")
	f.String("model", "", "what to train, a `MODEL`: "+oneOf(api.Models())+" (default gcn)")
	f.Int("layers", 0, "how many convolutions it has")
	f.Int("hidden", 0, "how many columns a hidden row has; of a gat, of each head")
	f.Int("heads", 0, "how many heads a gat has")
	f.Float64("dropout", 0, "the `SHARE` of numbers that are dropped while training")
	f.Float64("lr", 0, "the learning `RATE`")
	f.Float64("weight-decay", 0, "the weight decay, a `NUMBER`")
	f.String("optimizer", "", "what makes updates, a `NAME`: "+oneOf(api.Optimizers()))
	f.Int("epochs", 0, "how often to see all training vertices, at most")
	f.String("batch", "", "training vertices a step over all nodes, `full|N`")
	f.String("fanout", "", "how many neighbours to draw at each hop from the roots outwards, such as `25,10|full` (default full)")
	f.String("normalize-features", "", "what is done to features first, a `WAY`: "+oneOf(api.Normalizations()))
	f.String("norm", "", "what stands behind a layer, a `NAME`: "+oneOf(api.Norms()))
	f.Bool("residual", false, "add to each layer a linear map of what it is given")
	f.Int("patience", 0, "stop after so many evaluations without a better one (default: never early)")
	f.Int("eval-every", 0, "evaluate once in so many epochs (default 1)")
	f.Int("split", 0, "which of the dataset's splits to use")
	f.Uint64("seed", 0, "seed of all that is random")
	f.String("strategy", "", "how nodes share the work, a `NAME`: "+oneOf(api.Strategies())+" (default auto)")
	f.Bool("deterministic", false, "add gradients up shard by shard, so that any number of nodes learns the same bits")
	f.StringArray("sweep", nil, "train a model for each value of `KEY=V,V`; may be repeated, for all combinations")
	f.StringArray("set", nil, "set what has no flag, `KEY=VALUE`; may be repeated")
	for flag, values := range map[string][]string{
		"model": api.Models(), "optimizer": api.Optimizers(), "normalize-features": api.Normalizations(), "norm": api.Norms(),
		"strategy": api.Strategies(), "batch": {"full"}, "fanout": {"full"},
	} {
		completeFlag(cmd, flag, values)
	}
}

// trainRequest asks for what flags, or a spec, say.
func trainRequest(f *pflag.FlagSet) (api.TrainRequest, error) {
	r := api.TrainRequest{
		Dataset: text(f, "dataset"), Model: text(f, "model"), Optimizer: text(f, "optimizer"), Norm: text(f, "norm"),
		Features: text(f, "normalize-features"), Strategy: text(f, "strategy"),
		Layers: said(f, "layers", f.GetInt), Hidden: said(f, "hidden", f.GetInt), Heads: said(f, "heads", f.GetInt),
		Epochs: said(f, "epochs", f.GetInt), Patience: said(f, "patience", f.GetInt), EvalEvery: said(f, "eval-every", f.GetInt), Split: said(f, "split", f.GetInt),
		Dropout: said(f, "dropout", f.GetFloat64), Rate: said(f, "lr", f.GetFloat64), WeightDecay: said(f, "weight-decay", f.GetFloat64),
		Residual: said(f, "residual", f.GetBool), Seed: said(f, "seed", f.GetUint64), Deterministic: text(f, "deterministic") == "true",
	}
	if r.Dataset == "" {
		return r, errors.New("--dataset is missing: `hopmesh dataset list` shows those there are")
	}
	var err error
	if r.Batch, err = batch(text(f, "batch")); err != nil {
		return r, err
	}
	if r.Fanout, err = fanout(text(f, "fanout")); err != nil {
		return r, err
	}
	settings, err := f.GetStringArray("set")
	if err != nil {
		return r, err
	}
	for _, s := range settings {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return r, fmt.Errorf("--set %q is no KEY=VALUE, such as sage.aggregator=max", s)
		}
		r.Set = append(r.Set, api.Setting{Key: key, Value: value})
	}
	if settings, err = f.GetStringArray("sweep"); err != nil {
		return r, err
	}
	for _, s := range settings {
		key, values, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return r, fmt.Errorf("--sweep %q is no KEY=V,V, such as lr=0.01,0.001", s)
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

// said is nil for a flag that was not given.
func said[T any](f *pflag.FlagSet, name string, get func(string) (T, error)) *T {
	if !f.Changed(name) {
		return nil
	}
	v, err := get(name)
	if err != nil {
		panic(fmt.Sprintf("cli: flag %s: %v", name, err)) // it is of another type
	}
	return &v
}

func batch(s string) (*int, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // nobody said
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

func fanout(s string) ([]int, error) {
	if s == "" || s == "full" {
		return nil, nil
	}
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		n, err := strconv.Atoi(part)
		if part == "full" {
			n, err = 0, nil
		} else if n < 1 {
			err = errors.New("too few")
		}
		if err != nil {
			return nil, fmt.Errorf("--fanout %q is neither full nor a list of numbers such as 25,10", s)
		}
		list = append(list, n)
	}
	return list, nil
}
