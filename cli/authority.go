package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func authority() *cobra.Command {
	return usage.Group(cobra.Command{
		Use:   "ca",
		Short: "Show and replace the mesh's certificate authority",
		Long: "All nodes of a mesh have certificates of its own authority, the CA, which its founder made. Voters hold the\n" +
			"CA's key.",
		Example: "  hopmesh ca show\n  hopmesh ca rotate",
	}, authorityShow(), authorityRotate())
}

func authorityShow() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the mesh's CA, and which nodes have no certificate of it yet",
		Long: "Shows the mesh's CA by the fingerprint of its key. While it replaces another, both are trusted, and the nodes\n" +
			"that have no certificate of the new one are listed.",
		Example:           "  hopmesh ca show",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ca, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.CA, error) { return c.CA(ctx) })
			if err != nil {
				return err
			}
			return printCA(cmd.OutOrStdout(), ca, d.JSON)
		},
	}
	d.Add(cmd)
	return cmd
}

func authorityRotate() *cobra.Command {
	var d daemon.Flags
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the mesh's CA, while jobs go on",
		Long: "Makes a new CA for the mesh. All nodes renew their certificates within seconds, and no job stops. Once each\n" +
			"node has a certificate of the new CA, the former one is trusted by nobody, and the join tokens made before\n" +
			"end. A node that is down holds that up: start it again, or remove it with force-leave. Run this after a voter\n" +
			"was revoked that may be in wrong hands.",
		Example:           "  hopmesh ca rotate\n  hopmesh ca rotate --wait 5m --json",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 {
				return usage.Errorf(cmd, "--wait %s is in the past: give a duration such as 1m, or 0 not to wait", wait)
			}
			ca, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.CA, error) {
				ca, err := c.RotateCA(ctx)
				if err != nil {
					return ca, err
				}
				return untilRotated(ctx, c, ca, wait)
			})
			if err != nil {
				return err
			}
			return printCA(cmd.OutOrStdout(), ca, d.JSON)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait until the former CA has ended, a `DURATION`")
	d.Add(cmd)
	return cmd
}

// untilRotated waits until the former CA has ended, or for so long.
func untilRotated(ctx context.Context, c *api.Client, ca api.CA, wait time.Duration) (api.CA, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for ca.Replacing {
		select {
		case <-again.C:
		case <-ctx.Done():
			return ca, nil
		}
		now, err := c.CA(ctx)
		if err != nil && ctx.Err() != nil {
			return ca, nil
		}
		if err != nil {
			return ca, err
		}
		ca = now
	}
	return ca, nil
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return strconv.FormatUint(n, 10) + " times"
}

func printCA(w io.Writer, ca api.CA, asJSON bool) error {
	if asJSON {
		return output.JSON(w, ca)
	}
	since, key := "the founder made it", "no"
	if ca.Named != nil {
		since = output.Moment(ca.Named)
	}
	if ca.Key {
		key = "yes"
	}
	err := output.Table(w, []string{"Fingerprint", ca.Fingerprint}, []string{"Replaced", times(ca.Serial)},
		[]string{"Since", since}, []string{"Key on this node", key})
	if err != nil || !ca.Replacing {
		return err
	}
	if len(ca.Waiting) == 0 {
		_, err = fmt.Fprint(w, "\nThe former CA is trusted for a moment longer.\n")
		return err
	}
	_, err = fmt.Fprintf(w, "\nThe former CA is trusted until these nodes have certificates of the new one: %s.\nStart those that are down, or remove them with `hopmesh force-leave`.\n",
		output.Cell(strings.Join(ca.Waiting, ", ")))
	return err
}
