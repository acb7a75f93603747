package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

const (
	groupMesh  = "mesh"
	groupLocal = "local"
)

// New builds the whole command line.
func New(local Local, version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "hopmesh",
		Short: "Train graph neural networks across a mesh of identical machines",
		Long: "hopmesh trains graph neural networks across a mesh of identical machines. Every machine runs\n" +
			"the same daemon, `hopmesh agent`; all other commands talk to one.",
		Example: "  hopmesh demo                # a mesh on this machine, to look at\n" +
			"  hopmesh agent --bootstrap   # found a mesh; prints what to type on the next machine\n" +
			"  hopmesh status              # how it is doing",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetVersionTemplate("hopmesh {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: groupMesh, Title: "The mesh:"},
		&cobra.Group{ID: groupLocal, Title: "This machine:"},
	)
	for _, c := range []*cobra.Command{
		members(), status(), join(), leave(), forceLeave(), token(), dataset(), train(local.Options), predict(), export(), planGroup(), monitor(), top(),
	} {
		c.GroupID = groupMesh
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{agent(local.Agent), demo(local.Demo), bench(local.Bench, local.Shaped, local.Parts), doctor(local.Doctor), recovery(local.Recover)} {
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
	// Never nil, which would make cobra read the arguments of the process.
	cmd.SetArgs(append([]string{}, args...))
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSaid):
		return 1
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
		err = errors.New("interrupted")
	}
	_, _ = fmt.Fprintf(stderr, "hopmesh: %v\n", err)
	_, wrong := errors.AsType[*usageError](err)
	if _, arguments := errors.AsType[*wrongArguments](err); wrong || arguments {
		return 2
	}
	return 1
}

// errSaid fails a command that has already printed what is wrong.
var errSaid = errors.New("the output says what is wrong")

// group makes a noun whose verbs are commands of their own.
func group(noun cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	noun.Args = noSuchCommand
	noun.RunE = func(cmd *cobra.Command, _ []string) error {
		return wrongUsage(cmd, "`%s` needs a verb: %s", cmd.CommandPath(), oneOf(verbNames(cmd)))
	}
	noun.AddCommand(verbs...)
	return &noun
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
			return verbNames(found), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return wrongUsage(cmd, "%v", err)
			}
			if len(rest) > 0 {
				return noSuchCommand(found, rest)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}
