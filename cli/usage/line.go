package usage

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
)

// maxFirstLine bounds what is read of a file for its first line. A token has some ninety
// characters.
const maxFirstLine = 4 << 10

// FirstLine returns the first line of a file, or of stdin for "-", without space around it, and
// what to call the place. Nobody may ever write to a terminal or a pipe, so the wait ends with ctx.
func FirstLine(ctx context.Context, path string, stdin io.Reader) (line, from string, err error) {
	type found struct {
		line, from string
		err        error
	}
	read := make(chan found, 1)
	go func() {
		line, from, err := firstLine(path, stdin)
		read <- found{line, from, err}
	}()
	select {
	case f := <-read:
		return f.line, f.from, f.err
	case <-ctx.Done():
		return "", path, context.Cause(ctx)
	}
}

func firstLine(path string, stdin io.Reader) (line, from string, err error) {
	var in io.Reader
	if from = path; path == "-" {
		in, from = stdin, "standard input"
	} else {
		f, err := os.Open(path)
		if err != nil {
			return "", from, err
		}
		defer f.Close()
		in = f
	}
	line, err = bufio.NewReader(io.LimitReader(in, maxFirstLine)).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimSpace(line), from, err
}
