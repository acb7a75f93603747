package main

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
)

// A run is one seed of one row, done: a line of the file that keeps them.
type run struct {
	Row     string  `json:"row"`
	Recipe  string  `json:"recipe"` // digest of the recipe, without its seed
	Seed    uint64  `json:"seed"`
	Nodes   int     `json:"nodes,omitempty"` // that shared it; 0: one did it all
	Commit  string  `json:"commit"`
	Epoch   int     `json:"epoch"` // the one with the best validation
	Val     float64 `json:"val"`   // percent
	Test    float64 `json:"test"`  // percent, of that epoch
	Seconds float64 `json:"seconds"`
}

func digest(r row) (string, error) {
	r.Recipe.Seed = 0
	text, err := json.Marshal(r.Recipe)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), nil
}

// kept are the runs that were done, in a file of one JSON object a line.
type kept struct {
	file string
	runs []run
}

func load(file string) (*kept, error) {
	k := &kept{file: file}
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
		var r run
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s has a line that is no run: remove it: %w", file, err)
		}
		k.runs = append(k.runs, r)
	}
	return k, lines.Err()
}

// of returns the runs of a row as its recipe is now, on so many nodes.
func (k *kept) of(row, recipe string, nodes int) map[uint64]run {
	found := map[uint64]run{}
	for _, r := range k.runs {
		if r.Row == row && r.Recipe == recipe && r.Nodes == nodes {
			found[r.Seed] = r
		}
	}
	return found
}

// add appends a run to the file at once, so that nothing done is done again.
func (k *kept) add(r run) (err error) {
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
