package shards

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
)

const (
	shardDigits = 4
	wholeSuffix = ".safetensors"
	partSuffix  = ".part"
)

// takeStock records the files on disk by name and size, and removes the folders of
// imports that were interrupted.
func (k *Keeper) takeStock() error {
	if err := os.MkdirAll(k.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("create the folder for shards: %w", err)
	}
	entries, err := os.ReadDir(k.cfg.Dir)
	if err != nil {
		return fmt.Errorf("read the folder for shards: %w", err)
	}
	for _, e := range entries {
		id, suffix, _ := strings.Cut(e.Name(), ".")
		switch {
		case !isID(id):
		case suffix == stagingSuffix || suffix == scratchSuffix:
			err = errors.Join(err, os.RemoveAll(filepath.Join(k.cfg.Dir, e.Name())))
		case suffix == "" && e.IsDir():
			f, readErr := readFolder(filepath.Join(k.cfg.Dir, id))
			k.folders[id] = f
			err = errors.Join(err, readErr)
		}
	}
	return err
}

func readFolder(path string) (*folder, error) {
	f := &folder{held: map[int]uint64{}, parts: map[int]bool{}}
	entries, err := os.ReadDir(path)
	if err != nil {
		return f, fmt.Errorf("read the folder of a dataset: %w", err)
	}
	for _, e := range entries {
		digits, suffix := e.Name()[:min(shardDigits, len(e.Name()))], e.Name()[min(shardDigits, len(e.Name())):]
		shard, err := strconv.Atoi(digits)
		if err != nil || shard < 0 || shard >= plan.MaxShards || graph.ShardFile(shard)[:shardDigits] != digits {
			continue
		}
		switch info, err := e.Info(); {
		case err != nil || !info.Mode().IsRegular():
		case suffix == wholeSuffix:
			f.held[shard] = uint64(info.Size())
		case suffix == partSuffix:
			f.parts[shard] = true
		}
	}
	return f, nil
}

// holds reports whether the file that the plan names is here. Called with mu held.
func (k *Keeper) holds(f key, want plan.Shard) bool {
	folder := k.folders[f.dataset]
	if folder == nil {
		return false
	}
	size, ok := folder.held[f.shard]
	return ok && size == want.Bytes
}

// made returns the record of a dataset's folder, which may be new. Called with mu
// held.
func (k *Keeper) made(dataset string) *folder {
	f := k.folders[dataset]
	if f == nil {
		f = &folder{held: map[int]uint64{}, parts: map[int]bool{}}
		k.folders[dataset] = f
	}
	return f
}

// sortOut returns files that nobody wants, and forgets them: from now on they are not
// served. It cancels fetches of shards that are no longer wanted. Called with mu held.
func (k *Keeper) sortOut() (rubbish []string) {
	for f, job := range k.fetches {
		if !k.wanted(f) {
			job.cancel(errUnwanted)
		} else if !k.cfg.Network.Serving(job.peer) {
			job.cancel(errSourceGone)
		}
	}
	for f := range k.trouble {
		if !k.wanted(f) {
			delete(k.trouble, f)
		}
	}
	k.checks.tidy(k)
	for f, index := range k.reported {
		if index <= k.plan.Index {
			delete(k.reported, f)
		}
	}
	for id, folder := range k.folders {
		if k.staged[id] > 0 {
			continue
		}
		if _, in := k.plan.Datasets[id]; !in {
			if !k.fetching(id) {
				delete(k.folders, id)
				rubbish = append(rubbish, k.folder(id))
			}
			continue
		}
		rubbish = append(rubbish, k.sortFolder(id, folder)...)
	}
	return rubbish
}

// sortFolder is sortOut for one dataset that is in the plan.
func (k *Keeper) sortFolder(id string, folder *folder) (rubbish []string) {
	d := k.plan.Datasets[id]
	if d.Stage == plan.Importing {
		return nil // this node is about to define the dataset, or to give it up
	}
	for shard, size := range folder.held {
		f := key{id, shard}
		if k.keeps(d, f) && size == d.Shards[shard].Bytes {
			continue
		}
		if k.keeps(d, f) {
			k.lose(f, whyTruncated)
		}
		delete(folder.held, shard)
		rubbish = append(rubbish, k.file(f))
	}
	for shard := range folder.parts {
		f := key{id, shard}
		if k.fetches[f] == nil && !k.wanted(f) {
			delete(folder.parts, shard)
			rubbish = append(rubbish, k.part(f))
		}
	}
	return rubbish
}

// keeps reports whether to keep a file: either the plan wants this node to have it, or
// knows of no other copy. Called with mu held.
func (k *Keeper) keeps(d plan.Dataset, f key) bool {
	if f.shard >= len(d.Shards) {
		return false
	}
	return d.Wants(k.cfg.Self, f.shard) || d.Holds(k.cfg.Self, f.shard) || d.Lost(f.shard)
}

// wanted reports whether to fetch a shard: the plan wants this node to have it, and it
// does not. Called with mu held.
func (k *Keeper) wanted(f key) bool {
	d, ok := k.plan.Datasets[f.dataset]
	return ok && f.shard < len(d.Shards) && d.Wants(k.cfg.Self, f.shard) && !k.holds(f, d.Shards[f.shard])
}

// fetching reports whether a fetch of a dataset is in progress. Called with mu held.
func (k *Keeper) fetching(dataset string) bool {
	for f := range k.fetches {
		if f.dataset == dataset {
			return true
		}
	}
	return false
}

// remove deletes files and folders that were forgotten before. If that fails, the next
// start finds them again.
func (k *Keeper) remove(paths []string) {
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			k.cfg.Log.Warn("could not remove what is no longer wanted", "path", p, "err", err)
		}
	}
}

// forget drops a file that is missing or damaged. The leader learns of it, and the file
// is fetched again.
func (k *Keeper) forget(f key, why string) {
	k.mu.Lock()
	defer k.mu.Unlock() // held until the file is removed: a new one must not be mistaken for it
	k.lose(f, why)
	if folder := k.folders[f.dataset]; folder != nil {
		delete(folder.held, f.shard)
	}
	if err := os.Remove(k.file(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.cfg.Log.Warn("could not remove a damaged shard", "path", k.file(f), "err", err)
	}
	nudge(k.wake)
}

const (
	stagingSuffix = "import"
	scratchSuffix = "scratch"
)

// Stage is where an import makes its files. They belong to the import until Publish or
// Close.
type Stage struct {
	keeper  *Keeper
	dataset string
	// Dir is the folder in which the import makes the shards, and Scratch that for its
	// temporary files.
	Dir, Scratch string
}

// Begin prepares an import of a dataset with this id, which nobody else may use. The import
// may have several stages; they are in the same folders.
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
	k.staged[dataset]++
	return s, nil
}

// Publish makes the files part of the dataset. They are not removed before Close,
// although the plan does not know them yet.
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

// Close removes what the import left besides its shards. From now on the plan decides
// about the shards.
func (s *Stage) Close() error {
	err := errors.Join(os.RemoveAll(s.Dir), os.RemoveAll(s.Scratch))
	s.keeper.mu.Lock()
	if s.keeper.staged[s.dataset]--; s.keeper.staged[s.dataset] <= 0 {
		delete(s.keeper.staged, s.dataset)
	}
	s.keeper.mu.Unlock()
	nudge(s.keeper.wake)
	if err != nil {
		return fmt.Errorf("clear up after the import: %w", err)
	}
	return nil
}

// Importing reports whether this node is importing the dataset with this id.
func (k *Keeper) Importing(dataset string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.staged[dataset] > 0
}
