package shards

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
)

const dataset = "00000000000000aa"

// world is some keepers and the real plan, with a network that can be broken.
type world struct {
	t   *testing.T
	dir string

	// applying keeps versions of the plan in order. Keepers are told without mu, which
	// they take when they ask who serves.
	applying sync.Mutex

	mu      sync.Mutex
	state   *plan.State
	index   uint64
	keepers map[string]*Keeper
	down    map[string]bool
	served  map[string]uint64 // bytes, by node
	// fault, if not nil, may refuse a piece or change what came.
	fault func(ctx context.Context, p piece) error
	// deaf leaders answer nothing.
	deaf   bool
	held   int // reports of shards that came
	damage Damage
}

// inWorld runs f in virtual time with members a, b and c, none of whose keepers
// runs yet.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, dir: dir, state: new(plan.State), keepers: map[string]*Keeper{}, down: map[string]bool{}, served: map[string]uint64{}}
		w.do(plan.Genesis{MeshID: "m", First: plan.Member{ID: "a", Name: "na", PublicKey: "k"}, KeyDigest: "d"})
		for _, id := range []string{"b", "c"} {
			w.do(plan.AddMember{Member: plan.Member{ID: id, Name: "n" + id, PublicKey: "k"}})
		}
		f(t, w)
	})
}

func (w *world) do(c plan.Command) uint64 {
	w.t.Helper()
	index, err := w.apply(c)
	if err != nil {
		w.t.Fatalf("%T: %v", c, err)
	}
	return index
}

func (w *world) apply(c plan.Command) (uint64, error) {
	w.applying.Lock()
	defer w.applying.Unlock()
	data, err := plan.Encode(c)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	w.index++
	index := w.index
	w.state, err = plan.Apply(w.state, index, data)
	state, keepers := w.state, maps.Clone(w.keepers)
	w.mu.Unlock()
	for _, k := range keepers {
		k.Adopt(state)
	}
	return index, err
}

// plan returns the dataset of the plan once all keepers have that plan.
func (w *world) plan() plan.Dataset {
	w.applying.Lock()
	defer w.applying.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Datasets[dataset]
}

// piece is what came from a node.
type piece struct {
	from   string
	offset uint64
	bytes  []byte
}

// seat is one node's view of the world.
type seat struct {
	*world
	id string
}

func (s seat) Doubt(ctx context.Context, peer, dataset string, shard int) {
	s.mu.Lock()
	from := s.keepers[peer]
	s.mu.Unlock()
	if from != nil {
		_, _ = from.Verify(ctx, dataset, shard)
	}
}

func (s seat) Serving(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.down[id]
}

func (s seat) Fetch(ctx context.Context, peer string, request, dst []byte) error {
	s.mu.Lock()
	from, down, fault := s.keepers[peer], s.down[peer], s.fault
	s.mu.Unlock()
	if from == nil || down {
		return errors.New("nobody there")
	}
	if err := from.Serve(ctx, s.id, uint64(len(request)), &asked{request, dst}); err != nil {
		return err
	}
	if fault != nil {
		q, err := parseRequest(request)
		if err == nil {
			err = fault(ctx, piece{peer, q.offset, dst})
		}
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[peer] += uint64(len(dst))
	return ctx.Err()
}

func (s seat) Hold(_ context.Context, id string, shards []int) (uint64, error) {
	s.mu.Lock()
	s.held += len(shards)
	s.mu.Unlock()
	return s.apply(plan.HoldShards{ID: id, Node: s.id, Shards: shards})
}

func (s seat) Lose(_ context.Context, id string, shards []int) (uint64, error) {
	return s.apply(plan.LoseShards{ID: id, Node: s.id, Shards: shards})
}

func (s seat) Index(context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf {
		return 0, errors.New("no leader")
	}
	return s.index, nil
}

// asked is a request that is answered in place.
type asked struct{ body, dst []byte }

func (a *asked) ReadBody(dst []byte) error {
	if n := copy(dst, a.body); n < len(dst) {
		return fmt.Errorf("%d bytes of %d", n, len(dst))
	}
	return nil
}

func (a *asked) Reply(_ uint64, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += copy(a.dst[n:], p)
	}
	if n != len(a.dst) {
		return fmt.Errorf("answered %d bytes of %d", n, len(a.dst))
	}
	return nil
}

// open makes a node's keeper from what is on its disk.
func (w *world) open(id string) *Keeper {
	k := Open(Config{Dir: w.folder(id), Self: id, Network: seat{w, id}, Leader: seat{w, id}, Damage: w.damage, Log: slog.New(slog.DiscardHandler)})
	w.applying.Lock()
	defer w.applying.Unlock()
	w.mu.Lock()
	w.keepers[id] = k
	state := w.state
	w.mu.Unlock()
	k.Adopt(state)
	return k
}

// run opens a node's keeper and runs it until the returned function is called.
func (w *world) run(id string) (stop func()) {
	k := w.open(id)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.t.Error(err)
			}
			w.mu.Lock()
			delete(w.keepers, id)
			w.mu.Unlock()
		})
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) folder(id string) string { return filepath.Join(w.dir, id, "datasets") }

func (w *world) file(id string, shard int) string {
	return filepath.Join(w.folder(id), dataset, graph.ShardFile(shard))
}

// bring makes a dataset of shards of these sizes on node a, as an import does.
func (w *world) bring(sizes ...int) {
	w.t.Helper()
	w.do(plan.ReserveDataset{ID: dataset, Name: "g", Importer: "a", Replicas: 1})
	random := rand.NewChaCha8([32]byte{1})
	if err := os.MkdirAll(filepath.Join(w.folder("a"), dataset), 0o700); err != nil {
		w.t.Fatal(err)
	}
	c := plan.DefineDataset{ID: dataset, Importer: "a", About: plan.About{DType: "f32", Partitioner: "random"}}
	for i, n := range sizes {
		b := make([]byte, n)
		_, _ = random.Read(b)
		if err := os.WriteFile(w.file("a", i), b, 0o600); err != nil {
			w.t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		c.Shards = append(c.Shards, plan.ShardAbout{Bytes: uint64(n), SHA256: hex.EncodeToString(sum[:])})
	}
	w.do(c)
}

// place says who shall hold every shard.
func (w *world) place(nodes ...string) {
	w.t.Helper()
	row := make([]int, len(nodes))
	for i := range row {
		row[i] = i
	}
	c := plan.PlaceShards{ID: dataset, Nodes: nodes}
	for range w.plan().Shards {
		c.Wanted = append(c.Wanted, row)
	}
	w.do(c)
}

// until waits in virtual time.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for begin := time.Now(); !holds(); {
		if time.Since(begin) > 5*time.Minute {
			w.t.Fatalf("not within five minutes: %s; the plan is %+v", what, w.plan())
		}
		<-time.After(50 * time.Millisecond)
	}
}

// settled reports whether every shard is where it is wanted, and in what order.
func (w *world) settled(nodes ...string) func() bool {
	return func() bool {
		d := w.plan()
		for i := range d.Shards {
			if !d.Settled(i) || fmt.Sprint(d.HoldersOf(i)) != fmt.Sprint(nodes) {
				return false
			}
		}
		return len(d.Shards) > 0
	}
}

// whole checks that a node's files are what the plan says.
func (w *world) whole(id string) {
	w.t.Helper()
	for i, s := range w.plan().Shards {
		sum, _, _, err := hashFile(context.Background(), w.file(id, i), nil)
		if err != nil || sum != s.SHA256 {
			w.t.Errorf("shard %d on %s: %v", i, id, err)
		}
	}
}

// sent is how many bytes nodes have served.
func (w *world) sent(ids ...string) (n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		n += w.served[id]
	}
	return n
}

// keeper is a node's, which runs.
func (w *world) keeper(id string) *Keeper {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keepers[id]
}

// files lists what is in a node's folder of the dataset.
func (w *world) files(id string) []string {
	entries, err := os.ReadDir(filepath.Join(w.folder(id), dataset))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
