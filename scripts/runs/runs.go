// Package runs trains recipes for scripts, one seed at a time, and keeps the results, so
// that no run is repeated. The scripts choose the recipes and report the results.
package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/scripts/kept"
)

// Run is a finished seed of a row: a line of the file of runs.
type Run struct {
	Row     string  `json:"row"`
	Recipe  string  `json:"recipe"` // digest of the recipe, without its seed
	Seed    uint64  `json:"seed"`
	Nodes   int     `json:"nodes,omitempty"` // that shared it; 0: one node alone
	Commit  string  `json:"commit"`
	Epoch   int     `json:"epoch"`            // the epoch with the best validation
	Capped  bool    `json:"capped,omitempty"` // patience would have waited longer
	Val     float64 `json:"val"`              // percent
	Test    float64 `json:"test"`             // percent, of that epoch
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

// Kept holds the finished runs.
type Kept struct{ *kept.File[Run] }

// Load reads the runs of a file, which need not exist.
func Load(file string) (*Kept, error) {
	k, err := kept.Load[Run](file)
	return &Kept{k}, err
}

// Commit returns the commit of the working tree as git names it, with -dirty if it has
// changes.
func Commit() (string, error) {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "", fmt.Errorf("ask git what is run: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
