package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func top() *cobra.Command {
	var d daemon
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the mesh live in a terminal",
		Long: "Shows the mesh as the asked node sees it, twice a second: the nodes, the jobs and how far they are,\n" +
			"where the time of an epoch goes and what is sent, what is wrong, and what happens. A daemon that goes\n" +
			"away is asked again until it is back.\n\n" +
			"Keys: q quits, the arrows and tab choose a job, p pauses.\n\n" +
			"It needs a terminal; --once prints what it would show and ends, --json does so as one JSON document.\n" +
			"There are no colours where $NO_COLOR is set.",
		Example:           "  hopmesh top\n  hopmesh top --once\n  hopmesh top --json | jq -r '.job.history[-1].phases'",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := d.client(cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			if once || d.json {
				return printOnce(cmd.Context(), cmd.OutOrStdout(), c, d.json)
			}
			in, typed := terminal(cmd.InOrStdin())
			out, shown := terminal(cmd.OutOrStdout())
			if !typed || !shown || os.Getenv("TERM") == "dumb" {
				return wrongUsage(cmd, "`%s` needs a terminal to show the mesh in: --once or --json prints it once", cmd.CommandPath())
			}
			return watchMesh(cmd.Context(), c, in, out)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print once what it would show, for no terminal")
	d.flags(cmd)
	return cmd
}

func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// printOnce prints one look at the mesh: as JSON, or as a frame that is as high as it
// takes, without colours.
func printOnce(ctx context.Context, w io.Writer, c *api.Client, asJSON bool) error {
	m := newTop(c.Addr(), false)
	seen, err := look(ctx, c, "")
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(w, seen)
	}
	m.width, m.height = 100, unbounded
	m.once = true
	m.take(sight{at: clock(), mesh: seen})
	_, err = fmt.Fprintln(w, m.frame())
	return err
}

// watchMesh shows the mesh until the user has seen enough or the program is to end,
// and leaves the terminal as it was. Signals that would end the program at once end
// only the context here, for that reason.
func watchMesh(ctx context.Context, c *api.Client, in, out *os.File) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	asking, enough := context.WithCancel(ctx)
	defer enough()
	m := newTop(c.Addr(), os.Getenv("NO_COLOR") == "")
	m.look = func(chosen string) tea.Cmd {
		return func() tea.Msg {
			begun := clock()
			seen, err := look(asking, c, chosen)
			at := clock()
			return sight{at: at, took: at.Sub(begun), mesh: seen, err: err}
		}
	}
	p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	// Not ended by the context: then it would not wait for its reader.
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
