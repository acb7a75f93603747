package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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

// backup is asked by POST, since its answer holds keys: where any user of the machine may read, it
// needs the secret.
func (s server) backup(w http.ResponseWriter, r *http.Request) {
	var q BackupRequest
	if r.ContentLength != 0 { // the body is optional
		if err := decode(w, r, &q); err != nil {
			fail(w, err)
			return
		}
	}
	deliver(w, func(to io.Writer) error {
		return s.Backup(r.Context(), q, to, func(b Backup) error {
			text, err := json.Marshal(b.notNull())
			if err == nil {
				w.Header().Set(headerBackup, url.PathEscape(string(text)))
			}
			return err
		})
	})
}

// Backup writes a backup, and says what is in it.
func (c *Client) Backup(ctx context.Context, r BackupRequest, to io.Writer) (b Backup, err error) {
	err = c.fetch(ctx, "/v1/backup", r, to, func(h http.Header) error {
		text, err := url.PathUnescape(h.Get(headerBackup))
		if err == nil {
			err = json.Unmarshal([]byte(text), &b)
		}
		if err != nil {
			return fmt.Errorf("read the answer of the daemon at %s: %w", c.addr, err)
		}
		return nil
	})
	return b, err
}
