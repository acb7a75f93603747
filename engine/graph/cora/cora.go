// Package cora holds the citation graph Cora with its public split, so that a mesh
// can be tried without any file.
package cora

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed cora.npz
var archive []byte

// Write puts the graph's file into a folder, to be imported as any other, and
// returns its path.
func Write(dir string) (string, error) {
	path := filepath.Join(dir, "cora.npz")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		return "", fmt.Errorf("write the built-in graph: %w", err)
	}
	return path, nil
}
