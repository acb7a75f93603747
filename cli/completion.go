package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func completion() *cobra.Command {
	return &cobra.Command{
		Use:     "completion SHELL",
		Short:   "Print a script that completes commands in your shell",
		Long:    "Prints a script that completes commands, flags, and the names of nodes in bash, zsh, fish or powershell.",
		Example: "  source <(hopmesh completion bash)\n  hopmesh completion fish > ~/.config/fish/completions/hopmesh.fish",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := oneArg("SHELL")(cmd, args); err != nil {
				return err
			}
			if !slices.Contains(shells(), args[0]) {
				return wrongUsage(cmd, "there is no completion for %q: choose %s", args[0], oneOf(shells()))
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

// completeFlag offers fixed values for a flag.
func completeFlag(cmd *cobra.Command, flag string, values []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // no such flag: cannot happen in a program that was ever run
	}
}
