package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func status() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say how the node is doing, and what is wrong",
		Long: "Says how the node is doing, and in plain sentences what is wrong. Ends with exit code 0 only\n" +
			"if the node is ready: a leader is known and this node is in the plan.",
		Example:           "  hopmesh status\n  until hopmesh status >/dev/null 2>&1; do sleep 1; done",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Status, error) { return c.Status(ctx) })
			if err != nil {
				return err
			}
			if d.json {
				err = printJSON(cmd.OutOrStdout(), s)
			} else {
				err = printStatus(cmd.OutOrStdout(), s)
			}
			if err == nil && !s.Ready {
				return errSaid
			}
			return err
		},
	}
	d.flags(cmd)
	return cmd
}

func printStatus(w io.Writer, s api.Status) error {
	device := s.Device
	if s.DeviceReason != "" {
		device += " (" + s.DeviceReason + ")"
	}
	err := table(w,
		[]string{"Node", s.Node},
		[]string{"Ready", yesNo(s.Ready)},
		[]string{"Leader", s.Leader},
		[]string{"Generation", strconv.FormatUint(s.Generation, 10)},
		[]string{"Device", device},
		[]string{"Members", strconv.Itoa(s.Members)},
		[]string{"Jobs", strconv.Itoa(s.Jobs)},
	)
	if err != nil {
		return err
	}
	if len(s.Training) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := printJobs(w, s.Training); err != nil {
			return err
		}
	}
	problems := s.Problems
	switch {
	case len(problems) > 0:
	case s.Ready:
		problems = []string{"nothing is wrong"}
	default:
		problems = []string{"this node is not ready yet"}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	for _, p := range problems {
		if _, err := fmt.Fprintln(w, sentence(p)); err != nil {
			return err
		}
	}
	return nil
}
