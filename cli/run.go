package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func runScript() *cobra.Command {
	var d daemon.Flags
	var r api.RunRequest
	var nodes string
	cmd := &cobra.Command{
		Use:   "run [--nodes all|N] SCRIPT [ARGUMENT...]",
		Short: "Run a Python script beside the nodes",
		Long: "Runs a Python script beside every node, such as one that trains a PyTorch model of yours on a loader of\n" +
			"the mesh, and prints what it prints, with the node's name in front. The file alone is sent: what it imports\n" +
			"is installed on the nodes, and it runs in a folder of its own there. HOPMESH_RANK and HOPMESH_SIZE say\n" +
			"which of the nodes it is beside, as they were at the start.\n\n" +
			"When a node dies, the others start the script again, which goes on from its last checkpoint; so they do\n" +
			"when one joins or comes back. If the script fails beside one node, it is ended beside all, and its job is\n" +
			"stopped; so it is if this command is interrupted. If the daemon that this command talks to dies, give\n" +
			"--run and the word of the run at another: its job goes on from the last checkpoint.\n\n" +
			"Nodes run scripts if their agents are started with --python; those that listen on loopback do without it.\n" +
			"Flags after SCRIPT are the script's. The script gets no credentials of the agent's environment, only what\n" +
			"programs need, such as PATH, HOME, PYTHON* and CUDA_*. What it starts in a session of its own goes on when\n" +
			"the run ends, and so does all that it has started when an agent is killed by kill -9.",
		Example: "  hopmesh run train.py\n  hopmesh run --nodes all train.py --hidden 64\n  hopmesh run --run night train.py",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf(cmd, "`%s` needs SCRIPT: a Python file", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if nodes != "all" {
				n, err := strconv.Atoi(nodes)
				if err != nil || n < 1 {
					return usage.Errorf(cmd, "--nodes is %q: give all, or how many", nodes)
				}
				r.Nodes = n
			}
			// Reading a pipe might never end.
			if info, err := os.Stat(args[0]); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
				return usage.Errorf(cmd, "the script %s is a device, a pipe or a socket: name a Python file", args[0])
			}
			script, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read the script: %w", err)
			}
			r.Name, r.Script, r.Args = filepath.Base(args[0]), string(script), args[1:]
			if err := r.Check(); err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			return followRun(cmd, &d, r)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the script is its own
	cmd.Flags().StringVar(&nodes, "nodes", "all", "beside how many `NODES`: all, or a number; a loader needs the script beside all that have a part of its job")
	cmd.Flags().StringVar(&r.Run, "run", "", "the `WORD` of a run that was cut off, whose job is to go on (default: a new one)")
	d.Add(cmd)
	return cmd
}

// followRun runs the script and prints its output: to stderr if a document follows on stdout.
func followRun(cmd *cobra.Command, d *daemon.Flags, r api.RunRequest) error {
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if d.JSON {
		out = notes
	}
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	done, err := daemon.Ask(cmd, d, func(_ context.Context, c *api.Client) (api.RunDone, error) {
		return c.RunScript(ctx, r, func(e api.RunEvent) {
			var err error
			switch {
			case e.Started != nil:
				_, err = fmt.Fprintf(notes, "run %s beside %s\n", output.Cell(e.Started.Run), output.Cell(strings.Join(e.Started.Nodes, ", ")))
			case e.Line != nil:
				_, err = fmt.Fprintf(out, "%s: %s\n", output.Cell(e.Node), output.Lines(*e.Line))
			case e.Note != "":
				_, err = fmt.Fprintf(notes, "%s: %s\n", output.Cell(e.Node), output.Cell(e.Note))
			}
			if err != nil { // nobody would see what follows
				cancel(err)
			}
		})
	})
	if err == nil && d.JSON {
		return output.JSON(cmd.OutOrStdout(), done)
	}
	return err
}
