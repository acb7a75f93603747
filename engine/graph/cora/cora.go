// Package cora embeds the Cora citation graph with its public split, so that a mesh can
// be tried without any files.
package cora

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed cora.npz
var archive []byte

// Write writes the graph's file to a folder, to be imported like any other, and returns
// its path.
func Write(dir string) (string, error) {
	path := filepath.Join(dir, "cora.npz")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		return "", fmt.Errorf("write the built-in graph: %w", err)
	}
	return path, nil
}
