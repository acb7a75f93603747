// Package train has the commands of training: those of `hopmesh train`, predict and
// export. They are clients of a daemon; what trains is elsewhere.
package train

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// Command returns `hopmesh train`. all lists the settings of `train start --set`, and draw
// draws forecasts.
func Command(all func() []Option, strategies []string, draw Draw) *cobra.Command {
	return usage.Group(cobra.Command{
		Use:   "train",
		Short: "Start, watch, stop, resume and remove training jobs",
		Long: "A job trains one model, or all models of a sweep, on one dataset, on one node or on all nodes that own\n" +
			"shards of it. Jobs wait in a queue until their nodes are free. The results of each epoch are kept in the\n" +
			"plan; the model and its checkpoint are kept on the nodes that train it.",
		Example: "  hopmesh train start --dataset cora --watch\n  hopmesh train list",
	}, start(strategies), forecast(strategies, draw), list(), show(), watch(), stop(), resume(), remove(), options(all, strategies))
}

func list() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the jobs of the mesh",
		Long: "Lists the jobs of the mesh, oldest first, as the asked node knows them. VAL and TEST are the accuracies of\n" +
			"the epoch with the best validation accuracy. The mesh keeps 64 jobs: `hopmesh train remove` makes room\n" +
			"for more.",
		Example:           "  hopmesh train list\n  hopmesh train list --json | jq -r '.[] | select(.state == \"running\") | .id'",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) ([]api.JobSummary, error) { return c.Jobs(ctx) })
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), list)
			}
			return output.Jobs(cmd.OutOrStdout(), list)
		},
	}
	d.Add(cmd)
	return cmd
}

func stop() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "stop JOB",
		Short: "Stop a job",
		Long: "Stops a job and keeps a checkpoint, from which `hopmesh train resume` continues. A job that has ended is\n" +
			"not changed.",
		Example:           "  hopmesh train stop j1",
		Args:              usage.OneArg("JOB"),
		ValidArgsFunction: daemon.Suggest(&d, JobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Job, error) {
				if !d.JSON {
					defer announceStop(ctx, c, args[0], cmd.ErrOrStderr())()
				}
				if err := c.StopJob(ctx, args[0]); err != nil {
					return api.Job{}, err
				}
				return c.Job(ctx, args[0])
			})
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), api.Done{ID: j.ID, OK: true})
			}
			text := "Job %s is %s.\n"
			if j.State == "running" {
				text = "Job %s is still %s: it stops when its node answers and has finished its step and written the checkpoint, which takes long for a large model. See `hopmesh train show %[1]s`.\n"
				if len(j.Nodes) > 1 {
					text = "Job %s is still %s: it stops when its nodes answer and have finished their step and written their checkpoints, which takes long for a large model. See `hopmesh train show %[1]s`.\n"
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), text, output.Cell(j.ID), output.Cell(j.State))
			return err
		},
	}
	d.Add(cmd)
	return cmd
}

// stopQuiet is how long `train stop` waits before it prints what it waits for. Tests change it.
var stopQuiet = 2 * time.Second

// announceStop prints what `train stop` waits for if it takes long. The caller must call end.
func announceStop(ctx context.Context, c *api.Client, id string, to io.Writer) (end func()) {
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-over:
			return
		case <-time.After(stopQuiet):
		}
		if j, err := c.Job(ctx, id); err == nil && j.State == "running" {
			_, _ = fmt.Fprintf(to, "Waiting for %s to finish the current step: job %s is at epoch %s.\n", output.Cell(strings.Join(j.Nodes, ", ")), output.Cell(j.ID), output.Position(j))
		}
	})
	return func() {
		close(over)
		telling.Wait()
	}
}

func resume() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "resume JOB",
		Short: "Continue a job that was stopped or has failed",
		Long: "Puts a job that was stopped or has failed into the queue again. It continues from its last checkpoint if a\n" +
			"node with the checkpoint takes part, and starts over if none of these nodes is in the mesh any more. --lr\n" +
			"changes the learning rate, which a job that diverged needs. A sweep does not accept --lr.",
		Example:           "  hopmesh train resume j1\n  hopmesh train resume j1 --lr 0.001",
		Args:              usage.OneArg("JOB"),
		ValidArgsFunction: daemon.Suggest(&d, JobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := api.ResumeRequest{Rate: given(cmd.Flags(), "lr", cmd.Flags().GetFloat64)}
			if err := r.Check(); err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			_, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.ResumeJob(ctx, args[0], r)
			})
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), api.Done{ID: args[0], OK: true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Job %s is in the queue; watch it with `hopmesh train watch %s`.\n", output.Cell(args[0]), output.Cell(args[0]))
			return err
		},
	}
	cmd.Flags().Float64("lr", 0, "continue at this learning `RATE` (default: as before)")
	d.Add(cmd)
	return cmd
}

func remove() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "remove JOB",
		Short: "Remove a job that has ended, with its model",
		Long: "Removes a job that has ended and the results of its epochs. The nodes that trained it delete its model and\n" +
			"its checkpoint. Exported models and predictions stay. Stop a job that is queued or running first, with\n" +
			"`hopmesh train stop`.",
		Example:           "  hopmesh export j1 --out model.safetensors\n  hopmesh train remove j1",
		Args:              usage.OneArg("JOB"),
		ValidArgsFunction: daemon.Suggest(&d, JobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.RemoveJob(ctx, args[0])
			})
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), api.Done{ID: args[0], OK: true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Job %s is removed.\n", output.Cell(args[0]))
			return err
		},
	}
	d.Add(cmd)
	return cmd
}

// JobIDs lists the ids of all jobs, to complete arguments.
func JobIDs(ctx context.Context, c *api.Client) ([]string, error) {
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
