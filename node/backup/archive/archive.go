// Package archive is the format of backups: a tar of plain files, which begins with a list of them
// and ends with their SHA-256. It is written and read as a stream. A file that the list does not
// name, or of another length, ends the reading before it takes any room. Users can look inside
// with tar, and check what they unpacked with `sha256sum -c SHA256SUMS`.
package archive

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Format is the number of the format that this program writes and reads.
const Format = 1

// Names of the first and the last file, and of the plan.
const (
	listName = "hopmesh-backup.json"
	sumsName = "SHA256SUMS"
	PlanName = "plan"
)

// MaxPlan bounds the plan, in bytes.
const MaxPlan = 96 << 20

// Bounds, in bytes, and of the number of files.
const (
	maxList     = 4 << 20
	maxIdentity = 64 << 10
	maxFiles    = 20_000 // more than a plan can have shards and jobs
)

var (
	// ErrForeign means that a file is no backup, or one of another format.
	ErrForeign = errors.New("it is no backup that this version of hopmesh reads")
	// ErrDamaged means that a backup is not as it was written.
	ErrDamaged = errors.New("the backup is damaged")
)

// List says what a backup is of, and which files it has, in their order.
type List struct {
	Format  int    `json:"format"`
	Version string `json:"version"` // of the program that wrote it
	Disk    int    `json:"disk"`    // how its data directories are kept
	Mesh    string `json:"mesh"`
	Node    string `json:"node"` // the id
	Name    string `json:"name"` // of the node
	// Index and Term are those of the plan in Raft.
	Index uint64    `json:"index"`
	Term  uint64    `json:"term"`
	Made  time.Time `json:"made"`
	Files []File    `json:"files"`
}

// File is one file of a backup.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Kind is what a file is for. Files are in the order of their kinds.
type Kind int

// The kinds of files.
const (
	Unknown    Kind = iota
	Identity        // identity/NAME
	Plan            // plan
	Shard           // datasets/ID/NUMBER
	Checkpoint      // jobs/ID
)

// IdentityName returns the name of a file of the node's identity.
func IdentityName(file string) string { return "identity/" + file }

// ShardName returns the name of a shard's file.
func ShardName(dataset string, shard int) string {
	return fmt.Sprintf("datasets/%s/%d", dataset, shard)
}

// CheckpointName returns the name of the file of a job's checkpoint.
func CheckpointName(job string) string { return "jobs/" + job }

// Kind returns what the file is for, and what its name says beside that: the name of a file of the
// identity, the id of a dataset and the number of a shard, or the id of a job. It is Unknown unless
// the name is one that a backup can have.
func (f File) Kind() (kind Kind, id string, shard int) {
	folder, rest, _ := strings.Cut(f.Name, "/")
	switch folder {
	case "identity":
		if strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz.") == "" && strings.Trim(rest, ".") != "" {
			return Identity, rest, 0
		}
	case PlanName:
		if f.Name == PlanName {
			return Plan, "", 0
		}
	case "datasets":
		id, number, _ := strings.Cut(rest, "/")
		n, err := strconv.ParseUint(number, 10, 16)
		if err == nil && len(id) == 16 && strings.Trim(id, "0123456789abcdef") == "" && f.Name == ShardName(id, int(n)) {
			return Shard, id, int(n)
		}
	case "jobs":
		n, err := strconv.ParseUint(strings.TrimPrefix(rest, "j"), 10, 64)
		if err == nil && rest == fmt.Sprintf("j%d", n) {
			return Checkpoint, rest, 0
		}
	}
	return Unknown, "", 0
}

// Bytes returns the length of all files together.
func (l List) Bytes() uint64 {
	var sum uint64
	for _, f := range l.Files {
		sum += uint64(f.Bytes)
	}
	return sum
}

// check returns an error unless a backup can have this list.
func (l List) check() error {
	if l.Format != Format {
		return fmt.Errorf("%w: its format has the number %d, and this version reads %d", ErrForeign, l.Format, Format)
	}
	if len(l.Files) > maxFiles {
		return fmt.Errorf("%w: it lists %d files, of at most %d", ErrDamaged, len(l.Files), maxFiles)
	}
	seen := make(map[string]bool, len(l.Files))
	last, plans, left := Unknown, 0, int64(math.MaxInt64)
	for _, f := range l.Files {
		kind, _, _ := f.Kind()
		most := left
		switch kind {
		case Unknown:
			return fmt.Errorf("%w: it lists a file %.80q, which no backup has", ErrDamaged, f.Name)
		case Identity:
			most = maxIdentity
		case Plan:
			most, plans = MaxPlan, plans+1
		}
		switch {
		case f.Bytes < 0 || f.Bytes > min(most, left):
			return fmt.Errorf("%w: it lists %d bytes of %s, where %d may be", ErrDamaged, f.Bytes, f.Name, min(most, left))
		case seen[f.Name] || kind < last:
			return fmt.Errorf("%w: it lists %s twice or out of order", ErrDamaged, f.Name)
		}
		seen[f.Name], last, left = true, kind, left-f.Bytes
	}
	if plans != 1 {
		return fmt.Errorf("%w: it lists no plan", ErrDamaged)
	}
	return nil
}

// sumLine returns the line of a file in the last one.
func sumLine(sum, name string) string { return sum + "  " + name + "\n" }

// sumsLength returns the length of the last file.
func (l List) sumsLength() int64 {
	n := len(sumLine(strings.Repeat("0", 64), listName))
	for _, f := range l.Files {
		n += len(sumLine(strings.Repeat("0", 64), f.Name))
	}
	return int64(n)
}

// misses words an error of reading a file.
func misses(name string, err error) error {
	return fmt.Errorf("%w: %s is cut off or can't be read (%w)", ErrDamaged, name, cmp.Or(err, errShort))
}

var errShort = errors.New("it is shorter than the list says")
