package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// pairFlags are the flags of `hopmesh predict` about pairs.
type pairFlags struct {
	cmd *cobra.Command
	api.PairOptions
}

func (f *pairFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.Task, "task", "", "what the job must have learnt, a `TASK`: "+usage.OneOf(api.TrainTasks())+" (default: anything)")
	usage.CompleteFlag(cmd, "task", api.TrainTasks())
	flags.StringVar(&f.Pairs, "pairs", "", "score the pairs of this `FILE`, CSV, TSV, Parquet or Arrow with two columns of ids, on the daemon's machine")
	flags.IntVar(&f.Top, "top", 0, "find the `K` best partners of each vertex")
	flags.StringVar(&f.Vertices, "vertices", "", "find those of the vertices of this `FILE`, with one column of ids (default: of all vertices)")
	flags.StringVar(&f.Relation, "relation", "", "the `NAME` of the relation of all pairs, from heads to tails, for a model of a knowledge graph")
	flags.BoolVar(&f.Neighbours, "neighbours", false, "count as partners also those that a vertex has an edge with")
}

// into puts what was given into a request, local paths as absolute ones.
func (f *pairFlags) into(o *api.PairOptions) error {
	*o = f.PairOptions
	for name, path := range map[string]*string{"pairs": &o.Pairs, "vertices": &o.Vertices, "top": nil} {
		switch {
		case !f.cmd.Flags().Changed(name):
		case path == nil && o.Top == 0:
			return usage.Errorf(f.cmd, "--top is 0: give 1 to %d partners", api.MaxTop)
		case path == nil || api.IsURL(*path):
		case *path == "":
			return usage.Errorf(f.cmd, "--%s names no file: give its path", name)
		default:
			absolute, err := filepath.Abs(*path)
			if err != nil {
				return fmt.Errorf("find %s: %w", *path, err)
			}
			*path = absolute
		}
	}
	return nil
}

// printFile prints a complete file or nothing.
func printFile(cmd *cobra.Command, d *daemon.Flags, get func(context.Context, *api.Client, io.Writer) error) (err error) {
	file, err := os.CreateTemp("", "hopmesh-*.tmp")
	if err != nil {
		return fmt.Errorf("make room for what is to be printed: %w: name a file with --out", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := os.Remove(file.Name()); err != nil { // it goes when it is closed
		return err
	}
	if _, err = daemon.Ask(cmd, d, func(ctx context.Context, c *api.Client) (none struct{}, err error) { return none, get(ctx, c, file) }); err != nil {
		return err
	}
	if _, err = file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(cmd.OutOrStdout(), file)
	return err
}
