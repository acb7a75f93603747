package plan

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// MaxSnapshot bounds a snapshot in bytes, for readers of untrusted ones. A plan is
// kilobytes. It grows with shards and epochs, which MaxRows and MaxHistory bound well
// below this limit.
const MaxSnapshot = 96 << 20

// A snapshot is one line, the magic and the hex SHA-256 of the rest, then the
// state as JSON.
const snapshotMagic = "hopmesh-plan/"

// Snapshots that need newer commands than Silent are of another version: programs which do not know
// State.Needs refuse them, and would else lose fields.
const (
	snapshotVersion = snapshotMagic + "1"
	snapshotNeeds   = snapshotMagic + "2"
)

// MarshalSnapshot encodes the whole state.
func MarshalSnapshot(s *State) ([]byte, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write a snapshot of the plan: %w", err)
	}
	sum := sha256.Sum256(body)
	version := snapshotVersion
	if s.Needs > Silent {
		version = snapshotNeeds
	}
	head := version + " " + hex.EncodeToString(sum[:]) + "\n"
	if len(head)+len(body) > MaxSnapshot {
		return nil, fmt.Errorf("write a snapshot of the plan: %w: %d bytes", ErrOversized, len(body))
	}
	return append([]byte(head), body...), nil
}

// UnmarshalSnapshot decodes the output of MarshalSnapshot. It returns ErrBadSnapshot if
// the data is damaged, and ErrUnknownCommand if a later version of hopmesh wrote it.
func UnmarshalSnapshot(b []byte) (*State, error) {
	if len(b) > MaxSnapshot {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrBadSnapshot, MaxSnapshot)
	}
	head, body, _ := bytes.Cut(b, []byte("\n"))
	version, sum, _ := strings.Cut(string(head), " ")
	if version != snapshotVersion && version != snapshotNeeds {
		if strings.HasPrefix(version, snapshotMagic) {
			return nil, fmt.Errorf("%w (snapshot %.40q)", ErrUnknownCommand, version)
		}
		return nil, fmt.Errorf("%w: it does not begin as one", ErrBadSnapshot)
	}
	if got := sha256.Sum256(body); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrBadSnapshot)
	}
	s := new(State)
	if err := json.Unmarshal(body, s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSnapshot, err)
	}
	if s.Needs > Newest {
		return nil, fmt.Errorf("%w (a snapshot after command %d)", ErrUnknownCommand, s.Needs)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

// check returns an error if no sequence of commands leads to this state.
func (s *State) check() error {
	for id, m := range s.Members {
		if id != m.ID {
			return fmt.Errorf("%w: member %.40q under the id %.40q", ErrBadSnapshot, m.ID, id)
		}
	}
	for id, g := range s.Gone {
		if id != g.ID || g.Why.rank() == 0 {
			return fmt.Errorf("%w: %.40q is gone under the id %.40q", ErrBadSnapshot, g.ID, id)
		}
	}
	for id, t := range s.Tokens {
		if id != t.ID {
			return fmt.Errorf("%w: token %.40q under the id %.40q", ErrBadSnapshot, t.ID, id)
		}
	}
	if err := cmp.Or(s.Access.Check(), s.Authority.check(), s.checkDatasets(), s.checkJobs()); err != nil {
		return fmt.Errorf("%w: %w", ErrBadSnapshot, err)
	}
	return nil
}
