package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/train"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func planGroup() *cobra.Command {
	return usage.Group(cobra.Command{
		Use:     "plan",
		Short:   "Show the plan that the nodes have agreed on",
		Long:    "The plan is what the nodes have agreed on: the members of the mesh, its datasets and its jobs.",
		Example: "  hopmesh plan show",
	}, planShow())
}

func planShow() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "show [JOB]",
		Short: "Show the plan in force, or the schedule of a job",
		Long: "Shows the plan in force, as this node knows it. Nodes with the same digest have the same plan. It works\n" +
			"without a leader, too. Of a JOB it shows the schedule: how its nodes share the epochs, from which epoch on,\n" +
			"and why.",
		Example:           "  hopmesh plan show\n  hopmesh plan show j1\n  hopmesh plan show --json | jq .generation",
		Args:              usage.MaybeArg("JOB"),
		ValidArgsFunction: daemon.Suggest(&d, train.JobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return showSchedule(cmd, &d, args[0])
			}
			p, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Plan, error) { return c.Plan(ctx) })
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), p)
			}
			return printPlan(cmd.OutOrStdout(), p)
		},
	}
	d.Add(cmd)
	return cmd
}

func printPlan(w io.Writer, p api.Plan) error {
	key := fmt.Sprintf("number %d", p.Key.Serial)
	if p.Key.Rotating {
		key += ", being replaced"
	}
	members := [][]string{{"NAME", "ID", "ROLE", "DEVICE", "MEMORY", "VERSION", "LEAVING"}}
	for _, m := range p.Members {
		members = append(members, []string{m.Name, m.ID, m.Role, m.Device, output.Size(m.Memory), m.Version, output.YesNo(m.Leaving)})
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
		if err := output.Table(w, rows...); err != nil {
			return err
		}
	}
	if len(p.Jobs) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := output.Jobs(w, p.Jobs); err != nil {
		return err
	}
	return printOwners(w, p.Jobs)
}

// showSchedule shows the schedule of a job.
func showSchedule(cmd *cobra.Command, d *daemon.Flags, job string) error {
	j, err := daemon.Ask(cmd, d, func(ctx context.Context, c *api.Client) (api.Job, error) { return c.Job(ctx, job) })
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if d.JSON {
		return output.JSON(w, slices.Concat([]api.JobEntry{}, j.Schedule))
	}
	if len(j.Schedule) == 0 {
		_, err := fmt.Fprintf(w, "The plan has no schedule of job %s yet.\n", j.ID)
		return err
	}
	rows := [][]string{{"FROM", "GENERATION", "STRATEGY", "HOW", "LR", "WHY"}}
	for _, e := range j.Schedule {
		rate := "of each model"
		if e.Rate > 0 {
			rate = strconv.FormatFloat(e.Rate, 'g', -1, 64)
		}
		rows = append(rows, []string{strconv.Itoa(e.From), strconv.FormatUint(e.Generation, 10), e.Strategy, e.How, rate, e.Why})
	}
	return output.Table(w, rows...)
}

// printOwners lists the shards that each node of a distributed job owns.
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
				rows = append(rows, []string{j.ID, j.Nodes[n], output.ShardList(shards)})
			}
		}
	}
	if len(rows) == 1 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return output.Table(w, rows...)
}

func monitor() *cobra.Command {
	var d daemon.Flags
	var name string
	cmd := &cobra.Command{
		Use:   "monitor",
		Short: "Follow the node's log",
		Long: "Follows the node's log until interrupted. --level is independent of the agent's own log level. With\n" +
			"--json each line is a JSON document.",
		Example:           "  hopmesh monitor\n  hopmesh monitor --level debug --json | jq -r .message",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var level slog.Level
			if err := level.UnmarshalText([]byte(name)); err != nil {
				return usage.Errorf(cmd, "--level %q is none of %s", name, usage.OneOf(logLevels()))
			}
			c, err := d.Client(cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			show := logText
			if d.JSON {
				show = func(w io.Writer, l api.LogLine) error { return output.JSONLine(w, l) }
			}
			for line, err := range c.Logs(cmd.Context(), level) {
				if err == nil {
					err = show(cmd.OutOrStdout(), line)
				}
				if err != nil {
					return err
				}
			}
			if cmd.Context().Err() != nil {
				return nil // interrupted by the user
			}
			return fmt.Errorf("the daemon at %s has stopped", c.Addr())
		},
	}
	cmd.Flags().StringVar(&name, "level", "info", "the lowest `LEVEL` to show: debug, info, warn or error")
	usage.CompleteFlag(cmd, "level", logLevels())
	d.Add(cmd)
	return cmd
}

func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

// logText prints a log line as text.
func logText(w io.Writer, l api.LogLine) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-5s %s", l.Time.Format("2006-01-02T15:04:05.000Z07:00"), output.Cell(l.Level), output.Cell(l.Message))
	for _, k := range slices.Sorted(maps.Keys(l.Attrs)) {
		fmt.Fprintf(&b, " %s=%s", output.Cell(k), quoted(l.Attrs[k]))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// quoted quotes a value unless it is a plain word.
func quoted(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r == ' ' || r == '"' || r == '=' || !unicode.IsPrint(r)
	}) < 0
	if plain {
		return s
	}
	return strconv.Quote(s)
}
