package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func planGroup() *cobra.Command {
	return group(cobra.Command{
		Use:     "plan",
		Short:   "Look at the plan that the mesh has agreed on",
		Long:    "The plan is what the nodes have agreed on: who is in the mesh, and who does what.",
		Example: "  hopmesh plan show",
	}, planShow())
}

func planShow() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the plan in force",
		Long: "Shows the plan in force, as this node knows it. Nodes with the same digest hold the same plan. It is\n" +
			"answered from local state, so it works without a leader too.",
		Example:           "  hopmesh plan show\n  hopmesh plan show --json | jq .generation",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Plan, error) { return c.Plan(ctx) })
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), p)
			}
			return printPlan(cmd.OutOrStdout(), p)
		},
	}
	d.flags(cmd)
	return cmd
}

func printPlan(w io.Writer, p api.Plan) error {
	key := fmt.Sprintf("number %d", p.Key.Serial)
	if p.Key.Rotating {
		key += ", being replaced"
	}
	members := [][]string{{"NAME", "ID", "ROLE", "DEVICE", "MEMORY", "VERSION", "LEAVING"}}
	for _, m := range p.Members {
		members = append(members, []string{m.Name, m.ID, m.Role, m.Device, formatSize(m.Memory), m.Version, yesNo(m.Leaving)})
	}
	gone := [][]string{{"GONE", "ID", "WHY"}}
	for _, g := range p.Gone {
		gone = append(gone, []string{g.Name, g.ID, g.Why})
	}
	sections := [][][]string{{
		{"Mesh", p.MeshID},
		{"Generation", strconv.FormatUint(p.Generation, 10)},
		{"Index", strconv.FormatUint(p.Index, 10)},
		{"Leader", p.Leader},
		{"Gossip key", key},
		{"Tokens", strconv.Itoa(p.Tokens)},
		{"Digest", p.Digest},
	}, members}
	if len(p.Gone) > 0 {
		sections = append(sections, gone)
	}
	for i, rows := range sections {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := table(w, rows...); err != nil {
			return err
		}
	}
	if len(p.Jobs) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := printJobs(w, p.Jobs); err != nil {
		return err
	}
	return printOwners(w, p.Jobs)
}

// printOwners says of jobs whose nodes share the work which shards each of them owns
// in it. Which roots it computes is for the strategy to say.
func printOwners(w io.Writer, jobs []api.JobSummary) error {
	rows := [][]string{{"JOB", "NODE", "OWNS"}}
	for _, j := range jobs {
		of := make([][]int, len(j.Nodes))
		for shard, n := range j.Owners {
			if n >= 0 && n < len(of) {
				of[n] = append(of[n], shard)
			}
		}
		for n, shards := range of {
			if len(shards) > 0 {
				rows = append(rows, []string{j.ID, j.Nodes[n], runs(shards)})
			}
		}
	}
	if len(rows) == 1 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return table(w, rows...)
}
