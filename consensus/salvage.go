package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// Salvage makes new stores in the directory to of what can be read in a damaged one: the newest
// sound snapshot, and the entries after it up to the first that is damaged. It returns a sentence
// on what it kept. It is for the case that no other node has the plan. The damaged directory stays
// as it is, and what is in to goes first, so that it can be repeated after an interruption.
func Salvage(from, to string, log *slog.Logger) (kept string, err error) {
	work := to + ".tmp"
	if err := errors.Join(os.RemoveAll(work), os.RemoveAll(to)); err != nil {
		return "", err
	}
	// Opening a log changes it, so a copy is read.
	if err := os.CopyFS(work, os.DirFS(from)); err != nil {
		return "", fmt.Errorf("copy what is damaged: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	meta, body, state, err := soundSnapshot(diskDir(work).snapshots())
	if err != nil {
		return "", err
	}
	entries, term, why := readable(diskDir(work), meta, newLogger(log))
	if unwritable(why) {
		return "", why
	}
	if meta == nil && len(entries) == 0 {
		if why == nil {
			why = ErrNoState
		}
		return "", fmt.Errorf("nothing of the plan can be read in %s: %w", from, why)
	}
	s, err := openDisk(to, log, 0)
	if err != nil {
		return "", err
	}
	last := state.Index
	if meta != nil {
		err = s.Snapshots.(*snapshotStore).keep(*meta, body)
		last, term = meta.Index, max(term, meta.Term)
	}
	if n := len(entries); n > 0 {
		err = errors.Join(err, s.Log.StoreLogs(entries))
		last, term = entries[n-1].Index, max(term, entries[n-1].Term)
	}
	err = errors.Join(err, s.Stable.SetUint64([]byte("CurrentTerm"), term), s.Close())
	kept = fmt.Sprintf("the plan was kept up to entry %d of its log", last)
	if why != nil {
		kept += fmt.Sprintf(", and whatever came after is lost: %v", why)
	}
	return kept, err
}

// soundSnapshot returns the newest snapshot that can be read, or an empty state.
func soundSnapshot(dir string) (*raft.SnapshotMeta, []byte, *plan.State, error) {
	store := &snapshotStore{dir: dir}
	ids, err := store.ids()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, new(plan.State), nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	var newest *raft.SnapshotMeta
	var newestBody []byte
	state := new(plan.State)
	for _, id := range ids {
		meta, body, err := store.read(id)
		if unwritable(err) {
			return nil, nil, nil, err
		}
		if err != nil || newest != nil && meta.Index <= newest.Index {
			continue
		}
		s, err := plan.UnmarshalSnapshot(body)
		if errors.Is(err, plan.ErrUnknownCommand) {
			return nil, nil, nil, err // a later version loses less
		}
		if err == nil {
			newest, newestBody, state = meta, body, s
		}
	}
	return newest, newestBody, state, nil
}

// readable returns the entries after a snapshot that can be read, the term that the node was in,
// and why there are no more, if damage is why.
func readable(d diskDir, snapshot *raft.SnapshotMeta, log hclog.Logger) (entries []*raft.Log, term uint64, why error) {
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Errorf("the log can't be read: %v", p)
		}
	}()
	if _, err := os.Stat(filepath.Join(d.log(), ledgerName)); err != nil {
		return nil, 0, err
	}
	w, err := openLog(d.log(), new(ledger), log)
	if err != nil {
		return nil, 0, err
	}
	defer w.Close()
	if term, err = w.GetUint64([]byte("CurrentTerm")); err != nil {
		return nil, 0, err
	}
	mark, err := w.GetUint64(markKey)
	if err != nil {
		return nil, term, err
	}
	first, err := w.FirstIndex()
	if err != nil {
		return nil, term, err
	}
	last, err := w.LastIndex()
	if err != nil {
		return nil, term, err
	}
	next := uint64(1)
	if snapshot != nil {
		next = snapshot.Index + 1
	}
	if first > next {
		return nil, term, fmt.Errorf("the log begins with entry %d, and what came before is gone", first)
	}
	for ; next <= last; next++ {
		l := new(raft.Log)
		if err := (sealedLog{w}).GetLog(next, l); err != nil {
			return entries, term, err
		}
		entries = append(entries, l)
	}
	if last < mark && next <= mark {
		return entries, term, fmt.Errorf("the log ends with entry %d, but held %d at least", last, mark)
	}
	return entries, term, nil
}
