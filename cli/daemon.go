package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// daemon holds the two flags of every command that talks to one.
type daemon struct {
	addr string
	json bool
}

func (d *daemon) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.addr, "addr", "", "`ADDR` of the daemon's API, unix:PATH or HOST:PORT (default: $HOPMESH_ADDR, else the socket in the default data directory)")
	jsonFlag(cmd, &d.json)
}

func jsonFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print one JSON document")
}

// client makes a client for --addr, $HOPMESH_ADDR or the default, in this order.
func (d *daemon) client(cmd *cobra.Command) (*api.Client, error) {
	addr := cmp.Or(d.addr, os.Getenv("HOPMESH_ADDR"))
	if addr == "" {
		// An agent told by $HOPMESH_DATA_DIR where to live is found by it too.
		dir := cmp.Or(os.Getenv("HOPMESH_DATA_DIR"), defaultDataDir())
		addr = "unix:" + filepath.Join(dir, "hopmesh.sock")
	}
	c, err := api.NewClient(addr)
	if err != nil {
		return nil, wrongUsage(cmd, "%v", err)
	}
	return c, nil
}

// ask gets an answer from the daemon.
func ask[T any](cmd *cobra.Command, d *daemon, get func(context.Context, *api.Client) (T, error)) (T, error) {
	c, err := d.client(cmd)
	if err != nil {
		var none T
		return none, err
	}
	defer c.Close()
	return get(cmd.Context(), c)
}

// completeTimeout is how long a shell may wait for the daemon's suggestions.
const completeTimeout = time.Second

// suggest completes one argument with what the daemon lists.
func suggest(d *daemon, list func(context.Context, *api.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := ask(cmd, d, func(ctx context.Context, c *api.Client) ([]string, error) {
			ctx, cancel := context.WithTimeout(ctx, completeTimeout)
			defer cancel()
			return list(ctx, c)
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// untilReady waits until the node knows a leader and is in its plan.
func untilReady(ctx context.Context, c *api.Client, within time.Duration) (api.Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errors.New("the node was let in, but is not ready yet: `hopmesh status` says why"))
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
