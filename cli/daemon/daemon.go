// Package daemon connects commands to a daemon: its flags, its client, and completion
// from what it lists.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// Flags are the flags of every command that talks to a daemon.
type Flags struct {
	Addr string
	// TokenFile is where the token is that is shown to an API over TLS.
	TokenFile string
	JSON      bool
	// token is what was in TokenFile. A command may make several clients, and standard input or a
	// pipe has it only once.
	token string
}

// Add adds --addr, --api-token-file and --json to a command.
func (d *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.Addr, "addr", "", "`ADDR` of the daemon's API, unix:PATH, HOST:PORT or https://HOST:PORT (default: $HOPMESH_ADDR, else the socket in the default data directory)")
	cmd.Flags().StringVar(&d.TokenFile, "api-token-file", "", "a `FILE` with the token for --addr https://HOST:PORT, or - for standard input (default: $HOPMESH_API_TOKEN_FILE, else the token in $HOPMESH_API_TOKEN)")
	JSONFlag(cmd, &d.JSON)
}

// JSONFlag adds --json to a command.
func JSONFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print one JSON document")
}

// Client returns a client for --addr, $HOPMESH_ADDR or the default, in this order.
func (d *Flags) Client(cmd *cobra.Command) (*api.Client, error) {
	addr := cmp.Or(d.Addr, os.Getenv("HOPMESH_ADDR"))
	if addr == "" {
		// $HOPMESH_DATA_DIR also sets the data directory of the agent.
		dir := os.Getenv("HOPMESH_DATA_DIR")
		if dir == "" {
			dir = nearest(DataDir(), systemDir)
		}
		addr = "unix:" + filepath.Join(dir, socket)
	}
	if !api.IsTLS(addr) && d.TokenFile != "" {
		return nil, usage.Errorf(cmd, "a token is shown only over TLS, so --api-token-file goes with --addr https://HOST:PORT, and not with %s", addr)
	}
	var c *api.Client
	var token string
	var err error
	if api.IsTLS(addr) {
		if token, err = d.apiToken(cmd); err != nil {
			return nil, err
		}
	}
	if token == "" {
		c, err = api.NewClient(addr) // over TLS it says that one is missing
	} else {
		c, err = api.NewTLSClient(addr, token)
	}
	if err != nil {
		return nil, usage.Errorf(cmd, "%v", err)
	}
	return c, nil
}

// apiToken returns the token that is shown to an API over TLS, or "".
func (d *Flags) apiToken(cmd *cobra.Command) (string, error) {
	if d.token != "" {
		return d.token, nil
	}
	path := cmp.Or(d.TokenFile, os.Getenv("HOPMESH_API_TOKEN_FILE"))
	if path == "" {
		return os.Getenv("HOPMESH_API_TOKEN"), nil
	}
	line, from, err := usage.FirstLine(cmd.Context(), path, cmd.InOrStdin())
	if err != nil {
		return "", fmt.Errorf("read the API token: %w", err)
	}
	if line == "" {
		return "", fmt.Errorf("read the API token: the first line of %s is empty; put there what `hopmesh api token create --json | jq -r .token` prints", from)
	}
	d.token = line
	return line, nil
}

// Ask connects to the daemon and makes one request.
func Ask[T any](cmd *cobra.Command, d *Flags, get func(context.Context, *api.Client) (T, error)) (T, error) {
	c, err := d.Client(cmd)
	if err != nil {
		var none T
		return none, err
	}
	defer c.Close()
	return get(cmd.Context(), c)
}

// completeTimeout is how long a shell waits for the daemon.
const completeTimeout = time.Second

// Suggest completes one argument with a list from the daemon.
func Suggest(d *Flags, list func(context.Context, *api.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := Ask(cmd, d, func(ctx context.Context, c *api.Client) ([]string, error) {
			ctx, cancel := context.WithTimeout(ctx, completeTimeout)
			defer cancel()
			return list(ctx, c)
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
		}
		names = slices.DeleteFunc(names, func(n string) bool { // which the shell would pass to the terminal
			return strings.ContainsFunc(n, func(r rune) bool { return !unicode.IsPrint(r) })
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// socket is the name of the API's socket in a data directory.
const socket = "hopmesh.sock"

// nearest returns the data directory whose daemon is meant by a user that names none: the user's
// own, or where no daemon has made a socket there, the system's if that has one, or is closed to
// this user, who then learns for whom it is.
func nearest(own, system string) string {
	if _, err := os.Lstat(filepath.Join(own, socket)); !errors.Is(err, os.ErrNotExist) {
		return own
	}
	if _, err := os.Lstat(filepath.Join(system, socket)); err == nil || errors.Is(err, os.ErrPermission) {
		return system
	}
	return own
}

// systemDir is the data directory of an agent that root runs.
const systemDir = "/var/lib/hopmesh"

// DataDir returns the default data directory of an agent.
func DataDir() string {
	if os.Geteuid() == 0 {
		return systemDir
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hopmesh")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "" // the agent then asks for a --data-dir
	}
	return filepath.Join(home, ".local", "share", "hopmesh")
}
