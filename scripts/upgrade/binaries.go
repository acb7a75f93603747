package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binaries are the three versions, by what the page calls them.
type binaries struct {
	previous, today, later string // paths
	commits                [2]string
}

// pinned returns the commit that a file names: its one line that is no comment.
func pinned(text string) (string, error) {
	commit := ""
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "#"):
		case commit != "":
			return "", fmt.Errorf("it names %s and %s: leave one", commit, line)
		case strings.Trim(line, "0123456789abcdef") != "" || len(line) < 7:
			return "", fmt.Errorf("%.40q is no commit: write the hash of one", line)
		default:
			commit = line
		}
	}
	if commit == "" {
		return "", errors.New("it names no commit: write the hash of one")
	}
	return commit, nil
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(problems.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}

// build builds the three versions into dir.
func build(ctx context.Context, file, dir string) (b binaries, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return b, err
	}
	commit, err := pinned(string(text))
	if err != nil {
		return b, fmt.Errorf("%s: %w", file, err)
	}
	if _, err := output(ctx, ".", "git", "cat-file", "-e", commit+"^{commit}"); err != nil {
		return b, fmt.Errorf("this clone has no commit %s, which %s names: fetch the history with `git fetch --unshallow`", commit, file)
	}
	tree := filepath.Join(dir, "tree")
	if _, err := output(ctx, ".", "git", "worktree", "add", "--detach", tree, commit); err != nil {
		return b, err
	}
	defer func() {
		_, failed := output(context.WithoutCancel(ctx), ".", "git", "worktree", "remove", "--force", tree)
		err = errors.Join(err, failed)
	}()
	b = binaries{previous: filepath.Join(dir, "previous"), today: filepath.Join(dir, "today"), later: filepath.Join(dir, "later")}
	for i, one := range []struct{ tree, path, version, tags string }{
		{tree, b.previous, "previous", ""}, {".", b.today, "today", ""}, {".", b.later, "later", "later"},
	} {
		fmt.Fprintln(os.Stderr, "building", one.version)
		_, err := output(ctx, one.tree, "go", "build", "-trimpath", "-tags", one.tags, "-ldflags", "-s -w -X main.version="+one.version, "-o", one.path, "./cli/hopmesh")
		if err != nil {
			return b, err
		}
		if i < len(b.commits) {
			if b.commits[i], err = output(ctx, one.tree, "git", "describe", "--always", "--dirty", "--abbrev=10"); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}
