package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"slices"

	"github.com/hopmesh/hopmesh/scripts/kept"
)

// A run is one repetition of a cell: a line of the file of runs.
type run struct {
	Cell       string    `json:"cell"`
	Settings   string    `json:"settings"`
	Repetition int       `json:"repetition"`       // from 1
	Script     string    `json:"script,omitempty"` // digest of their script, on their sides
	Version    string    `json:"version"`          // of hopmesh
	Machine    string    `json:"machine"`
	Error      string    `json:"error,omitempty"`
	Seconds    []float64 `json:"seconds"`
	Bytes      []uint64  `json:"bytes"`     // sent in each epoch, by all nodes
	Processor  []float64 `json:"processor"` // seconds in each epoch, of all processes
	Memory     uint64    `json:"memory"`    // bytes at most
	Accuracy   float64   `json:"accuracy"`
	Chosen     string    `json:"chosen,omitempty"` // by auto, in the last epoch
	Others     float64   `json:"others"`           // cores that the rest of the machine used meanwhile
}

// history holds the finished runs.
type history struct{ *kept.File[run] }

// load reads the runs of a file, which need not exist.
func load(file string) (history, error) {
	k, err := kept.Load[run](file)
	return history{k}, err
}

// takes says which runs of a cell are taken for what this command would measure now. Figures of two
// machines are never compared. Ours may be of several versions, which the page names.
type takes struct {
	machine string
	script  string // digest of their script
	version string // of ours; "": any
}

// is reports whether a run is one of a cell.
func (t takes) is(r run, c cell) bool {
	if r.Cell != c.key() || r.Settings != c.settings() || r.Machine != t.machine {
		return false
	}
	if c.side.framework != "" {
		return r.Script == t.script
	}
	return t.version == "" || r.Version == t.version
}

// of returns the last run of each repetition of a cell that did not fail.
func (k history) of(c cell, t takes) (list []run) {
	for _, r := range slices.Backward(k.Items) {
		if t.is(r, c) && r.Error == "" && !slices.ContainsFunc(list, func(later run) bool { return later.Repetition == r.Repetition }) {
			list = append(list, r)
		}
	}
	slices.Reverse(list)
	return list
}

// done reports whether a repetition of a cell needs not be run again.
func (k history) done(c cell, repetition int, t takes) bool {
	return slices.ContainsFunc(k.of(c, t), func(r run) bool { return r.Repetition == repetition })
}

// failed returns why the last run of a cell that has none but failures failed, or "".
func (k history) failed(c cell, t takes) (why string) {
	for _, r := range k.Items {
		if t.is(r, c) {
			why = r.Error
		}
	}
	return why
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
