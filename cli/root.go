package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/top"
	"github.com/hopmesh/hopmesh/cli/train"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/spf13/cobra"
)

const (
	groupMesh  = "mesh"
	groupLocal = "local"
)

// New returns the root command with all others below it.
func New(local Local, version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "hopmesh",
		Short: "Train graph neural networks across a mesh of identical machines",
		Long: "hopmesh trains graph neural networks across a mesh of identical machines. Every machine runs\n" +
			"the same daemon, `hopmesh agent`. Most other commands talk to a daemon.",
		Example: "  hopmesh demo                # a mesh on this machine\n" +
			"  hopmesh agent --bootstrap   # create a mesh; prints the command for the next machine\n" +
			"  hopmesh status              # is it healthy?",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usage.NoSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetVersionTemplate("hopmesh {{.Version}}\n")
	root.SetFlagErrorFunc(usage.FlagError)
	root.AddGroup(
		&cobra.Group{ID: groupMesh, Title: "The mesh:"},
		&cobra.Group{ID: groupLocal, Title: "This machine:"},
	)
	for _, c := range []*cobra.Command{
		members(), status(), join(), leave(), forceLeave(), token(), apiGroup(), authority(), dataset(), train.Command(local.Options, local.Strategies, local.Draw), train.Predict(), train.Evaluate(), train.Export(), runScript(), planGroup(), monitor(), top.Command(), backup(),
	} {
		c.GroupID = groupMesh
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{agent(local.Agent), demo(local.Demo, local.DemoStrategy, local.Strategies), bench(local.Bench, local.Shaped, local.Parts, local.ScaleParts), doctor(local.Doctor), recovery(local.Recover), restore(local.Restore)} {
		c.GroupID = groupLocal
		root.AddCommand(c)
	}
	root.AddCommand(versionCommand(version), completion())
	root.SetHelpCommand(help())
	return root
}

// Execute runs the command line and returns the exit code: 0 done, 1 failed, 2
// wrong usage.
func Execute(ctx context.Context, cmd *cobra.Command, args []string, stdout, stderr io.Writer) int {
	// Not nil: cobra would then read the arguments of the process.
	cmd.SetArgs(append([]string{}, args...))
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, usage.ErrPrinted):
		return 1
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
		err = errors.New("interrupted")
	}
	// It may have names from files and from other machines in it.
	_, _ = fmt.Fprintf(stderr, "hopmesh: %s\n", output.Lines(err.Error()))
	if usage.Is(err) {
		return 2
	}
	return 1
}

func help() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Long:    "Explains hopmesh, or one of its commands, with examples.",
		Example: "  hopmesh help token create",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			found, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return usage.Verbs(found), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			if len(rest) > 0 {
				return usage.NoSuchCommand(found, rest)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// build is what `hopmesh version --json` prints.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand(version string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Long:              "Prints the version of this program, the Go release it was built with, and its platform.",
		Example:           "  hopmesh version\n  hopmesh version --json | jq -r .version",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), b)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "hopmesh %s (%s, %s)\n", b.Version, b.Go, b.Platform)
			return err
		},
	}
	daemon.JSONFlag(cmd, &asJSON)
	return cmd
}

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func completion() *cobra.Command {
	return &cobra.Command{
		Use:     "completion SHELL",
		Short:   "Print a completion script for your shell",
		Long:    "Prints a script that completes commands, flags, and names of nodes, datasets and jobs in bash, zsh, fish or\npowershell.",
		Example: "  source <(hopmesh completion bash)\n  hopmesh completion fish > ~/.config/fish/completions/hopmesh.fish",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := usage.OneArg("SHELL")(cmd, args); err != nil {
				return err
			}
			if !slices.Contains(shells(), args[0]) {
				return usage.Errorf(cmd, "there is no completion for %q: choose %s", args[0], usage.OneOf(shells()))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return shells(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			}
			return root.GenPowerShellCompletionWithDesc(w)
		},
	}
}
