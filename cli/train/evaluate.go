package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// Evaluate returns `hopmesh evaluate`.
func Evaluate() *cobra.Command {
	var d daemon.Flags
	var r api.EvaluateRequest
	cmd := &cobra.Command{
		Use:   "evaluate JOB",
		Short: "Compare a trained model with a dataset",
		Long: "Runs the model of a job's best epoch on all vertices with all their neighbours, and prints how well it does\n" +
			"on each part of the dataset's split. With --dataset it does so on another dataset, which has the same\n" +
			"columns of features in the same order, and the same classes or columns of labels. A job that learns links\n" +
			"splits the edges of any dataset as it split its own. For a sweep it uses the best model, or the one of\n" +
			"--model-index, as numbered by `hopmesh train show`.",
		Example:           "  hopmesh evaluate j1\n  hopmesh evaluate j1 --dataset august --split 0",
		Args:              usage.OneArg("JOB"),
		ValidArgsFunction: daemon.Suggest(&d, JobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Index, r.Split = modelIndex(cmd), given(cmd.Flags(), "split", cmd.Flags().GetInt)
			if err := r.Check(); err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			e, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Evaluation, error) { return c.Evaluate(ctx, args[0], r) })
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), e)
			}
			return printEvaluation(cmd, e)
		},
	}
	datasetFlag(cmd, &r.Dataset)
	cmd.Flags().Int("split", 0, "index of the dataset's split, a `NUMBER` from 0 (default: that of the job, or 0 with --dataset)")
	usage.CompleteFlag(cmd, "split", nil)
	modelIndexFlag(cmd)
	d.Add(cmd)
	return cmd
}

// datasetFlag adds the flag for another dataset than that of the job.
func datasetFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "dataset", "", "`NAME` of another dataset, with the same columns of features (default: that of the job)")
	usage.CompleteFlag(cmd, "dataset", nil)
}

func printEvaluation(cmd *cobra.Command, e api.Evaluation) error {
	what := "vertices"
	if e.Task == "link" {
		what = "pairs"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "The model of job %s after epoch %d, on dataset %s, split %d:\n", output.Cell(e.ID), e.Epoch, output.Cell(e.Dataset), e.Split)
	if err != nil {
		return err
	}
	m := &e.Metrics
	names := map[string]bool{}
	for _, of := range []map[string]float64{m.Train, m.Val, m.Test} {
		for name := range of {
			names[name] = true
		}
	}
	columns := slices.Sorted(maps.Keys(names))
	head := []string{"PART", strings.ToUpper(what)}
	for _, name := range columns {
		head = append(head, strings.ToUpper(name))
	}
	rows := [][]string{head}
	for _, part := range []struct {
		name  string
		count uint64
		of    map[string]float64
	}{{"training", e.Counts.Train, m.Train}, {"validation", e.Counts.Val, m.Val}, {"test", e.Counts.Test, m.Test}} {
		row := []string{part.name, strconv.FormatUint(part.count, 10)}
		for _, name := range columns {
			text := ""
			if x, has := part.of[name]; has {
				text = strconv.FormatFloat(x, 'g', 4, 64)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return output.Table(cmd.OutOrStdout(), rows...)
}
