package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func monitor() *cobra.Command {
	var d daemon
	var name string
	cmd := &cobra.Command{
		Use:   "monitor",
		Short: "Follow the node's log",
		Long: "Follows the node's log until interrupted, whatever level the agent itself logs at. With --json each\n" +
			"line is a JSON document.",
		Example:           "  hopmesh monitor\n  hopmesh monitor --level debug --json | jq -r .message",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var level slog.Level
			if err := level.UnmarshalText([]byte(name)); err != nil {
				return wrongUsage(cmd, "--level %q is none of %s", name, oneOf(logLevels()))
			}
			c, err := d.client(cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			show := logText
			if d.json {
				show = func(w io.Writer, l api.LogLine) error { return json.NewEncoder(w).Encode(l) }
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
				return nil // interrupted, which is how this ends
			}
			return fmt.Errorf("the daemon at %s has stopped", c.Addr())
		},
	}
	cmd.Flags().StringVar(&name, "level", "info", "the least `LEVEL` to show: debug, info, warn or error")
	completeFlag(cmd, "level", logLevels())
	d.flags(cmd)
	return cmd
}

func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

// logText prints a line for people: when, how bad, what, and the details.
func logText(w io.Writer, l api.LogLine) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-5s %s", l.Time.Format("2006-01-02T15:04:05.000Z07:00"), cell(l.Level), cell(l.Message))
	for _, k := range slices.Sorted(maps.Keys(l.Attrs)) {
		fmt.Fprintf(&b, " %s=%s", cell(k), quoted(l.Attrs[k]))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// quoted leaves plain words alone.
func quoted(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r == ' ' || r == '"' || r == '=' || !unicode.IsPrint(r)
	}) < 0
	if plain {
		return s
	}
	return strconv.Quote(s)
}
