package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func apiGroup() *cobra.Command {
	return usage.Group(cobra.Command{
		Use:     "api",
		Short:   "Create, list and revoke tokens for the API",
		Long:    "Where a node serves its API to other machines, with `hopmesh agent --api https://HOST:PORT`, clients show a\ntoken. Every node of the mesh accepts it.",
		Example: "  hopmesh api token create --scope read",
	}, usage.Group(cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke tokens for the API",
		Long: "A token lets its holder use the API of any node of the mesh over TLS: to read, or to operate datasets and\n" +
			"jobs, too. It also proves to the client that it speaks with a node of the mesh.",
		Example: "  hopmesh api token create --scope operate --expires 24h --name ci\n  hopmesh api token list",
	}, accessCreate(), accessList(), accessRevoke()))
}

func accessCreate() *cobra.Command {
	var d daemon.Flags
	var r api.AccessRequest
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "create --scope read|operate",
		Short: "Create a token for the API",
		Long: "Creates a token. The mesh keeps only a digest of it, so it can't be shown again. With the scope read it reads\n" +
			"what any user of a machine may read on loopback; with operate it changes datasets and jobs, too. No scope\n" +
			"lets anybody in, shows a key or takes a backup: that is done on a node.",
		Example: "  hopmesh api token create --scope read --json | jq -r .token > token\n" +
			"  hopmesh status --addr https://10.0.0.1:7947 --api-token-file token",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if life < 0 {
				return usage.Errorf(cmd, "--expires %s is in the past: give a duration such as 24h, or 0 for ever", life)
			}
			r.TTL = life.String()
			if r.Scope == "" {
				return usage.Errorf(cmd, "what the token is for is missing: give --scope %s", usage.OneOf(api.Scopes()))
			}
			if err := r.Check(); err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			t, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.AccessToken, error) { return c.GrantAccess(ctx, r) })
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if d.JSON {
				return output.JSON(w, t)
			}
			if err := output.Table(w, []string{"Token", t.Token}, []string{"ID", t.ID}, []string{"Scope", t.Scope}, []string{"Expires", output.Moment(t.Expires)}); err != nil {
				return err
			}
			_, err = fmt.Fprint(w, "\nPut it into a file. Where an agent runs with --api https://HOST:PORT, from any machine:\n\n  hopmesh status --addr https://HOST:PORT --api-token-file FILE\n")
			return err
		},
	}
	cmd.Flags().StringVar(&r.Scope, "scope", "", "what its holder may do, a `SCOPE`: read or operate")
	cmd.Flags().DurationVar(&life, "expires", 30*24*time.Hour, "how long it is valid, a `DURATION` such as 24h; 0: for ever")
	cmd.Flags().StringVar(&r.Name, "name", "", "what it is for, a `NAME` for the list")
	usage.CompleteFlag(cmd, "scope", api.Scopes())
	d.Add(cmd)
	return cmd
}

func accessList() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List the tokens for the API",
		Long:              "Lists the tokens for the API by their ids: what they are for, what they allow and when they end. The tokens\nthemselves are not stored.",
		Example:           "  hopmesh api token list",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) ([]api.AccessInfo, error) { return c.Access(ctx) })
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), list)
			}
			rows := [][]string{{"ID", "NAME", "SCOPE", "CREATED", "EXPIRES"}}
			for _, t := range list {
				rows = append(rows, []string{t.ID, t.Name, t.Scope, output.Moment(&t.Created), output.Moment(t.Expires)})
			}
			return output.Table(cmd.OutOrStdout(), rows...)
		},
	}
	d.Add(cmd)
	return cmd
}

func accessRevoke() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:               "revoke ID",
		Short:             "Revoke a token for the API",
		Long:              "Revokes a token for the API. Requests under way by it end within seconds.",
		Example:           "  hopmesh api token revoke 5f9a01c2d4e5",
		Args:              usage.OneArg("ID"),
		ValidArgsFunction: daemon.Suggest(&d, accessIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			_, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.RevokeAccess(ctx, id)
			})
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), api.Done{ID: id, OK: true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "The API token %s is revoked.\n", output.Cell(id))
			return err
		},
	}
	d.Add(cmd)
	return cmd
}

func accessIDs(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Access(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, t := range list {
		ids = append(ids, t.ID)
	}
	return ids, nil
}
