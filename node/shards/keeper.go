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
)

// Network is what the keeper needs of other nodes.
type Network interface {
	// Fetch asks a node for a piece of a shard and reads exactly len(dst) bytes.
	Fetch(ctx context.Context, peer string, request, dst []byte) error
	// Doubt has a node read its own copy of a shard through, and drop it if it is
	// damaged.
	Doubt(ctx context.Context, peer, dataset string, shard int)
	// Serving says whether a node answers now. It must not block.
	Serving(id string) bool
}

// Leader is told what is here. It returns the index of a plan in which that has
// taken effect, if it is to.
type Leader interface {
	Hold(ctx context.Context, dataset string, shards []int) (index uint64, err error)
	Lose(ctx context.Context, dataset string, shards []int) (index uint64, err error)
	// Index is the index of the leader's plan: a node that has read less may act on
	// what is long past.
	Index(ctx context.Context) (uint64, error)
}

// Config says what a Keeper works on. All fields are required.
type Config struct {
	Dir     string // holds one folder for each dataset
	Self    string // this node's id
	Network Network
	Leader  Leader
	Log     *slog.Logger
}

// A Keeper keeps the files. Its methods may be called from any goroutine.
type Keeper struct {
	cfg    Config
	wake   chan struct{} // buffered: something has changed
	tell   chan struct{} // buffered: the leader may have to be told
	lanes  chan *lane    // those that are free
	seals  chan struct{} // bounds how many files wait for the disk
	serves chan []byte   // buffers for what is served; nil if not made yet

	hashing chan struct{} // bounds how many files are hashed on request at once

	mu      sync.Mutex
	plan    *plan.State        // the newest
	folders map[string]*folder // by dataset; those on disk
	staged  map[string]bool    // datasets that this process is importing
	fetches map[key]*fetch     // under way
	trouble map[key]*trouble   // what could not be fetched, and when to try again
	told    map[key]uint64     // as of which plan what was last said of a shard holds
	checks  map[key]*check     // verifications under way
	disk    error              // why the folder can't be used; nil if it can
	life    context.Context    // Run's, for verifications
	running *sync.WaitGroup    // what Run waits for
}

// key is one shard of one dataset.
type key struct {
	dataset string
	shard   int
}

// A folder is what lies on disk of one dataset.
type folder struct {
	held  map[int]uint64 // bytes of each whole file
	parts map[int]bool   // files that are being fetched, or were
}

const (
	// lanes is how many shards are fetched at once, each with a few pieces in
	// flight.
	maxLanes = 2
	// maxSeals is how many shards may wait for the disk while others come.
	maxSeals = 4
	// maxServes bounds what is read from disk for others at once, a piece each.
	maxServes = 16
	// maxHashing bounds how many files are read through on request at once.
	maxHashing = 2
	// lookEvery is how often to look again while something is wrong, restEvery while
	// all is as the plan wants it: an idle node is to cost nothing.
	lookEvery = time.Second
	restEvery = 10 * time.Second
)

// Open takes stock of the directory and removes what imports of earlier processes
// left. A directory that can't be used is a trouble, not an error: the node is a
// member without it.
func Open(cfg Config) *Keeper {
	k := &Keeper{
		cfg: cfg, wake: make(chan struct{}, 1), tell: make(chan struct{}, 1),
		lanes: make(chan *lane, maxLanes), serves: make(chan []byte, maxServes), hashing: make(chan struct{}, maxHashing), seals: make(chan struct{}, maxSeals),
		plan: new(plan.State), folders: map[string]*folder{}, staged: map[string]bool{}, fetches: map[key]*fetch{},
		trouble: map[key]*trouble{}, told: map[key]uint64{}, checks: map[key]*check{},
	}
	for range maxLanes {
		k.lanes <- &lane{}
	}
	for range maxServes {
		k.serves <- nil
	}
	k.disk = k.takeStock()
	return k
}

// Adopt takes in a newer version of the plan.
func (k *Keeper) Adopt(s *plan.State) {
	k.mu.Lock()
	k.plan = s
	k.mu.Unlock()
	nudge(k.wake)
}

// Run does what the plan says until ctx ends, and then waits for all that it
// started. It does nothing before this node has read as much of the plan as the
// leader had when asked: an old plan would make it fetch and drop what it must
// not.
func (k *Keeper) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	k.mu.Lock()
	k.life, k.running = ctx, &wg
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.life = nil // no verification begins any more
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
	for {
		k.round(ctx, &wg)
		nudge(k.tell)
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

// calm says whether there is nothing to fetch, to tell or to try again.
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

// caughtUp asks the leader how long the plan is and waits until this node has read
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

// round removes what nobody wants before it begins to fetch, so that it never
// removes what has just come. Only Run calls it.
func (k *Keeper) round(ctx context.Context, wg *sync.WaitGroup) {
	now := time.Now()
	k.mu.Lock()
	rubbish := k.sortOut()
	k.mu.Unlock()
	k.remove(rubbish)
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
				k.lanes <- l // the next shard comes while the disk takes this one
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

// The names of files and folders. They are made of a dataset's id, which is always
// sixteen hex digits, and a number: nothing else from outside is ever part of one.
func (k *Keeper) folder(dataset string) string { return filepath.Join(k.cfg.Dir, dataset) }

func (k *Keeper) file(f key) string {
	return filepath.Join(k.cfg.Dir, f.dataset, graph.ShardFile(f.shard))
}

func (k *Keeper) part(f key) string {
	return filepath.Join(k.cfg.Dir, f.dataset, graph.ShardFile(f.shard)[:shardDigits]+partSuffix)
}

// isID says whether a text is the id of a dataset.
func isID(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == idBytes && hex.EncodeToString(b) == text
}

// nudge puts a token into a channel that holds one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
