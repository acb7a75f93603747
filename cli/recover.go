package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

func recovery(run func(context.Context, RecoverConfig, io.Writer) error) *cobra.Command {
	var cfg RecoverConfig
	cmd := &cobra.Command{
		Use:   "recover --data-dir DIR --voters FILE",
		Short: "Bring a mesh back that lost most of its voters for good",
		Long: "Brings a mesh back that lost more than half of its voters for good. Only for that: while they can\n" +
			"come back, start them instead.\n\n" +
			"Stop the agents of all survivors. Write the ids of those that shall vote, one a line, into a file,\n" +
			"and give each survivor the same one with this command; then start the agents. What a survivor knows\n" +
			"of the plan becomes the plan, agreed on before or not.",
		Example:           "  hopmesh recover --data-dir /var/lib/hopmesh --voters voters.txt",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// No default for either: this rewrites what the node remembers.
			if cfg.DataDir == "" {
				return wrongUsage(cmd, "`hopmesh recover` needs --data-dir DIR")
			}
			if cfg.VotersFile == "" {
				return wrongUsage(cmd, "`hopmesh recover` needs --voters FILE, which names the ids of the new voters, one a line")
			}
			return run(cmd.Context(), cfg, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&cfg.DataDir, "data-dir", "", "the node's data `DIR`")
	cmd.Flags().StringVar(&cfg.VotersFile, "voters", "", "the `FILE` with the ids of the new voters, one a line")
	return cmd
}
