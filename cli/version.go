package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

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
		Short:             "Say which version this is",
		Long:              "Says which version this program is, and what it was built with and for.",
		Example:           "  hopmesh version\n  hopmesh version --json | jq -r .version",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), b)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "hopmesh %s (%s, %s)\n", b.Version, b.Go, b.Platform)
			return err
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
