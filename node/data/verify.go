package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/shards"
)

// callVerify is the call that asks a node to verify one of its shards.
const callVerify = "verify-shard"

// question is the body of callVerify.
type question struct {
	ID    string `json:"id"`
	Shard int    `json:"shard"`
}

// verifier makes the nodes that hold copies of shards read and check them.
type verifier struct {
	mesh    Mesh
	plan    Plan
	answers func(id string) bool
	keeper  *shards.Keeper
}

// copiesOf lists the shards that each node holds.
func copiesOf(d plan.Dataset) map[string][]int {
	copies := map[string][]int{}
	for i := range d.Shards {
		for _, id := range d.HoldersOf(i) {
			copies[id] = append(copies[id], i)
		}
	}
	return copies
}

// findings are the results of a verification so far.
type findings struct {
	mu      sync.Mutex
	whole   map[int]bool     // shards that have a whole copy
	damaged map[int][]string // names of nodes
	silent  map[string]error // nodes that could not be asked, by name
	done    uint64
}

// verify makes every node that holds copies read them, two at a time. A node drops a
// damaged copy, and the plan has it replaced.
func (v *verifier) verify(ctx context.Context, name string, tell func(api.DatasetEvent)) error {
	s := v.plan.State()
	d, ok := s.DatasetByName(name)
	if !ok {
		return api.NotFound("%s", api.NoDataset(name))
	}
	if d.Stage == plan.Importing {
		return api.Conflict("dataset %s is still being imported by node %s: verify it afterwards", name, s.NameOf(d.Importer))
	}
	copies, total := copiesOf(d), uint64(0)
	for _, list := range copies {
		total += uint64(len(list))
	}
	f := &findings{whole: map[int]bool{}, damaged: map[int][]string{}, silent: map[string]error{}}
	advance := func() {
		f.done++
		tell(api.DatasetEvent{Progress: &api.Progress{Stage: "verifying copies", Done: f.done, Total: total, Unit: "copies"}})
	}
	var wg sync.WaitGroup
	for node, list := range copies {
		for half := range verifiesAtOnce {
			wg.Go(func() {
				for n := half; n < len(list); n += verifiesAtOnce {
					v.verifyAt(ctx, s, d, node, list[n], f, advance)
				}
			})
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return api.Unavailable("the verification was interrupted: %v", context.Cause(ctx))
	}
	for _, node := range slices.Sorted(maps.Keys(f.silent)) {
		tell(api.DatasetEvent{Note: fmt.Sprintf("node %s could not be asked, so its copies were not verified: %v", node, f.silent[node])})
	}
	return f.verdict(d)
}

var errNotAnswering = errors.New("it does not answer")

// verifiesAtOnce is how many shards each node reads at once.
const verifiesAtOnce = 2

// verifyAt makes one node verify one shard.
func (v *verifier) verifyAt(ctx context.Context, s *plan.State, d plan.Dataset, node string, shard int, f *findings, advance func()) {
	name := s.NameOf(node)
	f.mu.Lock()
	_, silent := f.silent[name]
	f.mu.Unlock()
	var found shards.Verdict
	var err error
	alive := v.answers(node)
	switch {
	case silent:
	case !alive && node != v.mesh.ID():
		err = errNotAnswering // gossip knows: a call would wait for its deadline
	default:
		found, err = v.verdictOf(ctx, node, question{ID: d.ID, Shard: shard})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.silent[name] = err
	case found == shards.Whole:
		f.whole[shard] = true
	case found == shards.Damaged:
		f.damaged[shard] = append(f.damaged[shard], name)
	}
	advance()
}

// verdictOf asks a node until it has read the file.
func (v *verifier) verdictOf(ctx context.Context, node string, q question) (shards.Verdict, error) {
	if node == v.mesh.ID() {
		return untilRead(ctx, func() (shards.Verdict, error) { return v.here(ctx, q) })
	}
	return verdictAt(ctx, v.mesh, node, q)
}

// verdictAt asks another node until it has read the file.
func verdictAt(ctx context.Context, m Mesh, node string, q question) (shards.Verdict, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return "", fmt.Errorf("verify a shard: %w", err)
	}
	return untilRead(ctx, func() (found shards.Verdict, err error) {
		b, err := m.Call(ctx, node, callVerify, body)
		if err == nil {
			err = json.Unmarshal(b, &found)
		}
		return found, err
	})
}

func untilRead(ctx context.Context, ask func() (shards.Verdict, error)) (shards.Verdict, error) {
	for ctx.Err() == nil {
		found, err := ask()
		if err != nil {
			return "", err
		}
		if found != shards.Pending {
			return found, nil
		}
	}
	return "", context.Cause(ctx)
}

// verifyPatience is how long a call waits for a file to be read before it answers
// that it is pending: well within the timeout of calls.
const verifyPatience = 4 * time.Second

func (v *verifier) here(ctx context.Context, q question) (shards.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyPatience)
	defer cancel()
	return v.keeper.Verify(ctx, q.ID, q.Shard)
}

// serve answers another member that asks for a verification.
func (v *verifier) serve(ctx context.Context, peer string, b []byte) ([]byte, error) {
	if _, in := v.plan.State().Members[peer]; !in {
		return nil, mesh.Refuse(lead.Invalid, "node %s is no member", peer)
	}
	var q question
	if err := json.Unmarshal(b, &q); err != nil {
		return nil, fmt.Errorf("read which shard to verify: %w", err)
	}
	found, err := v.here(ctx, q)
	if err != nil {
		return nil, err
	}
	return json.Marshal(found)
}

// verdict returns an error unless every shard has a whole copy and no copy is damaged: a
// sentence for each other shard.
func (f *findings) verdict(d plan.Dataset) error {
	var list []string
	for i := range d.Shards {
		nodes := f.damaged[i]
		slices.Sort(nodes)
		where := strings.Join(nodes, ", ")
		switch {
		case len(nodes) > 0 && f.whole[i]:
			list = append(list, fmt.Sprintf("shard %d is damaged on %s and is being replaced from a whole copy", i, where))
		case len(nodes) > 0 && len(f.silent) == 0:
			list = append(list, fmt.Sprintf("shard %d is damaged on %s and there is no whole copy: remove the dataset and import it again", i, where))
		case len(nodes) > 0:
			list = append(list, fmt.Sprintf("shard %d is damaged on %s and no node that answers has a whole copy: start the others again, or remove the dataset and import it again", i, where))
		case d.Lost(i):
			list = append(list, fmt.Sprintf("shard %d is gone, as no copy was left whole: remove the dataset and import it again", i))
		case !f.whole[i]:
			list = append(list, fmt.Sprintf("no copy of shard %d could be verified: start the nodes that hold it again", i))
		}
	}
	const most = 8
	if more := len(list) - most; more > 0 {
		list = append(list[:most], "and so on for "+shardCount(more)+" more")
	}
	if len(list) == 0 {
		return nil
	}
	return api.Conflict("dataset %s: %s", d.Name, strings.Join(list, "; "))
}
