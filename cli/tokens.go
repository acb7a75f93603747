package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func token() *cobra.Command {
	return usage.Group(cobra.Command{
		Use:     "token",
		Short:   "Create, list and revoke join tokens",
		Long:    "A new node needs a join token to enter the mesh. The token also proves to the node that it is the right mesh.",
		Example: "  hopmesh token create --ttl 1h\n  hopmesh token list",
	}, tokenCreate(), tokenList(), tokenRevoke())
}

func tokenCreate() *cobra.Command {
	var d daemon.Flags
	var ttl time.Duration
	var uses uint64
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print the command that uses it",
		Long: "Creates a token and prints the command for the next machine. The mesh keeps only a digest of it, so it\n" +
			"can't be shown again. Any number of nodes can use it until it expires or is revoked, or as many as --uses\n" +
			"says.",
		Example:           "  hopmesh token create\n  hopmesh token create --ttl 1h --uses 1 --json | jq -r .join",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ttl < 0 {
				return usage.Errorf(cmd, "--ttl %s is in the past: give a duration such as 24h, or 0 for ever", ttl)
			}
			if uses == 0 && cmd.Flags().Changed("uses") {
				return usage.Errorf(cmd, "--uses 0 would admit nobody: give the number of nodes, or leave it out for any number")
			}
			t, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Token, error) { return c.CreateToken(ctx, ttl, uses) })
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if d.JSON {
				return output.JSON(w, t)
			}
			if err := output.Table(w, []string{"Token", t.Token}, []string{"ID", t.ID}, []string{"Expires", output.Moment(t.Expires)}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(w, "\nOn the next machine:\n\n  %s\n", output.Cell(t.Join))
			return err
		},
	}
	cmd.Flags().Uint64Var(&uses, "uses", 0, "how many nodes it admits, a `NUMBER` (default: any number)")
	cmd.Flags().DurationVar(&ttl, "ttl", 24*time.Hour, "how long it is valid, a `DURATION` such as 90m; 0: for ever")
	d.Add(cmd)
	return cmd
}

func tokenList() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens that the mesh accepts",
		Long: "Lists the tokens that the mesh accepts, by their ids: when they end, how many nodes they still admit, the\n" +
			"node that each was asked of, and the nodes that joined by it. The tokens themselves are not stored.",
		Example:           "  hopmesh token list",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) ([]api.TokenInfo, error) { return c.Tokens(ctx) })
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), list)
			}
			rows := [][]string{{"ID", "CREATED", "EXPIRES", "USES LEFT", "OWNER", "JOINED"}}
			for _, t := range list {
				left := "any"
				if t.Left != nil {
					left = strconv.FormatUint(*t.Left, 10)
				}
				rows = append(rows, []string{t.ID, output.Moment(&t.Created), output.Moment(t.Expires), left, t.Owner, strings.Join(t.Nodes, ", ")})
			}
			return output.Table(cmd.OutOrStdout(), rows...)
		},
	}
	d.Add(cmd)
	return cmd
}

func tokenRevoke() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:               "revoke ID",
		Short:             "Revoke a token",
		Long:              "Revokes a token: no node can join with it any more. Nodes that joined with it stay.",
		Example:           "  hopmesh token revoke 3f9a01c2d4e5",
		Args:              usage.OneArg("ID"),
		ValidArgsFunction: daemon.Suggest(&d, tokenIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			_, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.RevokeToken(ctx, id)
			})
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), api.Done{ID: id, OK: true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Token %s is revoked.\n", output.Cell(id))
			return err
		},
	}
	d.Add(cmd)
	return cmd
}

func tokenIDs(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, t := range list {
		ids = append(ids, t.ID)
	}
	return ids, nil
}
