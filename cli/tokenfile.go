package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/hopmesh/hopmesh/cli/usage"
)

// ReadToken reads a join token from the first line of a file, or of stdin for "-". A command
// line is shown to every user of a machine, a file only to those who may read it.
func ReadToken(ctx context.Context, path string, stdin io.Reader) (string, error) {
	line, from, err := usage.FirstLine(ctx, path, stdin)
	if err != nil {
		return "", fmt.Errorf("read the join token: %w", err)
	}
	if line == "" {
		return "", fmt.Errorf("read the join token: the first line of %s is empty; put there what `hopmesh token create --json | jq -r .token` prints", from)
	}
	return line, nil
}
