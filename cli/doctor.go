package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

func doctor(run func(context.Context, DoctorConfig, io.Writer) error) *cobra.Command {
	var cfg DoctorConfig
	cmd := &cobra.Command{
		Use:   "doctor [HOST:PORT]",
		Short: "Look for what keeps a node from working well",
		Long: "Looks at this machine: kernel, UDP buffer sizes, GPU. With HOST:PORT of a running agent, also at the\n" +
			"way there and back, at both clocks and at both versions. Ends with exit code 1 if something keeps a\n" +
			"node from working.",
		Example:           "  hopmesh doctor\n  hopmesh doctor 10.0.0.1:7946",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneArg("HOST:PORT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				cfg.Peer = args[0]
			}
			return run(cmd.Context(), cfg, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&cfg.Listen, "listen", defaultListen, "the UDP address, `IP:PORT`, that this machine's agent has or will have")
	jsonFlag(cmd, &cfg.JSON)
	return cmd
}
