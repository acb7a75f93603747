package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func token() *cobra.Command {
	return group(cobra.Command{
		Use:     "token",
		Short:   "Make, list and revoke the tokens that let nodes in",
		Long:    "A join token lets new nodes into the mesh, and lets them check that it is the right mesh.",
		Example: "  hopmesh token create --ttl 1h\n  hopmesh token list",
	}, tokenCreate(), tokenList(), tokenRevoke())
}

func tokenCreate() *cobra.Command {
	var d daemon
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token, and print the command that uses it",
		Long: "Makes a token and prints the command to type on the next machine. The mesh keeps only a digest of\n" +
			"it, so it can't be shown again. It is good for any number of nodes until it expires or is revoked.",
		Example:           "  hopmesh token create\n  hopmesh token create --ttl 1h --json | jq -r .join",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ttl < 0 {
				return wrongUsage(cmd, "--ttl %s is in the past: give a duration such as 24h, or 0 for ever", ttl)
			}
			t, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Token, error) { return c.CreateToken(ctx, ttl) })
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if d.json {
				return printJSON(w, t)
			}
			if err := table(w, []string{"Token", t.Token}, []string{"ID", t.ID}, []string{"Expires", moment(t.Expires)}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(w, "\nOn the next machine:\n\n  %s\n", cell(t.Join))
			return err
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 24*time.Hour, "how long it is good for, a `DURATION` such as 90m; 0 means for ever")
	d.flags(cmd)
	return cmd
}

func tokenList() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List the tokens that the mesh accepts",
		Long:              "Lists the tokens that the mesh accepts, by their ids. The tokens themselves are kept nowhere.",
		Example:           "  hopmesh token list",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) ([]api.TokenInfo, error) { return c.Tokens(ctx) })
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), list)
			}
			rows := [][]string{{"ID", "CREATED", "EXPIRES"}}
			for _, t := range list {
				rows = append(rows, []string{t.ID, moment(&t.Created), moment(t.Expires)})
			}
			return table(cmd.OutOrStdout(), rows...)
		},
	}
	d.flags(cmd)
	return cmd
}

func tokenRevoke() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:               "revoke ID",
		Short:             "End a token",
		Long:              "Ends a token: it lets nobody in any more. Nodes that came in with it stay.",
		Example:           "  hopmesh token revoke 3f9a01c2d4e5",
		Args:              oneArg("ID"),
		ValidArgsFunction: suggest(&d, tokenIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			_, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.RevokeToken(ctx, id)
			})
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), api.Done{ID: id, OK: true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Token %s lets nobody in any more.\n", cell(id))
			return err
		},
	}
	d.flags(cmd)
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
