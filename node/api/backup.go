package api

import (
	"encoding/json"
	"net/http"
	"net/url"
)

// BackupRequest asks for a backup. The plan and the keys of the mesh are always in it.
type BackupRequest struct {
	Datasets bool `json:"datasets,omitempty"` // the shards of all datasets, too
	Jobs     bool `json:"jobs,omitempty"`     // the checkpoints of jobs that this node keeps, too
}

// Backup says what is in a backup.
type Backup struct {
	Mesh     string   `json:"mesh"`
	Node     string   `json:"node"`     // the name of the node that it is of
	Index    uint64   `json:"index"`    // of the plan
	Datasets []string `json:"datasets"` // names of those whose shards are in it
	Jobs     []string `json:"jobs"`     // ids of those whose checkpoints are in it
	Missing  []string `json:"missing"`  // sentences on what is not in it
}

func (b Backup) notNull() Backup {
	b.Datasets, b.Jobs, b.Missing = notNull(b.Datasets), notNull(b.Jobs), notNull(b.Missing)
	return b
}

// headerBackup is the header of an answer that says, as escaped JSON, what is in the backup.
const headerBackup = "Hopmesh-Backup"

// announce puts what is in a backup into the header of an answer.
func (b Backup) announce(h http.Header) error {
	text, err := json.Marshal(b.notNull())
	if err == nil {
		h.Set(headerBackup, url.PathEscape(string(text)))
	}
	return err
}

// announced reads what announce wrote.
func announced(h http.Header) (b Backup, err error) {
	text, err := url.PathUnescape(h.Get(headerBackup))
	if err == nil {
		err = json.Unmarshal([]byte(text), &b)
	}
	return b, err
}
