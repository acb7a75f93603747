package shards

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/node/damage"
)

// Network is the keeper's access to other nodes.
type Network interface {
	// Fetch asks a node for a piece of a shard and reads exactly len(dst) bytes.
	Fetch(ctx context.Context, peer string, request, dst []byte) error
	// Doubt makes a node verify its own copy of a shard, and drop it if it is damaged.
	Doubt(ctx context.Context, peer, dataset string, shard int)
	// Serving reports whether a node answers now. It must not block.
	Serving(id string) bool
}

// Leader records which shards are here. It returns the index of a plan in which the
// report has taken effect.
type Leader interface {
	Hold(ctx context.Context, dataset string, shards []int) (index uint64, err error)
	Lose(ctx context.Context, dataset string, shards []int) (index uint64, err error)
	// Index returns the index of the leader's plan. A node that has read less of the plan
	// may act on outdated state.
	Index(ctx context.Context) (uint64, error)
}

// Config configures a Keeper. All fields but Memory and Damage are required.
type Config struct {
	Dir     string // holds one folder for each dataset
	Self    string // this node's id
	Memory  uint64 // bytes that the node may take; 0: no bound
	Network Network
	Leader  Leader
	Damage  Damage // nil: nobody is told
	Log     *slog.Logger
}

// Damage tells users what is damaged on this node.
type Damage interface {
	Found(kind damage.Kind, key, what string)
	Repaired(kind damage.Kind, key, what string)
	Clear(kind damage.Kind, key string)
}

// Keeper keeps the files. Its methods may be called from any goroutine.
type Keeper struct {
	cfg    Config
	wake   chan struct{} // buffered: something has changed
	news   chan struct{} // buffered: there may be changes to report
	lanes  chan *lane    // those that are free
	seals  chan struct{} // bounds how many files wait for the disk
	serves *serves       // pieces that other nodes asked for

	mu       sync.Mutex
	plan     *plan.State        // the newest
	folders  map[string]*folder // by dataset: those on disk
	staged   map[string]int     // stages of datasets that this process is importing
	fetches  map[key]*fetch     // in progress
	trouble  map[key]*trouble   // what could not be fetched, and when to try again
	reported map[key]uint64     // by shard: the index of the plan that has its last report
	disk     error              // why the folder can't be used; nil if it can
	checks   checks             // verifications in progress, and what they found
}

// key is one shard of one dataset.
type key struct {
	dataset string
	shard   int
}

// folder records the files of one dataset on disk.
type folder struct {
	held  map[int]uint64 // bytes of each complete file
	parts map[int]bool   // partial files
}

const (
	// maxLanes is how many shards are fetched at once, each with a few pieces in flight.
	maxLanes = 2
	// maxSeals is how many shards may wait for the disk while others are fetched.
	maxSeals = 4
	// maxServes bounds how many pieces are read from disk for others at once.
	maxServes = 16
	// maxHashing bounds how many files are verified on request at once.
	maxHashing = 2
	// lookEvery is the interval between rounds while something is wrong, and restEvery
	// while all is as the plan wants it. An idle node must cost nothing.
	lookEvery = time.Second
	restEvery = 10 * time.Second
)

// Open lists the files in the directory and removes leftovers of earlier imports. If the
// directory can't be used, Problems reports it; Open does not fail, since the node is a
// member even without its disk.
func Open(cfg Config) *Keeper {
	k := &Keeper{
		cfg: cfg, wake: make(chan struct{}, 1), news: make(chan struct{}, 1),
		lanes: make(chan *lane, maxLanes), serves: newServes(cfg.Memory), seals: make(chan struct{}, maxSeals),
		plan: new(plan.State), folders: map[string]*folder{}, staged: map[string]int{}, fetches: map[key]*fetch{},
		trouble: map[key]*trouble{}, reported: map[key]uint64{}, checks: checks{hashing: make(chan struct{}, maxHashing), under: map[key]*check{}, health: health{whole: map[key]stamp{}, losses: map[key]*loss{}, doubted: map[key]bool{}}},
	}
	for range maxLanes {
		k.lanes <- &lane{}
	}
	k.disk = k.takeStock()
	return k
}

// Adopt gives the keeper a newer version of the plan.
func (k *Keeper) Adopt(s *plan.State) {
	k.mu.Lock()
	k.plan = s
	k.mu.Unlock()
	nudge(k.wake)
}

// Run follows the plan until ctx ends, and then waits for all that it started. It does
// nothing before this node has read as much of the plan as the leader had when asked,
// since with an old plan it would fetch and drop the wrong files.
func (k *Keeper) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	k.mu.Lock()
	k.checks.life, k.checks.group = ctx, &wg
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.checks.life = nil // no verification starts any more
		k.mu.Unlock()
	}()
	for !k.caughtUp(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	wg.Go(func() { k.report(ctx) })
	wg.Go(func() { scrubber{k}.run(ctx) })
	for {
		k.round(ctx, &wg)
		nudge(k.news)
		if k.calm() {
			tick.Reset(restEvery)
		} else {
			tick.Reset(lookEvery)
		}
		select {
		case <-k.wake:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// calm reports whether there is nothing to fetch, to report or to try again.
func (k *Keeper) calm() bool {
	k.mu.Lock()
	ids, calm := slices.Collect(maps.Keys(k.plan.Datasets)), len(k.trouble) == 0 && len(k.fetches) == 0 && k.disk == nil
	k.mu.Unlock()
	for _, id := range ids {
		if !calm {
			return false
		}
		hold, lose := k.untold(id)
		calm = len(hold)+len(lose) == 0
	}
	return calm
}

// caughtUp asks the leader for the index of its plan and waits until this node has read
// that much.
func (k *Keeper) caughtUp(ctx context.Context) bool {
	index, err := k.cfg.Leader.Index(ctx)
	if err != nil {
		k.cfg.Log.Debug("ask how far the plan has come", "err", err)
		return false
	}
	for {
		k.mu.Lock()
		read := k.plan.Index
		k.mu.Unlock()
		if read >= index {
			return true
		}
		select {
		case <-k.wake:
		case <-ctx.Done():
			return false
		}
	}
}

// round removes unwanted files before it starts fetches, so that it never removes a file
// that has just arrived. Only Run calls it.
func (k *Keeper) round(ctx context.Context, wg *sync.WaitGroup) {
	now := time.Now()
	k.mu.Lock()
	rubbish := k.sortOut()
	k.mu.Unlock()
	k.remove(rubbish)
	k.tell()
	for {
		select {
		case l := <-k.lanes:
			k.mu.Lock()
			f := k.next(ctx, now)
			k.mu.Unlock()
			if f == nil {
				l.rest()
				k.lanes <- l
				return
			}
			wg.Go(func() {
				p, err := k.bring(f, l)
				k.seals <- struct{}{}
				k.lanes <- l // the next shard is fetched while this one is written to disk
				nudge(k.wake)
				if err == nil {
					err = p.seal(k.file(f.key))
				}
				<-k.seals
				k.finish(f, err)
				nudge(k.wake)
				if errors.Is(err, errDamaged) {
					k.cfg.Network.Doubt(ctx, f.peer, f.dataset, f.shard)
				}
			})
		default:
			return
		}
	}
}

// The names of files and folders are made of a dataset's id, which is always sixteen hex
// digits, and a number. No other external input is ever part of a name.
func (k *Keeper) folder(dataset string) string { return filepath.Join(k.cfg.Dir, dataset) }

func (k *Keeper) file(f key) string {
	return filepath.Join(k.cfg.Dir, f.dataset, graph.ShardFile(f.shard))
}

func (k *Keeper) part(f key) string {
	return filepath.Join(k.cfg.Dir, f.dataset, graph.ShardFile(f.shard)[:shardDigits]+partSuffix)
}

// isID reports whether text has the form of a dataset's id.
func isID(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == idBytes && hex.EncodeToString(b) == text
}

// nudge puts a token into a channel with a buffer of one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
