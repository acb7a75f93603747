package cli

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func forceLeave() *cobra.Command {
	var d daemon
	var revoke bool
	cmd := &cobra.Command{
		Use:   "force-leave NAME",
		Short: "Make the mesh go on without a node that is gone",
		Long: "Makes the mesh go on without a node that failed and will not be back; NAME is its name or its id.\n" +
			"With --revoke the node is shut out for good, also if it is alive: its certificate is refused\n" +
			"everywhere, and the gossip key it knows is replaced.",
		Example:           "  hopmesh force-leave gpu-7\n  hopmesh force-leave gpu-7 --revoke   # stolen, or no longer trusted",
		Args:              oneArg("NAME"),
		ValidArgsFunction: suggest(&d, removable),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			_, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.ForceLeave(ctx, api.ForceLeaveRequest{Name: name, Revoke: revoke})
			})
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), api.Done{Name: name, OK: true})
			}
			text := "%s is no longer in the mesh.\n"
			if revoke {
				text = "%s is no longer in the mesh, and never will be again; the gossip key is being replaced.\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), text, cell(name))
			return err
		},
	}
	cmd.Flags().BoolVar(&revoke, "revoke", false, "also if it is alive: refuse its certificate for ever and replace the gossip key")
	d.flags(cmd)
	return cmd
}

// removable names the nodes that are not gone already.
func removable(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Members(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range list {
		if m.Status != "left" {
			names = append(names, m.Name)
		}
	}
	return names, nil
}
