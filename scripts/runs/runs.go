// Package runs trains recipes for scripts, one seed at a time, and keeps the results, so
// that no run is repeated. The scripts choose the recipes and report the results.
package runs

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/hopmesh/hopmesh/engine/recipe"
)

// Run is a finished seed of a row: a line of the file of runs.
type Run struct {
	Row     string  `json:"row"`
	Recipe  string  `json:"recipe"` // digest of the recipe, without its seed
	Seed    uint64  `json:"seed"`
	Nodes   int     `json:"nodes,omitempty"` // that shared it; 0: one node alone
	Commit  string  `json:"commit"`
	Epoch   int     `json:"epoch"` // the epoch with the best validation
	Val     float64 `json:"val"`   // percent
	Test    float64 `json:"test"`  // percent, of that epoch
	Seconds float64 `json:"seconds"`
	Seen    float64 `json:"seen,omitempty"`           // share of edges seen, if groups trained in isolation
	Hash    string  `json:"weights_sha256,omitempty"` // after the last epoch; old runs have none
}

// digest returns the digest of a recipe without its seed.
func digest(r recipe.Recipe) (string, error) {
	r.Seed = 0
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), nil
}

// Kept holds the finished runs, in a file of one JSON object per line.
type Kept struct {
	file string
	runs []Run
}

// Load reads the runs of a file, which need not exist.
func Load(file string) (*Kept, error) {
	k := &Kept{file: file}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r Run
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s has a line that is no run: remove it: %w", file, err)
		}
		k.runs = append(k.runs, r)
	}
	return k, lines.Err()
}

// add appends a run to the file at once.
func (k *Kept) add(r Run) (err error) {
	f, err := os.OpenFile(k.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	k.runs = append(k.runs, r)
	return json.NewEncoder(f).Encode(r)
}

// commit returns the commit of the working tree as git names it, with -dirty if it has
// changes.
func commit() (string, error) {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "", fmt.Errorf("ask git what is run: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
