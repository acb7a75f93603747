package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// joinTimeout is how long a node that was let in may take to be ready.
const joinTimeout = 30 * time.Second

func join() *cobra.Command {
	var d daemon
	var secret string
	cmd := &cobra.Command{
		Use:   "join HOST:PORT... --token TOKEN",
		Short: "Bring a running node that is in no mesh into one",
		Long: "Brings a running node that is in no mesh into one. HOST:PORT is a member's UDP address; the token\n" +
			"comes from `hopmesh token create` on any member. Returns when the node is in and ready.",
		Example:           "  hopmesh join 10.0.0.1:7946 10.0.0.2:7946 --token hm1-...",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrongUsage(cmd, "`hopmesh join` needs HOST:PORT of a member")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if secret == "" {
				return wrongUsage(cmd, "`hopmesh join` needs --token TOKEN, which `hopmesh token create` prints on a member")
			}
			s, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Status, error) {
				if err := c.Join(ctx, api.JoinRequest{Peers: args, Token: secret}); err != nil {
					return api.Status{}, err
				}
				return untilReady(ctx, c, joinTimeout)
			})
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), s)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is in the mesh, which has %d members and is led by %s.\n", cell(s.Node), s.Members, cell(s.Leader))
			return err
		},
	}
	cmd.Flags().StringVar(&secret, "token", "", "the `TOKEN` that lets this node in")
	d.flags(cmd)
	return cmd
}
