// Package runs trains what scripts ask for, a seed at a time, and keeps what that came to,
// so that nothing that is done is done again. What is trained, and what is said of it, is
// theirs.
package runs

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"strings"

	"github.com/hopmesh/hopmesh/engine/train"
)

// A Run is one seed of one row, done: a line of the file that keeps them.
type Run struct {
	Row     string  `json:"row"`
	Recipe  string  `json:"recipe"` // digest of the recipe, without its seed
	Seed    uint64  `json:"seed"`
	Nodes   int     `json:"nodes,omitempty"` // that shared it; 0: one did it all
	Commit  string  `json:"commit"`
	Epoch   int     `json:"epoch"` // the one with the best validation
	Val     float64 `json:"val"`   // percent
	Test    float64 `json:"test"`  // percent, of that epoch
	Seconds float64 `json:"seconds"`
	Seen    float64 `json:"seen,omitempty"`           // share of edges, where groups trained in isolation
	Hash    string  `json:"weights_sha256,omitempty"` // in the end; runs of before it was kept have none
}

// digest is that of a recipe, without its seed.
func digest(r train.Recipe) (string, error) {
	r.Seed = 0
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), nil
}

// Kept are the runs that were done, in a file of one JSON object a line.
type Kept struct {
	file string
	runs []Run
}

// Load reads those of a file, which need not exist.
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

// commit is what is run, as git names it; -dirty if that is not all.
func commit() (string, error) {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "", fmt.Errorf("ask git what is run: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Spread is the mean and the deviation of a sample.
func Spread(list []float64) (mean, deviation float64) {
	if len(list) == 0 {
		return 0, 0
	}
	for _, x := range list {
		mean += x / float64(len(list))
	}
	for _, x := range list {
		deviation += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(deviation / max(float64(len(list)-1), 1))
}
