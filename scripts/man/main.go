// Command man writes the manual pages of hopmesh into a folder. It generates them from
// the program's own commands.
package main

import (
	"fmt"
	"os"

	"github.com/hopmesh/hopmesh/cli"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/spf13/cobra/doc"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // manual pages are for everybody to read
		return fmt.Errorf("create the folder for the pages: %w", err)
	}
	root := cli.New(cli.Local{Strategies: strategies.All.Choices(), DemoStrategy: "leap"}, "dev")
	root.DisableAutoGenTag = true // no date: the same commands give the same pages
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "HOPMESH", Section: "1", Source: "hopmesh"}, dir); err != nil {
		return fmt.Errorf("write the pages: %w", err)
	}
	return nil
}
