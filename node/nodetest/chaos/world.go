package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

const (
	founders = 4 // nodes before the first fault
	most     = 6 // nodes that a history has at most
	epochs   = 30
	slowly   = 15 * time.Millisecond  // each way, so that the job lasts as long as the faults
	patience = 20 * time.Second       // for what is asked of a mesh in trouble
	dragged  = 300 * time.Millisecond // at most, each write to a slow disk
	turned   = 4 * time.Hour          // at most, a clock that is set wrong
)

// A world is the mesh of one history, and what is known to be promised.
type world struct {
	c      *nodetest.Cluster
	h      history
	ledger *ledger
	job    string                      // the long one
	hurt   *nodetest.Instance          // whose files may be damaged
	going  map[*nodetest.Instance]bool // asked to leave, or revoked
	source string                      // the folder of a graph to import
	turned bool                        // a clock was set wrong
	asked  sync.WaitGroup
	*promises
	findings *findings // of the node whose files may be damaged
}

// begin makes a mesh with a dataset and a job that trains, before any fault.
func begin(c *nodetest.Cluster, h history) *world {
	w := &world{
		c: c, h: h, ledger: newLedger(), going: map[*nodetest.Instance]bool{}, source: files(c.T), promises: noPromises(),
	}
	for range founders {
		w.prepare(c.Add())
	}
	first := c.Nodes[0]
	first.Options.Bootstrap = true
	first.Start()
	first.WaitReady()
	token := first.Token()
	for _, i := range c.Nodes[1:] {
		i.Options.Join, i.Options.Token = []string{first.Addr()}, token
		i.Start()
	}
	for _, i := range c.Nodes {
		i.WaitReady()
	}
	c.WaitVoters(3)
	g := small("g")
	if h.Strategy == "single" { // which needs a node that has all shards
		all := founders - 1
		g.Replicas = &all
	}
	w.generate(first, g)
	c.Wait("all shards have copies", time.Minute, func() bool { return copies(first.Dataset("g")) >= 2 })
	for _, i := range c.Nodes {
		c.Network.Slow(i.IP(), slowly)
	}
	job, err := first.API().StartJob(context.Background(), long(h.Strategy))
	if err != nil {
		c.T.Fatalf("start the job: %v", err)
	}
	w.job = job
	c.Wait("the job has begun", 2*time.Minute, func() bool { return len(w.jobOn(first, job).History) > 0 })
	return w
}

// prepare gives a node its disk.
func (w *world) prepare(i *nodetest.Instance) {
	if w.h.Disk {
		i.KeepOnDisk()
	}
	strained := i.Options.Watch
	i.Options.Watch = func(s consensus.Stores) consensus.Stores { return w.ledger.watch(i.Name, strained(s)) }
}

// files writes the graph that is imported, a ring with features and labels.
func files(t testing.TB) string {
	dir := t.TempDir()
	var edges, features, labels strings.Builder
	for v := range 60 {
		fmt.Fprintf(&edges, "%d,%d\n", v, (v+1)%60)
		fmt.Fprintf(&features, "%d,%d.5,1\n", v, v)
		fmt.Fprintf(&labels, "%d,%d\n", v, v%3)
	}
	for name, text := range map[string]*strings.Builder{"edges.csv": &edges, "features.csv": &features, "labels.csv": &labels} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// small is a dataset that takes no time. Each shard has two copies beside its owner's.
func small(name string) api.GenerateRequest {
	copies := 2
	return api.GenerateRequest{
		Name: name, Kind: "sbm", Vertices: 400, Edges: 1600, Features: 4, Classes: 2,
		DatasetOptions: api.DatasetOptions{Shards: 8, Partitioner: "random", Replicas: &copies, Seed: 1},
	}
}

// long is the job whose weights are compared.
func long(strategy string) api.TrainRequest {
	e, hidden, batch := epochs, 4, 100
	r := api.TrainRequest{Dataset: "g", Strategy: strategy, Deterministic: true, Epochs: &e, Hidden: &hidden}
	switch strategy {
	case "graph": // whose bits depend on its ways
		r.Set = []api.Setting{{Key: "pipe.ways", Value: "3"}}
	case "pipe":
	case "grappa": // and those of this on its groups
		r.Set = []api.Setting{{Key: "grappa.groups", Value: "3"}}
		fallthrough
	default:
		r.Batch, r.Fanout = &batch, []int{3, 3}
	}
	return r
}

// copies returns how many copies the worst shard of a dataset has, the owner's included.
func copies(d api.Dataset) int {
	least := 0
	for i, s := range d.Shards {
		n := len(s.Replicas)
		if s.Owner != "" {
			n++
		}
		if i == 0 || n < least {
			least = n
		}
	}
	return least
}

func (w *world) jobOn(i *nodetest.Instance, id string) api.Job {
	if !i.Running() {
		return api.Job{}
	}
	j, err := i.API().Job(context.Background(), id)
	if err != nil {
		return api.Job{}
	}
	return j
}

// happen lets all faults of the history happen.
func (w *world) happen() {
	for _, f := range w.h.Faults {
		w.rest(f.After)
		w.bury()
		w.befall(f)
	}
}

// bury fails the test if a node has ended that was not asked to.
func (w *world) bury() {
	for _, i := range w.c.Nodes {
		if _, err := i.Ended(); err != nil {
			w.c.T.Fatal(err)
		}
	}
}

// befall lets one fault happen, or nothing if it makes no sense now.
func (w *world) befall(f fault) {
	i := w.c.Nodes[f.Node%uint64(len(w.c.Nodes))]
	other := w.c.Nodes[f.Other%uint64(len(w.c.Nodes))]
	switch f.Kind {
	case kill:
		if i.Running() {
			w.leaves(i)
			i.Crash()
		}
	case stop:
		if i.Running() {
			w.leaves(i)
			if err := i.Stop(); err != nil && !w.going[i] && !may(i, err) {
				w.c.T.Fatalf("%s was stopped: %v", i.Name, err)
			}
		}
	case restart:
		w.restart(i)
	case cut:
		if i != other {
			w.c.Network.Cut(i.IP(), other.IP())
		}
	case isolate, pause: // nothing here can stop the threads of one node
		w.c.Isolate(i)
	case split:
		at := 1 + int(f.Other)%(len(w.c.Nodes)-1)
		w.c.Network.Partition(ips(w.c.Nodes[:at]), ips(w.c.Nodes[at:]))
	case heal:
		w.c.Network.Heal()
		w.c.Network.Lose(0, 0)
		i.Relieve()
	case lose:
		w.c.Network.Lose(f.Much*0.2, time.Duration(f.Much*float64(10*time.Millisecond)))
	case slow:
		w.c.Network.Slow(i.IP(), slowly+time.Duration(f.Much*float64(100*time.Millisecond)))
	case narrow:
		const least = 1280 // of every path of IPv6
		w.c.Network.Shrink(least+int(f.Much*220), i.IP())
	case fill:
		i.Fill(true)
	case drag:
		i.Drag(time.Duration(f.Much * float64(dragged)))
	case turn:
		i.Skew(time.Duration((2*f.Much - 1) * float64(turned)))
		w.turned = true
	case flip, truncate, disappear:
		w.damage(i, f)
	default:
		w.ask(i, f)
	}
}

// restart starts a node that does not run, unless it has gone.
func (w *world) restart(i *nodetest.Instance) {
	if !i.Running() && !w.going[i] {
		i.Restart()
	}
}

// damage changes a file of a node, which is killed if it runs. All damage of a history is
// one node's: others have whole copies.
func (w *world) damage(i *nodetest.Instance, f fault) {
	if w.hurt != nil {
		i = w.hurt
	}
	if w.going[i] {
		return
	}
	if i.Running() {
		w.leaves(i)
		i.Crash()
	}
	path, err := damage(i.Options.DataDir, f)
	switch {
	case err != nil:
		w.c.T.Fatalf("damage a file of %s: %v", i.Name, err)
	case path != "":
		if w.hurt == nil {
			w.hurt = i
			w.listen(i)
		}
		if irreplaceable(path) {
			before := i.MayEnd
			i.MayEnd = func(err error) bool {
				return strings.Contains(err.Error(), "is damaged") || before != nil && before(err)
			}
		}
		w.c.T.Logf("%s: %s of %s", f.Kind, path, i.Name)
	}
}

// irreplaceable reports whether nobody but its owner can make a node's file again. The node says
// so, and is lost to the mesh.
func irreplaceable(path string) bool {
	name := filepath.Base(path)
	return filepath.Base(filepath.Dir(path)) == "identity" || name == "identity.pending" || name == "format.json"
}

// may reports whether a node may have ended with this error.
func may(i *nodetest.Instance, err error) bool { return i.MayEnd != nil && i.MayEnd(err) }

// damageable lists the files below dir that may be damaged.
func damageable(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "lock" && d.Name() != "ballast" {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// damage changes one file below dir, and returns its path, or "" if there is none.
func damage(dir string, f fault) (string, error) {
	files, err := damageable(dir)
	if err != nil || len(files) == 0 {
		return "", err
	}
	path := files[f.Other%uint64(len(files))]
	if f.Kind == disappear {
		return path, os.Remove(path)
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return "", err
	}
	at := int(f.Much * float64(len(b)))
	if f.Kind == truncate {
		return path, os.Truncate(path, int64(at))
	}
	b[at] ^= 1 << (f.Node % 8)
	return path, os.WriteFile(path, b, 0o600)
}

func ips(list []*nodetest.Instance) []string {
	var all []string
	for _, i := range list {
		all = append(all, i.IP())
	}
	return all
}

// ask asks a node for something, and does not wait for the answer. What is acknowledged
// must hold from then on.
func (w *world) ask(via *nodetest.Instance, f fault) {
	if !via.Running() {
		return
	}
	target := w.c.Nodes[f.Other%uint64(len(w.c.Nodes))]
	switch f.Kind {
	case join:
		w.join(via, f)
	case leave, revoke:
		w.part(via, target, f.Kind == revoke)
	default:
		if do := w.question(f.Kind, w.source); do != nil {
			w.later(do, via)
		} else if f.Kind != cancel {
			w.c.T.Fatalf("nobody knows what %q is", f.Kind)
		}
	}
}

// later runs a question to the end, beside the faults that follow.
func (w *world) later(do func(ctx context.Context, b asked), via *nodetest.Instance) {
	b := via.API()
	w.asked.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		do(ctx, b)
	})
}

// generate makes a dataset while all is well.
func (w *world) generate(on *nodetest.Instance, r api.GenerateRequest) {
	if _, err := on.API().GenerateDataset(context.Background(), r, func(api.DatasetEvent) {}); err != nil {
		w.c.T.Fatalf("generate %s: %v", r.Name, err)
	}
	w.promise(w.datasets, r.Name)
}

// join starts one more machine, which asks all nodes that run, or two at once with a token that
// admits one.
func (w *world) join(via *nodetest.Instance, f fault) {
	room := most - len(w.c.Nodes)
	if room <= 0 {
		return
	}
	uses, machines := uint64(0), 1
	if room > 1 && f.Much < 0.5 {
		uses, machines = 1, 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t, err := via.API().CreateToken(ctx, 0, uses)
	if err != nil {
		return
	}
	w.promiseToken(t.ID)
	var addrs []string
	for _, i := range w.c.Nodes {
		if i.Running() {
			addrs = append(addrs, i.Addr())
		}
	}
	for range machines {
		i := w.c.Add()
		w.prepare(i)
		w.c.Network.Slow(i.IP(), slowly)
		i.Options.Join, i.Options.Token = addrs, t.Token
		i.MayEnd = func(err error) bool {
			return mesh.RefusalOf(err) == mesh.RefusedToken && (uses == 1 || w.doubted(t.ID)) ||
				mesh.RefusalOf(err) == mesh.RefusedClock && w.turned ||
				errors.Is(err, identity.ErrForeignMesh) && w.doubted(t.ID)
		}
		i.Start()
	}
}

// part has a node leave, or be revoked, as long as four remain. Nodes whose files were
// damaged stay, so that their repair is seen.
func (w *world) part(via, target *nodetest.Instance, revoked bool) {
	rest := 0
	for _, i := range w.c.Nodes {
		if ended, _ := i.Ended(); !ended && !w.going[i] {
			rest++
		}
	}
	if rest <= founders || w.going[target] || target == w.hurt || !target.Running() {
		return
	}
	w.going[target] = true
	before := target.MayEnd
	target.MayEnd = func(err error) bool { return errors.Is(err, node.ErrRemoved) || before != nil && before(err) }
	if !revoked {
		w.later(func(ctx context.Context, b asked) { _ = b.Leave(ctx) }, target)
		return
	}
	w.later(func(ctx context.Context, b asked) {
		w.endTokens(func() error { // those that the node may know end with it
			_, err := b.ForceLeave(ctx, api.ForceLeaveRequest{Name: target.Name, Revoke: true})
			return err
		})
	}, via)
}

// String names the nodes, for who reads a failure.
func (w *world) String() string {
	return fmt.Sprintf("%s\n%s", w.h, w.c.Describe())
}
