package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"github.com/hopmesh/hopmesh/scripts/kept"
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

// history holds the finished runs.
type history struct{ *kept.File[run] }

// load reads the runs of a file, which need not exist.
func load(file string) (history, error) {
	k, err := kept.Load[run](file)
	return history{k}, err
}

// is reports whether a run is one of a cell as it is today.
func (r run) is(c cell, programs programs) bool {
	return r.Cell == c.key() && r.Settings == c.settings() && r.Program == programs.of(c)
}

// of returns the runs of a cell, without those that failed.
func (k history) of(c cell, programs programs) (list []run) {
	for _, r := range k.Items {
		if r.is(c, programs) && r.Error == "" {
			list = append(list, r)
		}
	}
	return list
}

// done reports whether a repetition of a cell needs not be run again.
func (k history) done(c cell, repetition int, programs programs) bool {
	for _, r := range k.of(c, programs) {
		if r.Repetition == repetition {
			return true
		}
	}
	return false
}

// failed returns why the last run of a cell that has none but failures failed, or "".
func (k history) failed(c cell, programs programs) (why string) {
	for _, r := range k.Items {
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
