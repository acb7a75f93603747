package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func train(options func() []TrainOption) *cobra.Command {
	return group(cobra.Command{
		Use:   "train",
		Short: "Train models, watch them learn, stop, resume and remove them",
		Long: "A job trains one model, or all of a sweep, on one dataset, on one node or on all that own shards of it.\n" +
			"Jobs wait in a queue until their nodes are free; what is known of each epoch is kept in the plan, and the\n" +
			"model with its checkpoint on the nodes that train it.",
		Example: "  hopmesh train start --dataset cora --watch\n  hopmesh train list",
	}, trainStart(), trainList(), trainShow(), trainWatch(), trainStop(), trainResume(), trainRemove(), trainOptions(options))
}

func trainList() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the jobs of the mesh",
		Long: "Lists the jobs of the mesh, the oldest first, as the asked node knows them. VAL and TEST are the\n" +
			"accuracies in the epoch that was best on validation. The mesh keeps 64 jobs: `hopmesh train remove`\n" +
			"makes room for more.",
		Example:           "  hopmesh train list\n  hopmesh train list --json | jq -r '.[] | select(.state == \"running\") | .id'",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) ([]api.JobSummary, error) { return c.Jobs(ctx) })
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), list)
			}
			return printJobs(cmd.OutOrStdout(), list)
		},
	}
	d.flags(cmd)
	return cmd
}

func trainShow() *cobra.Command {
	var d daemon
	var epochs bool
	cmd := &cobra.Command{
		Use:   "show JOB",
		Short: "Describe a job: how far it is, how good, where the time goes",
		Long: "Describes a job as the asked node knows it. With --epochs, each epoch too; --json always holds them,\n" +
			"and all that decides what is learnt. Times, rows and bytes are those of training; an epoch's evaluation\n" +
			"is counted beside them, as EVAL. Of nodes that share the work, phases are averages, and rows and bytes\n" +
			"those of all of them, by what they were for; what nobody sent has no column. Of a sweep, each model has a\n" +
			"line, with its best epoch; * marks the best model, of which the loss is. Times, rows and bytes are those of\n" +
			"all models; by epoch, what is done once for all of them stands with the first.",
		Example:           "  hopmesh train show j1\n  hopmesh train show j1 --epochs\n  hopmesh train show j1 --json | jq .best.test_acc",
		Args:              oneArg("JOB"),
		ValidArgsFunction: suggest(&d, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Job, error) { return c.Job(ctx, args[0]) })
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if d.json {
				return printJSON(w, j)
			}
			if err := printJob(w, j); err != nil || !epochs {
				return err
			}
			if len(j.Models) > 0 {
				return printModelEpochs(w, j)
			}
			return printAllEpochs(w, j, j.History)
		},
	}
	cmd.Flags().BoolVar(&epochs, "epochs", false, "list each epoch")
	d.flags(cmd)
	return cmd
}

func trainStop() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "stop JOB",
		Short: "Stop a job",
		Long: "Stops a job, which keeps a checkpoint: `hopmesh train resume` lets it go on. A job that has ended\n" +
			"stays as it is.",
		Example:           "  hopmesh train stop j1",
		Args:              oneArg("JOB"),
		ValidArgsFunction: suggest(&d, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Job, error) {
				if !d.json {
					defer tellStopping(ctx, c, args[0], cmd.ErrOrStderr())()
				}
				if err := c.StopJob(ctx, args[0]); err != nil {
					return api.Job{}, err
				}
				return c.Job(ctx, args[0])
			})
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), api.Done{ID: j.ID, OK: true})
			}
			said := "Job %s is %s.\n"
			if j.State == "running" {
				said = "Job %s is %s still: it stops when its node answers and has ended its step and written the checkpoint, which takes long for a large model. `hopmesh train show %[1]s` says whether it has.\n"
				if len(j.Nodes) > 1 {
					said = "Job %s is %s still: it stops when its nodes answer and have ended their step and written their checkpoints, which takes long for a large model. `hopmesh train show %[1]s` says whether it has.\n"
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), said, cell(j.ID), cell(j.State))
			return err
		},
	}
	d.flags(cmd)
	return cmd
}

// stopQuiet is how long who stops a job is told nothing. Tests are told sooner.
var stopQuiet = 2 * time.Second

// tellStopping says what is waited for if a job takes long to stop, until it is ended.
func tellStopping(ctx context.Context, c *api.Client, id string, to io.Writer) (end func()) {
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-over:
			return
		case <-time.After(stopQuiet):
		}
		if j, err := c.Job(ctx, id); err == nil && j.State == "running" {
			_, _ = fmt.Fprintf(to, "Waiting for %s to end the step under way: job %s is at epoch %s.\n", cell(strings.Join(j.Nodes, ", ")), cell(j.ID), standingAt(j))
		}
	})
	return func() {
		close(over)
		telling.Wait()
	}
}

func trainResume() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "resume JOB",
		Short: "Let a job go on that was stopped or has failed",
		Long: "Puts a job that was stopped or has failed into the queue again. It goes on from its last checkpoint\n" +
			"if a node that has it takes part, or begins anew if none of those is in the mesh any more. With --lr it\n" +
			"goes on at another learning rate, as a job needs that has diverged; a sweep can't.",
		Example:           "  hopmesh train resume j1\n  hopmesh train resume j1 --lr 0.001",
		Args:              oneArg("JOB"),
		ValidArgsFunction: suggest(&d, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := api.ResumeRequest{Rate: said(cmd.Flags(), "lr", cmd.Flags().GetFloat64)}
			if err := r.Check(); err != nil {
				return wrongUsage(cmd, "%v", err)
			}
			_, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.ResumeJob(ctx, args[0], r)
			})
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), api.Done{ID: args[0], OK: true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Job %s is in the queue; `hopmesh train watch %s` shows how it goes on.\n", cell(args[0]), cell(args[0]))
			return err
		},
	}
	cmd.Flags().Float64("lr", 0, "go on at this learning `RATE` (default: as before)")
	d.flags(cmd)
	return cmd
}

func trainRemove() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "remove JOB",
		Short: "Remove a job that has ended, with its model",
		Long: "Removes a job that has ended, with all that is known of its epochs: the nodes that trained it delete its\n" +
			"model and its checkpoint. What was exported or predicted stays. A job that waits or runs is stopped first,\n" +
			"with `hopmesh train stop`.",
		Example:           "  hopmesh export j1 --out model.safetensors\n  hopmesh train remove j1",
		Args:              oneArg("JOB"),
		ValidArgsFunction: suggest(&d, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.RemoveJob(ctx, args[0])
			})
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), api.Done{ID: args[0], OK: true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Job %s is removed.\n", cell(args[0]))
			return err
		},
	}
	d.flags(cmd)
	return cmd
}

func trainOptions(options func() []TrainOption) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "options [STRATEGY|MODEL]",
		Short: "List what `train start --set` can set",
		Long: "Lists the keys that `hopmesh train start --set KEY=VALUE` takes, with their values and defaults: all of\n" +
			"them, or those of a model or a strategy. --sweep KEY=V,V takes them too, but for train.metric and those of\n" +
			"strategies.",
		Example: "  hopmesh train options\n  hopmesh train options sage\n  hopmesh train options leap",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneArg("STRATEGY or MODEL")(cmd, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return optionTopics(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			list := options()
			if len(args) == 1 {
				var known bool
				if list, known = optionsOf(list, args[0]); !known {
					return wrongUsage(cmd, "there is no model or strategy %q%s", args[0], didYouMean(args[0], optionTopics()))
				}
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			return printOptions(cmd.OutOrStdout(), list)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func optionTopics() []string {
	var topics []string
	for _, t := range append(api.Models(), api.Strategies()...) {
		if t != "auto" {
			topics = append(topics, t)
		}
	}
	return topics
}

// optionsOf keeps those that a model or strategy takes: its own, and those of all
// models or of all strategies that share the work.
func optionsOf(list []TrainOption, topic string) (of []TrainOption, known bool) {
	of = []TrainOption{}
	model := slices.Contains(api.Models(), topic)
	sharing := !model && topic != "single"
	for _, o := range list {
		group, _, _ := strings.Cut(o.Key, ".")
		if group == topic || slices.Contains(strings.Split(o.Applies, ", "), topic) || model && (group == "model" || group == "train") || sharing && o.Applies == "strategies" {
			of = append(of, o)
		}
	}
	return of, slices.Contains(optionTopics(), topic)
}

func printOptions(w io.Writer, list []TrainOption) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "There is nothing to set.")
		return err
	}
	rows := [][]string{{"KEY", "VALUES", "DEFAULT", "WHAT IT IS"}}
	for _, o := range list {
		rows = append(rows, []string{o.Key, o.Values, o.Default, o.Help})
	}
	return table(w, rows...)
}

func printJobs(w io.Writer, list []api.JobSummary) error {
	rows := [][]string{{"JOB", "STATE", "DATASET", "MODEL", "STRATEGY", "EPOCH", "VAL", "TEST", "NODES"}}
	for _, j := range list {
		val, test := "", ""
		if j.Best != nil {
			val, test = share(j.Best.ValAccuracy), share(j.Best.TestAccuracy)
		}
		rows = append(rows, []string{
			j.ID, j.State, j.Dataset, modelsOf(j.Model, j.Models), j.Strategy, strconv.Itoa(j.Epoch) + "/" + strconv.Itoa(j.EpochsTotal), val, test, strings.Join(j.Nodes, ","),
		})
	}
	return table(w, rows...)
}

func jobIDs(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, j := range list {
		ids = append(ids, j.ID)
	}
	return ids, nil
}
