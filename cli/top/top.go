// Package top is the full-screen view of a mesh in a terminal, `hopmesh top`.
package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Command returns `hopmesh top`.
func Command() *cobra.Command {
	var d daemon.Flags
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the mesh live in a terminal",
		Long: "Shows the mesh as the asked node sees it, twice a second: the nodes, the jobs and their progress, the time\n" +
			"and traffic of an epoch, problems and events. If the daemon goes away, waits until it is back.\n\n" +
			"Keys: q quits, the arrows and tab choose a job, p pauses.\n\n" +
			"It needs a terminal; --once prints the view once and exits, --json prints it as one JSON document. There\n" +
			"are no colours if $NO_COLOR is set.",
		Example:           "  hopmesh top\n  hopmesh top --once\n  hopmesh top --json | jq -r '.job.history[-1].phases'",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := d.Client(cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			if once || d.JSON {
				return printOnce(cmd.Context(), cmd.OutOrStdout(), c, d.JSON)
			}
			in, typed := terminal(cmd.InOrStdin())
			out, shown := terminal(cmd.OutOrStdout())
			if !typed || !shown || os.Getenv("TERM") == "dumb" {
				return usage.Errorf(cmd, "`%s` needs a terminal to show the mesh in: --once or --json prints it once", cmd.CommandPath())
			}
			return watchMesh(cmd.Context(), c, in, out)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print the view once and exit; needs no terminal")
	d.Add(cmd)
	return cmd
}

func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// printOnce prints the view once: as JSON, or as text of any height without colours.
func printOnce(ctx context.Context, w io.Writer, c *api.Client, asJSON bool) error {
	m := newModel(c.Addr(), false)
	seen, err := look(ctx, c, "")
	if err != nil {
		return err
	}
	if asJSON {
		return output.JSON(w, seen)
	}
	m.width, m.height = 100, unbounded
	m.once = true
	m.take(sight{at: output.Clock(), mesh: seen})
	_, err = fmt.Fprintln(w, m.frame())
	return err
}

// watchMesh shows the mesh until the user quits or the context ends, and then restores the
// terminal. Signals that would end the program at once therefore only end the context.
func watchMesh(ctx context.Context, c *api.Client, in, out *os.File) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	asking, enough := context.WithCancel(ctx)
	defer enough()
	m := newModel(c.Addr(), os.Getenv("NO_COLOR") == "")
	m.look = func(chosen string) tea.Cmd {
		return func() tea.Msg {
			begun := output.Clock()
			seen, err := look(asking, c, chosen)
			at := output.Clock()
			return sight{at: at, took: at.Sub(begun), mesh: seen, err: err}
		}
	}
	p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	// Not ended by the context, which would not wait for the reader of the terminal.
	defer context.AfterFunc(ctx, p.Quit)()
	var listening sync.WaitGroup
	listening.Go(func() { listen(asking, c, func(e api.Event) { p.Send(happened(e)) }) })
	_, err := p.Run()
	enough()
	listening.Wait()
	if err != nil {
		return fmt.Errorf("show the mesh in this terminal: %w", err)
	}
	return nil
}
