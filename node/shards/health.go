package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph/quicksum"
)

// health is what is known of the files of shards, beside what is on disk. It is kept in
// memory only: whoever starts anew verifies anew.
type health struct {
	whole  map[key]stamp // files that this process has read and found whole
	losses map[key]*loss // files that were dropped, until they are here again
	// doubted are files that could not be read: only their SHA-256 says whether they are whole.
	doubted map[key]bool
	// told is what users were told, by dataset. Only Run uses it.
	told map[string]string
}

// loss is why a file was dropped, and whether users have heard.
type loss struct {
	why   string
	heard bool
}

const (
	whyGone      = "its file is gone"
	whyDamaged   = "its file is damaged: the SHA-256 is another than that in the plan"
	whyTruncated = "its file is cut off"
)

// tidy forgets what is known of files that are of no interest any more. Called with mu held.
func (h *health) tidy(k *Keeper) {
	for f, l := range h.losses {
		d, in := k.plan.Datasets[f.dataset]
		if !in || f.shard >= len(d.Shards) || (l.heard || k.cfg.Damage == nil) && !d.Lost(f.shard) && !d.Wants(k.cfg.Self, f.shard) {
			delete(h.losses, f)
		}
	}
	for f := range h.whole {
		if folder := k.folders[f.dataset]; folder == nil || folder.held[f.shard] == 0 {
			delete(h.whole, f)
		}
	}
	for f := range h.doubted {
		if folder := k.folders[f.dataset]; folder == nil || folder.held[f.shard] == 0 {
			delete(h.doubted, f)
		}
	}
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

// scrubber reads a keeper's files again and again.
type scrubber struct{ keeper *Keeper }

// run reads all files again and again, slowly and while no job runs here, so that damage is
// found before the last whole copy is gone.
func (s scrubber) run(ctx context.Context) {
	for pause(ctx, scrubAfter) {
		for _, f := range s.files() {
			if !s.file(ctx, f) {
				return
			}
		}
		if !pause(ctx, scrubEvery) {
			return
		}
	}
}

// files lists the shards that are here and that the plan knows to be.
func (s scrubber) files() (list []key) {
	k := s.keeper
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
func (s scrubber) idle(ctx context.Context) bool {
	k := s.keeper
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

// file reads one file, and drops it if it is damaged. It reports whether ctx has not
// ended.
func (s scrubber) file(ctx context.Context, f key) bool {
	k := s.keeper
	k.mu.Lock()
	d, in := k.plan.Datasets[f.dataset]
	k.mu.Unlock()
	if !in || f.shard >= len(d.Shards) {
		return true
	}
	read := func(n int) bool {
		return pause(ctx, time.Duration(n)*time.Second/scrubRate) && s.idle(ctx)
	}
	want := d.Shards[f.shard].SHA256
	quick, as, err := readWhole(ctx, k.file(f), want, read)
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		k.found(f, want, quick, as)
		return true
	}
	// It may have been removed meanwhile, for a good reason: Verify asks the plan first.
	k.Suspect(f.dataset, f.shard)
	if _, err := k.Verify(ctx, f.dataset, f.shard); err != nil {
		k.cfg.Log.Warn("could not verify a shard", "dataset", f.dataset, "shard", f.shard, "err", err)
	}
	return ctx.Err() == nil
}

var (
	// errUnreadable marks errors of a disk that can't read a file any more.
	errUnreadable = errors.New("can't be read")
	errDiffers    = errors.New("its SHA-256 is another than that in the plan")
	// errWritten says nothing about a file: it was written, renamed or marked while it was read.
	errWritten = errors.New("it is being written")
)

// isDamage reports whether an error of readWhole means that the file is of no use.
func isDamage(err error) bool {
	return errors.Is(err, errDiffers) || errors.Is(err, errUnreadable) || errors.Is(err, os.ErrNotExist)
}

// mostReads is how often a file is read that is written meanwhile.
const mostReads = 3

// readWhole reads a file and returns an error unless it has this SHA-256. Then it is whole,
// whatever was done to it meanwhile. A file that has another is damaged only if nothing was.
func readWhole(ctx context.Context, path, digest string, between func(n int) bool) (quicksum.Sums, stamp, error) {
	for n := 1; ; n++ {
		sum, quick, as, err := hashFile(ctx, path, between)
		written := errors.Is(err, errWritten)
		switch {
		case sum == digest && (err == nil || written):
			return quick, as, nil
		case err == nil:
			return quick, as, fmt.Errorf("verify a shard: %s: %w", path, errDiffers)
		case !written || n == mostReads || !pause(ctx, lookEvery):
			return quick, as, fmt.Errorf("verify a shard: %w", err)
		}
	}
}

// hashFile returns the SHA-256 of a file, its sums and the stamp that it had before, and with
// them errWritten if it has another afterwards. between, if not nil, is called between pieces of
// so many bytes, and the file is read from the disk and not from memory, as far as no job has it
// in use.
func hashFile(ctx context.Context, path string, between func(n int) bool) (string, quicksum.Sums, stamp, error) {
	var none quicksum.Sums
	f, err := os.Open(path)
	if err != nil {
		return "", none, stamp{}, err
	}
	defer f.Close()
	before, err := stampOn(f)
	if err != nil {
		return "", none, stamp{}, err
	}
	if between != nil {
		forgetPages(f)
	}
	hash, b := quicksum.New(), make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := f.Read(b)
		_, _ = hash.Write(b[:n])
		if errors.Is(err, io.EOF) {
			after, err := stampOn(f)
			if err == nil && after != before {
				err = fmt.Errorf("%s: %w", path, errWritten)
			}
			digest, quick := hash.Digest()
			return digest, quick, before, err
		}
		if err != nil {
			return "", none, stamp{}, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		if between != nil && !between(n) {
			break
		}
	}
	return "", none, stamp{}, context.Cause(ctx)
}

// whyOf words how a file was found.
func whyOf(path string, want plan.Shard, err error) string {
	info, statErr := os.Stat(path)
	switch {
	case errors.Is(statErr, os.ErrNotExist):
		return whyGone
	case errors.Is(err, errUnreadable):
		return "its file can't be used: " + err.Error()
	case statErr == nil && uint64(info.Size()) < want.Bytes:
		return whyTruncated
	}
	return whyDamaged
}
