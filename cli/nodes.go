package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// untilReady waits until the node knows a leader and is in the plan.
func untilReady(ctx context.Context, c *api.Client, within time.Duration) (api.Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errors.New("the node was admitted, but is not ready yet: `hopmesh status` says why"))
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		s, err := c.Status(ctx)
		if err != nil || s.Ready {
			return s, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	}
}

func members() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the nodes of the mesh",
		Long: "Lists the nodes of the mesh as the asked node sees them, with their status and role. It works without a\n" +
			"leader, too. The numbers are what each program speaks on the wire, keeps on disk and computes by: nodes work\n" +
			"together if they have one of the first in common, and share a job if they have one of the last.",
		Example:           "  hopmesh members\n  hopmesh members --json | jq -r '.[] | select(.status == \"failed\") | .name'",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) ([]api.Member, error) { return c.Members(ctx) })
			if err != nil {
				return err
			}
			slices.SortFunc(list, func(a, b api.Member) int {
				return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
			})
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), list)
			}
			rows := [][]string{{"NAME", "ID", "ADDRESS", "STATUS", "ROLE", "DEVICE", "SHARDS", "VERSION", "NUMBERS"}}
			for _, m := range list {
				status, numbers := m.Status, ""
				if m.Unlike != "" {
					status += ", other version"
				}
				if n := m.Numbers; n != nil {
					numbers = n.Wire + "/" + n.Disk + "/" + n.Computing
				}
				rows = append(rows, []string{m.Name, m.ID, m.Address, status, m.Role, m.Device, strconv.Itoa(m.Shards), m.Version, numbers})
			}
			return output.Table(cmd.OutOrStdout(), rows...)
		},
	}
	d.Add(cmd)
	return cmd
}

func status() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of the node and its problems",
		Long: "Shows the state of the node and lists its problems. The exit code is 0 only if the node is ready: a\n" +
			"leader is known and this node is in the plan.",
		Example:           "  hopmesh status\n  until hopmesh status >/dev/null 2>&1; do sleep 1; done",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Status, error) { return c.Status(ctx) })
			if err != nil {
				return err
			}
			if d.JSON {
				err = output.JSON(cmd.OutOrStdout(), s)
			} else {
				err = printStatus(cmd.OutOrStdout(), s)
			}
			if err == nil && !s.Ready {
				return usage.ErrPrinted
			}
			return err
		},
	}
	d.Add(cmd)
	return cmd
}

func printStatus(w io.Writer, s api.Status) error {
	device := s.Device
	if s.DeviceReason != "" {
		device += " (" + s.DeviceReason + ")"
	}
	err := output.Table(w,
		[]string{"Node", s.Node},
		[]string{"Ready", output.YesNo(s.Ready)},
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
		if err := output.Jobs(w, s.Training); err != nil {
			return err
		}
	}
	problems := s.Sentences()
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
		if _, err := fmt.Fprintln(w, output.Sentence(p)); err != nil {
			return err
		}
	}
	return nil
}

// joinTimeout is how long a node may take to be ready after it was admitted.
const joinTimeout = 30 * time.Second

func join() *cobra.Command {
	var d daemon.Flags
	var secret, file string
	cmd := &cobra.Command{
		Use:   "join HOST:PORT... --token-file FILE",
		Short: "Bring a running node that is in no mesh into one",
		Long: "Brings a running node that is in no mesh into one. HOST:PORT is a member's UDP address; the token\n" +
			"comes from `hopmesh token create` on any member. Returns when the node is in and ready.",
		Example:           "  hopmesh join 10.0.0.1:7946 10.0.0.2:7946 --token hm1-...\n  hopmesh join 10.0.0.1:7946 --token-file - < token",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf(cmd, "`hopmesh join` needs HOST:PORT of a member")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case secret != "" && file != "":
				return usage.Errorf(cmd, "--token and --token-file are both given: leave one of them out")
			case file != "":
				var err error
				if secret, err = ReadToken(cmd.Context(), file, cmd.InOrStdin()); err != nil {
					return err
				}
			case secret == "":
				return usage.Errorf(cmd, "`hopmesh join` needs --token TOKEN or --token-file FILE, with what `hopmesh token create` prints on a member")
			}
			s, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Status, error) {
				if err := c.Join(ctx, api.JoinRequest{Peers: args, Token: secret}); err != nil {
					return api.Status{}, err
				}
				return untilReady(ctx, c, joinTimeout)
			})
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), s)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is in the mesh, which has %s and is led by %s.\n", output.Cell(s.Node), output.Plural(s.Members, "member", "members"), output.Cell(s.Leader))
			return err
		},
	}
	cmd.Flags().StringVar(&secret, "token", "", "the join `TOKEN`")
	cmd.Flags().StringVar(&file, "token-file", "", "a `FILE` with the join token, or - for standard input")
	d.Add(cmd)
	return cmd
}

func leave() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Remove this node from its mesh for good",
		Long: "Removes this node from its mesh for good: its shards move to other nodes, its name becomes free, and its\n" +
			"agent ends. To stop a node for a while, end its agent with SIGTERM instead.",
		Example:           "  hopmesh leave",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				if err := c.Leave(ctx); err != nil {
					return none, err
				}
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "The node is leaving; its shards move to other nodes first.")
				return none, untilGone(ctx, c)
			})
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), api.Done{OK: true})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "The node has left its mesh, and its agent has ended.")
			return err
		},
	}
	d.Add(cmd)
	return cmd
}

// untilGone waits until the daemon has ended, which ends its stream of events. So does much else,
// such as a proxy that cuts it or a token that is revoked: only when nobody listens any more is the
// daemon gone.
func untilGone(ctx context.Context, c *api.Client) error {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		for _, err := range c.Events(ctx) {
			if err != nil {
				break // what it means is what the daemon answers now
			}
		}
		_, err := c.Status(ctx)
		refusal, answers := errors.AsType[*api.Error](err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, api.ErrNoDaemon):
			return nil
		case err == nil, errors.Is(err, api.ErrGone):
		case answers && refusal.Status == http.StatusServiceUnavailable:
			// Its membership has ended and its process has not: over TLS it knows no tokens now.
		default:
			return fmt.Errorf("the connection was lost while the node was leaving (%w): `hopmesh members` on another node shows whether it has left", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func forceLeave() *cobra.Command {
	var d daemon.Flags
	var revoke bool
	cmd := &cobra.Command{
		Use:   "force-leave NAME",
		Short: "Remove a failed node from the mesh",
		Long: "Removes a node that failed and will not come back. NAME is its name or its id. With --revoke the node is\n" +
			"excluded for good, even if it is alive: no node accepts its certificate any more, the gossip key is\n" +
			"replaced, and the tokens end that it joined by, made or passed on. Their ids are printed, and a join\n" +
			"command with a new token.",
		Example:           "  hopmesh force-leave gpu-7\n  hopmesh force-leave gpu-7 --revoke   # stolen, or no longer trusted",
		Args:              usage.OneArg("NAME"),
		ValidArgsFunction: daemon.Suggest(&d, removable),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			out, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.ForcedOut, error) {
				return c.ForceLeave(ctx, api.ForceLeaveRequest{Name: name, Revoke: revoke})
			})
			if err != nil {
				return err
			}
			if out.Warning != "" {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "Warning: %s\n", output.Sentence(out.Warning))
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), out)
			}
			text := "%s is no longer in the mesh.\n"
			if revoke {
				text = "%s is no longer in the mesh and can't come back; the gossip key is being replaced.\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), text, output.Cell(name))
			if err == nil && len(out.APITokens) > 0 {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "All API tokens have ended, since each may have been shown to it: %s. Make new ones with `hopmesh api token create`.\n", output.Cell(strings.Join(out.APITokens, ", ")))
			}
			if err == nil && len(out.Tokens) > 0 {
				err = printEnded(cmd.OutOrStdout(), out)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&revoke, "revoke", false, "exclude it for good, even if it is alive: refuse its certificate and replace the gossip key")
	d.Add(cmd)
	return cmd
}

// printEnded names the tokens that ended with a revoked node, and what takes their place.
func printEnded(w io.Writer, out api.ForcedOut) error {
	_, err := fmt.Fprintf(w, "These tokens, which it may have known, have ended: %s.\n", output.Cell(strings.Join(out.Tokens, ", ")))
	if err != nil {
		return err
	}
	if out.Join == "" {
		_, err = fmt.Fprintln(w, "A new one could not be made: `hopmesh token create` does.")
		return err
	}
	_, err = fmt.Fprintf(w, "\nOn the next machine, until %s:\n\n  %s\n", output.Moment(out.Expires), output.Cell(out.Join))
	return err
}

// removable lists the nodes that have not left yet.
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
