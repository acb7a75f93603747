package consensus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// ledger is one small file beside the log's segments. It lists them, and holds what the node
// has promised: its term, its vote, and how long its log was. It is written as a whole and has
// a checksum, so that neither old nor damaged values pass for what was promised last.
type ledger struct {
	path string

	mu   sync.Mutex
	held ledgerFile
}

type ledgerFile struct {
	Log    types.PersistentState `json:"log"`
	Stable map[string][]byte     `json:"stable"`
}

const (
	ledgerName  = "ledger"
	ledgerMagic = "hopmesh-ledger/1"
	// maxLedger is far more than a list of segments, of which there are a few, and four values.
	maxLedger = 1 << 20
	// guardText stands where versions before this one kept the ledger's content, in a
	// database. They would take a directory without it for an empty log. It is no database,
	// so they refuse it.
	guardText = "The plan's log is in the format of a later version of hopmesh: see the file ledger.\n"
)

var (
	_ types.MetaStore = (*ledger)(nil)

	errNoLedger = errors.New("its ledger is gone")
)

// Load reads the ledger, or begins one in an empty directory. The write-ahead log calls it first.
func (l *ledger) Load(dir string) (types.PersistentState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path = filepath.Join(dir, ledgerName)
	b, err := readSummed(l.path, ledgerMagic, maxLedger)
	if errors.Is(err, fs.ErrNotExist) {
		return types.PersistentState{}, l.begin(dir)
	}
	if err != nil {
		return types.PersistentState{}, err
	}
	if l.held, err = decodeLedger(b); err != nil {
		return l.held.Log, err
	}
	_, err = os.Lstat(filepath.Join(dir, metadb.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		err = writeGuard(dir)
	}
	return l.held.Log, err
}

func (l *ledger) begin(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		switch e.Name() {
		case ledgerName + ".tmp", guardTmp:
		case metadb.FileName:
			// A crash may have come before the ledger was there.
			if b, err := os.ReadFile(filepath.Join(dir, e.Name())); err != nil || string(b) != guardText {
				return errors.Join(errNoLedger, err)
			}
		default:
			return errNoLedger
		}
	}
	// The guard comes first: no directory with a ledger may be without it.
	if err := writeGuard(dir); err != nil {
		return err
	}
	l.held = ledgerFile{Stable: map[string][]byte{}}
	return l.write(l.held)
}

const guardTmp = metadb.FileName + ".tmp"

func writeGuard(dir string) error {
	tmp := filepath.Join(dir, guardTmp)
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(guardText)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, filepath.Join(dir, metadb.FileName)); err != nil {
		return err
	}
	return syncDir(dir)
}

func decodeLedger(b []byte) (ledgerFile, error) {
	var f ledgerFile
	if err := json.Unmarshal(b, &f); err != nil {
		return f, fmt.Errorf("%s: %w", ledgerName, err)
	}
	if f.Stable == nil {
		f.Stable = map[string][]byte{}
	}
	return f, nil
}

// write is called with mu held.
func (l *ledger) write(next ledgerFile) error {
	b, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := writeSummed(l.path, ledgerMagic, b); err != nil {
		return fmt.Errorf("write the ledger of the plan's log: %w", err)
	}
	l.held = next
	return nil
}

// CommitState replaces the list of segments.
func (l *ledger) CommitState(s types.PersistentState) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(ledgerFile{Log: s, Stable: l.held.Stable})
}

// reached returns an entry that the last segment has held for certain, or 0: those before it were
// dropped. The write-ahead log takes a segment with a damaged beginning for an empty one.
func (l *ledger) reached() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.held.Log.Segments)
	if n == 0 {
		return 0
	}
	if tail := l.held.Log.Segments[n-1]; tail.SealTime.IsZero() && tail.MinIndex > tail.BaseIndex {
		return tail.MinIndex
	}
	return 0
}

// GetStable returns a value, or nil. It comes from memory, which the file equals.
func (l *ledger) GetStable(key []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]byte(nil), l.held.Stable[string(key)]...), nil
}

// SetStable keeps a value.
func (l *ledger) SetStable(key, value []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := maps.Clone(l.held.Stable)
	next[string(key)] = append([]byte(nil), value...)
	return l.write(ledgerFile{Log: l.held.Log, Stable: next})
}

// turn begins the next segment where the last one is full. The library does so some time after the
// entry that filled it, and never again: if the node was killed meanwhile, or had no room for
// the ledger, the log would take nothing any more.
func (l *ledger) turn(dir string, files *segment.Filer) error {
	state, err := l.Load(dir)
	n := len(state.Segments)
	if err != nil || n == 0 || !state.Segments[n-1].SealTime.IsZero() {
		return err
	}
	state.Segments = slices.Clone(state.Segments)
	last := &state.Segments[n-1]
	w, err := files.RecoverTail(*last)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was about to be created
	}
	if err != nil {
		return err
	}
	sealed, index, err := w.Sealed()
	ends := w.LastIndex()
	if err = errors.Join(err, w.Close()); err != nil || !sealed {
		return err
	}
	last.SealTime, last.IndexStart, last.MaxIndex = time.Now(), index, ends
	state.Segments = append(state.Segments, types.SegmentInfo{
		ID: state.NextSegmentID, BaseIndex: ends + 1, MinIndex: ends + 1, SizeLimit: last.SizeLimit, Codec: last.Codec, CreateTime: time.Now(),
	})
	state.NextSegmentID++
	return l.CommitState(state)
}

// Close does nothing, as no file stays open.
func (l *ledger) Close() error { return nil }

// scrub writes the file anew if it is not as it was written. It reports whether it did.
func (l *ledger) scrub() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := readSummed(l.path, ledgerMagic, maxLedger); err == nil || unwritable(err) {
		return false, err
	}
	return true, l.write(l.held)
}
