package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxTokenFile bounds what is read of a token's file. A token has some ninety characters.
const maxTokenFile = 4 << 10

// ReadToken reads a join token from the first line of a file, or of stdin for "-". A command
// line is shown to every user of a machine, a file only to those who may read it.
func ReadToken(path string, stdin io.Reader) (string, error) {
	from := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("read the join token: %w", err)
		}
		defer f.Close()
		from = f
	} else {
		path = "standard input"
	}
	line, err := bufio.NewReader(io.LimitReader(from, maxTokenFile)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the join token: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("read the join token: the first line of %s is empty; put there what `hopmesh token create --json | jq -r .token` prints", path)
	}
	return line, nil
}
