package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A run is one repetition of a cell: a line of the file of runs.
type run struct {
	Cell       string    `json:"cell"`
	Settings   string    `json:"settings"`
	Repetition int       `json:"repetition"` // from 1
	Program    string    `json:"program"`    // digest of what trained: our program or their script
	Version    string    `json:"version"`    // of the working tree
	Error      string    `json:"error,omitempty"`
	Seconds    []float64 `json:"seconds"`
	Bytes      []uint64  `json:"bytes"`     // sent in each epoch, by all nodes
	Processor  []float64 `json:"processor"` // seconds in each epoch, of all processes
	Memory     uint64    `json:"memory"`    // bytes at most
	Accuracy   float64   `json:"accuracy"`
	Chosen     string    `json:"chosen,omitempty"` // by auto, in the last epoch
	Others     float64   `json:"others"`           // cores that the rest of the machine used meanwhile
}

// kept holds the runs of a file of one JSON object per line.
type kept struct {
	file string
	runs []run
	text []byte // the file's whole lines
}

// load reads the runs of a file, which need not exist. A line that was cut off when the program
// was stopped is left out.
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
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return k, nil // and nothing, or half a line
		}
		if err != nil {
			return nil, err
		}
		var r run
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s has a line that is no run: remove it: %w", file, err)
		}
		k.runs, k.text = append(k.runs, r), append(k.text, line...)
	}
}

// add writes the file with one more run at once.
func (k *kept) add(r run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	k.runs, k.text = append(k.runs, r), append(append(k.text, line...), '\n')
	beside := k.file + ".new"
	if err := os.WriteFile(beside, k.text, 0o600); err != nil {
		return err
	}
	return os.Rename(beside, k.file)
}

// is reports whether a run is one of a cell as it is today.
func (r run) is(c cell, programs programs) bool {
	return r.Cell == c.key() && r.Settings == c.settings() && r.Program == programs.of(c)
}

// of returns the runs of a cell, without those that failed.
func (k *kept) of(c cell, programs programs) (list []run) {
	for _, r := range k.runs {
		if r.is(c, programs) && r.Error == "" {
			list = append(list, r)
		}
	}
	return list
}

// done reports whether a repetition of a cell needs not be run again.
func (k *kept) done(c cell, repetition int, programs programs) bool {
	for _, r := range k.of(c, programs) {
		if r.Repetition == repetition {
			return true
		}
	}
	return false
}

// failed returns why the last run of a cell that has none but failures failed, or "".
func (k *kept) failed(c cell, programs programs) (why string) {
	for _, r := range k.runs {
		if r.is(c, programs) {
			why = r.Error
		}
	}
	return why
}

// programs are digests of what trains.
type programs struct{ ours, theirs string }

func (p programs) of(c cell) string {
	if c.side.framework != "" {
		return p.theirs
	}
	return p.ours
}

// digest returns the digest of a file.
func digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}
