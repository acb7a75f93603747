package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func members() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the nodes of the mesh",
		Long: "Lists the nodes of the mesh, as the asked node sees them: who is alive, who leads, who votes.\n" +
			"It is answered from local state, so it works without a leader too.",
		Example:           "  hopmesh members\n  hopmesh members --json | jq -r '.[] | select(.status == \"failed\") | .name'",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) ([]api.Member, error) { return c.Members(ctx) })
			if err != nil {
				return err
			}
			slices.SortFunc(list, func(a, b api.Member) int {
				return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
			})
			if d.json {
				return printJSON(cmd.OutOrStdout(), list)
			}
			rows := [][]string{{"NAME", "ID", "ADDRESS", "STATUS", "ROLE", "DEVICE", "SHARDS", "VERSION"}}
			for _, m := range list {
				rows = append(rows, []string{m.Name, m.ID, m.Address, m.Status, m.Role, m.Device, strconv.Itoa(m.Shards), m.Version})
			}
			return table(cmd.OutOrStdout(), rows...)
		},
	}
	d.flags(cmd)
	return cmd
}
