package shards

import (
	"errors"
	"fmt"
	"os"
)

const (
	stagingSuffix = "import"
	scratchSuffix = "scratch"
)

// A Stage is where an import makes its files. They are the import's until Publish
// or Close.
type Stage struct {
	keeper  *Keeper
	dataset string
	// Dir is where the shards are to be made, by the import itself; Scratch is for
	// what it needs meanwhile.
	Dir, Scratch string
}

// Begin prepares an import of a dataset with this id, which nobody else uses.
func (k *Keeper) Begin(dataset string) (*Stage, error) {
	if !isID(dataset) {
		return nil, fmt.Errorf("%q is no dataset's id", dataset)
	}
	s := &Stage{
		keeper: k, dataset: dataset,
		Dir: k.folder(dataset) + "." + stagingSuffix, Scratch: k.folder(dataset) + "." + scratchSuffix,
	}
	if err := os.MkdirAll(s.Scratch, 0o700); err != nil {
		return nil, fmt.Errorf("prepare the import's folder: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.staged[dataset] = true
	return s, nil
}

// Publish makes the files those of the dataset. They are not removed before Close,
// although the plan does not know of them yet.
func (s *Stage) Publish() error {
	k := s.keeper
	final := k.folder(s.dataset)
	if err := os.Rename(s.Dir, final); err != nil {
		return fmt.Errorf("put the shards in place: %w", err)
	}
	if err := syncFolder(k.cfg.Dir); err != nil {
		return fmt.Errorf("put the shards in place: %w", err)
	}
	f, err := readFolder(final)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.folders[s.dataset] = f
	return nil
}

// Close removes what the import left beside its shards. From now on the plan says
// what happens to those.
func (s *Stage) Close() error {
	err := errors.Join(os.RemoveAll(s.Dir), os.RemoveAll(s.Scratch))
	s.keeper.mu.Lock()
	delete(s.keeper.staged, s.dataset)
	s.keeper.mu.Unlock()
	nudge(s.keeper.wake)
	if err != nil {
		return fmt.Errorf("clear up after the import: %w", err)
	}
	return nil
}

// Importing says whether this node is importing the dataset with this id.
func (k *Keeper) Importing(dataset string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.staged[dataset]
}
