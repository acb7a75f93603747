package shards

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/damage"
	"golang.org/x/sys/unix"
)

// health is what is known of the files of shards, beside what is on disk. It is kept in
// memory only: whoever starts anew verifies anew.
type health struct {
	whole  map[key]stamp // files that this process has read and found whole
	losses map[key]*loss // files that were dropped, until they are here again
	// told is what users were told, by dataset. Only Run uses it.
	told map[string]string
}

// loss is why a file was dropped.
type loss struct{ why string }

const (
	whyGone      = "its file is gone"
	whyDamaged   = "its file is damaged: the SHA-256 is another than that in the plan"
	whyTruncated = "its file is cut off"
)

// lose records why a shard's file is not here any more, and logs it. Called with mu held.
func (k *Keeper) lose(f key, why string) {
	delete(k.health.whole, f)
	if k.health.losses[f] != nil {
		return
	}
	k.health.losses[f] = &loss{why: why}
	k.cfg.Log.Warn("this node has lost a shard; another copy is fetched, if there is one", "dataset", k.plan.Datasets[f.dataset].Name, "shard", f.shard, "path", k.file(f), "why", why)
}

// tidy forgets what is known of files that are of no interest any more. Called with mu held.
func (h *health) tidy(k *Keeper) {
	for f := range h.losses {
		d, in := k.plan.Datasets[f.dataset]
		if !in || f.shard >= len(d.Shards) || !d.Lost(f.shard) && !d.Wants(k.cfg.Self, f.shard) {
			delete(h.losses, f)
		}
	}
	for f := range h.whole {
		if folder := k.folders[f.dataset]; folder == nil || folder.held[f.shard] == 0 {
			delete(h.whole, f)
		}
	}
}

// tell tells users which shards this node has lost and does not have again yet. Only Run calls
// it.
func (k *Keeper) tell() {
	if k.cfg.Damage == nil {
		return
	}
	k.mu.Lock()
	now := map[string]string{}
	for id, d := range k.plan.Datasets {
		if what := k.missing(id, d); what != "" {
			now[id] = what
		}
	}
	before, names := k.health.told, map[string]string{}
	for id := range before {
		names[id] = k.plan.Datasets[id].Name
	}
	k.health.told = now
	k.mu.Unlock()
	for id, what := range now {
		if before[id] != what {
			k.cfg.Damage.Found(damage.Shard, id, what)
		}
	}
	for id := range before {
		switch _, still := now[id]; {
		case still:
		case names[id] == "":
			k.cfg.Damage.Clear(damage.Shard, id)
		default:
			k.cfg.Damage.Repaired(damage.Shard, id, fmt.Sprintf("what was lost of dataset %s is here again, or with other nodes", names[id]))
		}
	}
}

// missing says which shards of a dataset this node has lost, why, and what becomes of them; ""
// if it has lost none. Called with mu held.
func (k *Keeper) missing(id string, d plan.Dataset) string {
	var lost, last []int // last: no other node has a copy
	why := ""
	for i := range d.Shards {
		l := k.health.losses[key{id, i}]
		if l == nil {
			continue
		}
		if why == "" {
			why = l.why
		}
		if others := slices.ContainsFunc(d.HoldersOf(i), func(n string) bool { return n != k.cfg.Self }); others {
			lost = append(lost, i)
		} else {
			last = append(last, i)
		}
	}
	switch {
	case len(last) > 0:
		return fmt.Sprintf("%s of dataset %s can't be used (%s), and no other node has a copy: remove the dataset and import it again", listed(last), d.Name, why)
	case len(lost) > 0:
		return fmt.Sprintf("%s of dataset %s can't be used (%s): another copy is fetched", listed(lost), d.Name, why)
	}
	return ""
}

// listed names shards.
func listed(shards []int) string {
	if len(shards) == 1 {
		return fmt.Sprintf("shard %d", shards[0])
	}
	return fmt.Sprintf("%d shards (%d and others)", len(shards), shards[0])
}

const (
	// scrubAfter is how long a node runs before it reads its files again, and scrubEvery how
	// often it does so with all of them.
	scrubAfter = 10 * time.Minute
	scrubEvery = 24 * time.Hour
	// scrubRate is how many bytes a second are read meanwhile: about a hundredth of what one
	// core can hash.
	scrubRate = 16 << 20
)

// scrub reads all files again and again, slowly and while no job runs here, so that damage is
// found before the last whole copy is gone.
func (k *Keeper) scrub(ctx context.Context) {
	for pause(ctx, scrubAfter) {
		for _, f := range k.files() {
			if !k.scrubFile(ctx, f) {
				return
			}
		}
		if !pause(ctx, scrubEvery) {
			return
		}
	}
}

// files lists the shards that are here and that the plan knows to be.
func (k *Keeper) files() (list []key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(k.plan.Datasets)) {
		d := k.plan.Datasets[id]
		for shard := range d.Shards {
			if d.Holds(k.cfg.Self, shard) && k.holds(key{id, shard}, d.Shards[shard]) {
				list = append(list, key{id, shard})
			}
		}
	}
	return list
}

// idle waits until no job runs here. It reports whether ctx has not ended.
func (k *Keeper) idle(ctx context.Context) bool {
	for {
		k.mu.Lock()
		_, busy := k.plan.JobOn(k.cfg.Self)
		k.mu.Unlock()
		if !busy {
			return ctx.Err() == nil
		}
		if !pause(ctx, restEvery) {
			return false
		}
	}
}

// scrubFile reads one file, and drops it if it is damaged. It reports whether ctx has not
// ended.
func (k *Keeper) scrubFile(ctx context.Context, f key) bool {
	k.mu.Lock()
	d, in := k.plan.Datasets[f.dataset]
	k.mu.Unlock()
	if !in || f.shard >= len(d.Shards) {
		return true
	}
	read := func(n int) bool {
		return pause(ctx, time.Duration(n)*time.Second/scrubRate) && k.idle(ctx)
	}
	sum, _, err := hashFile(ctx, k.file(f), read)
	if ctx.Err() != nil {
		return false
	}
	if err == nil && sum == d.Shards[f.shard].SHA256 {
		return true
	}
	// It may have been removed meanwhile, for a good reason: Verify asks the plan first.
	k.Suspect(f.dataset, f.shard)
	_, _ = k.Verify(ctx, f.dataset, f.shard) // it logs what it finds
	return ctx.Err() == nil
}

// errUnreadable marks errors of a disk that can't read a file any more.
var errUnreadable = errors.New("can't be read")

// hashFile returns the SHA-256 of a file, and its stamp; errChanging if it was written
// meanwhile. between, if not nil, is called between pieces of so many bytes, and the file is
// read from the disk and not from memory, as far as no job has it in use.
func hashFile(ctx context.Context, path string, between func(n int) bool) (string, stamp, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", stamp{}, fmt.Errorf("verify a shard: %w", err)
	}
	defer f.Close()
	before, err := stampOn(f)
	if err != nil {
		return "", stamp{}, fmt.Errorf("verify a shard: %w", err)
	}
	if between != nil {
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	sum, b := sha256.New(), make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := f.Read(b)
		sum.Write(b[:n])
		if errors.Is(err, io.EOF) {
			after, err := stampOn(f)
			if err != nil || after != before {
				return "", stamp{}, fmt.Errorf("verify a shard: %w: it is being written: %w", errUnreadable, err)
			}
			return hex.EncodeToString(sum.Sum(nil)), before, nil
		}
		if err != nil {
			return "", stamp{}, fmt.Errorf("verify a shard: %w: %w", errUnreadable, err)
		}
		if between != nil && !between(n) {
			break
		}
	}
	return "", stamp{}, context.Cause(ctx)
}

// whyOf words how a file was found.
func whyOf(path string, want plan.Shard, err error) string {
	info, statErr := os.Stat(path)
	switch {
	case errors.Is(statErr, os.ErrNotExist):
		return whyGone
	case errors.Is(err, errUnreadable):
		return fmt.Sprintf("its file can't be read: %v", errors.Unwrap(err))
	case statErr == nil && uint64(info.Size()) < want.Bytes:
		return whyTruncated
	}
	return whyDamaged
}
