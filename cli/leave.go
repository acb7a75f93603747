package cli

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func leave() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Take the node out of its mesh for good",
		Long: "Takes the node out of its mesh for good: it gives away what it holds, its name becomes free, and its\n" +
			"agent ends. To stop a node that is to come back, end its agent with SIGTERM instead.",
		Example:           "  hopmesh leave",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				if err := c.Leave(ctx); err != nil {
					return none, err
				}
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "The node is leaving; it gives away what it holds first.")
				return none, untilGone(ctx, c)
			})
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), api.Done{OK: true})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "The node has left its mesh, and its agent has ended.")
			return err
		},
	}
	d.flags(cmd)
	return cmd
}

// untilGone waits for the end of the daemon, which ends the stream of its
// events. If it was quicker than the question, there is no stream at all, so
// that no error matters here but the user's impatience.
func untilGone(ctx context.Context, c *api.Client) error {
	for _, err := range c.Events(ctx) {
		if err != nil {
			break
		}
	}
	return context.Cause(ctx)
}
