package consensus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// snapshotStore keeps snapshots of the plan, one a file, with a checksum over the plan and over
// what Raft knows of it: which entries it replaces, and who voted. Nothing is restored or sent
// that is not as it was written.
type snapshotStore struct {
	dir string
	mu  sync.Mutex // held while files come and go
}

const (
	snapshotSuffix = ".snapshot"
	snapshotMagic  = "hopmesh-snapshot/1"
	// maxSnapshotFile has room for the largest plan and for Raft's metadata.
	maxSnapshotFile = plan.MaxSnapshot + 1<<20
)

var _ raft.SnapshotStore = (*snapshotStore)(nil)

// Create begins a snapshot. It is kept once its sink is closed.
func (s *snapshotStore) Create(version raft.SnapshotVersion, index, term uint64, conf raft.Configuration, confIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if version != 1 {
		return nil, fmt.Errorf("snapshots of version %d are unknown", version)
	}
	return &snapshotSink{of: s, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d-%d", term, index, time.Now().UnixMilli()),
		Index: index, Term: term, Configuration: conf, ConfigurationIndex: confIndex,
	}}, nil
}

// snapshotSink collects a snapshot in memory, where a plan is anyway.
type snapshotSink struct {
	of   *snapshotStore
	meta raft.SnapshotMeta
	body bytes.Buffer
	done bool
}

func (k *snapshotSink) ID() string { return k.meta.ID }

func (k *snapshotSink) Write(b []byte) (int, error) {
	if k.body.Len()+len(b) > plan.MaxSnapshot {
		return 0, fmt.Errorf("keep a snapshot of the plan: %w", plan.ErrOversized)
	}
	return k.body.Write(b)
}

func (k *snapshotSink) Cancel() error {
	k.done = true
	return nil
}

func (k *snapshotSink) Close() error {
	if k.done {
		return nil
	}
	k.done = true
	k.meta.Size = int64(k.body.Len())
	return k.of.keep(k.meta, k.body.Bytes())
}

// keep writes a snapshot, and removes those before the last two.
func (s *snapshotStore) keep(meta raft.SnapshotMeta, body []byte) error {
	head, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("keep a snapshot of the plan: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := writeSummed(s.path(meta.ID), snapshotMagic, head, []byte{'\n'}, body); err != nil {
		return fmt.Errorf("keep a snapshot of the plan: %w", err)
	}
	ids, err := s.ids()
	if err != nil {
		return err
	}
	var sound []*raft.SnapshotMeta
	for _, id := range ids {
		if m, _, err := s.read(id); err == nil {
			sound = append(sound, m)
		}
	}
	newestFirst(sound)
	for _, m := range sound[min(keepSnapshots, len(sound)):] {
		if err := os.Remove(s.path(m.ID)); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshotStore) path(id string) string { return filepath.Join(s.dir, id+snapshotSuffix) }

func (s *snapshotStore) ids() ([]string, error) {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range list {
		if id, is := strings.CutSuffix(e.Name(), snapshotSuffix); is {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// read returns a snapshot that is as it was written.
func (s *snapshotStore) read(id string) (*raft.SnapshotMeta, []byte, error) {
	b, err := readSummed(s.path(id), snapshotMagic, maxSnapshotFile)
	if err != nil {
		return nil, nil, err
	}
	return decodeSnapshot(id, b)
}

func decodeSnapshot(id string, b []byte) (*raft.SnapshotMeta, []byte, error) {
	head, body, _ := bytes.Cut(b, []byte("\n"))
	meta := new(raft.SnapshotMeta)
	if err := json.Unmarshal(head, meta); err != nil {
		return nil, nil, fmt.Errorf("snapshot %s: %w", id, err)
	}
	if meta.ID != id || meta.Size != int64(len(body)) || meta.Version != 1 {
		return nil, nil, fmt.Errorf("snapshot %s calls itself %.40q, version %d, of %d bytes, and has %d", id, meta.ID, meta.Version, meta.Size, len(body))
	}
	return meta, body, nil
}

func newestFirst(list []*raft.SnapshotMeta) {
	slices.SortFunc(list, func(a, b *raft.SnapshotMeta) int {
		return cmp.Or(cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index), cmp.Compare(b.ID, a.ID))
	})
}

// List returns the snapshots, the newest first. It returns an error if one is damaged: what Raft
// would do without it is decided by settle alone.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	var list []*raft.SnapshotMeta
	for _, id := range ids {
		meta, _, err := s.read(id)
		if err != nil {
			return nil, err
		}
		list = append(list, meta)
	}
	newestFirst(list)
	return list[:min(len(list), keepSnapshots)], nil
}

// Open returns a snapshot that is as it was written.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	meta, body, err := s.read(id)
	if err != nil {
		return nil, nil, err
	}
	return meta, io.NopCloser(bytes.NewReader(body)), nil
}

// settle puts the store in order before anything is read from it: leftovers of a crash go, and
// damaged snapshots step aside, if there is a sound one. The log must then reach back to it,
// which verify sees to. It returns what it put aside.
func (s *snapshotStore) settle() (aside []string, err error) {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".tmp") {
			if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	sound := 0
	var damaged []string
	var failures []error
	for _, id := range ids {
		_, body, err := s.read(id)
		if err == nil {
			_, err = plan.UnmarshalSnapshot(body)
		}
		switch {
		case err == nil:
			sound++
		case errors.Is(err, plan.ErrUnknownCommand), unwritable(err):
			return nil, err
		default:
			damaged, failures = append(damaged, id), append(failures, err)
		}
	}
	if sound == 0 {
		return nil, errors.Join(failures...)
	}
	for i, id := range damaged {
		// One copy is kept, to be looked at.
		if err := os.Rename(s.path(id), filepath.Join(s.dir, "damaged")); err != nil {
			return nil, err
		}
		aside = append(aside, fmt.Sprintf("a snapshot of the plan was damaged (%v): another one and the log hold what it held", failures[i]))
	}
	return aside, nil
}
