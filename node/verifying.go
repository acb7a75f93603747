package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shards"
)

// copiesOf is which shards each node is to read through.
func copiesOf(d plan.Dataset) map[string][]int {
	copies := map[string][]int{}
	for i := range d.Shards {
		for _, id := range d.HoldersOf(i) {
			copies[id] = append(copies[id], i)
		}
	}
	return copies
}

// findings are what a verification has found so far.
type findings struct {
	mu      sync.Mutex
	whole   map[int]bool     // shards of which a copy is
	damaged map[int][]string // names of nodes
	silent  map[string]error // nodes that could not be asked, by name
	done    uint64
}

// VerifyDataset has every node that holds copies read them through, two at a time.
// A damaged copy is dropped where it is, and the plan has it replaced.
func (b backend) VerifyDataset(ctx context.Context, name string, tell func(api.DatasetEvent)) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	s := m.plan.State()
	d, ok := s.DatasetByName(name)
	if !ok {
		return api.NotFound("%s", noDataset(name))
	}
	if d.Stage == plan.Importing {
		return api.Conflict("dataset %s is still being imported by node %s: verify it afterwards", name, nameOf(s, d.Importer))
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
					m.verifyAt(ctx, s, d, node, list[n], f, advance)
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

// verifyAt has one node verify one shard.
func (m *member) verifyAt(ctx context.Context, s *plan.State, d plan.Dataset, node string, shard int, f *findings, advance func()) {
	name := nameOf(s, node)
	f.mu.Lock()
	_, silent := f.silent[name]
	f.mu.Unlock()
	var found shards.Verdict
	var err error
	alive, _ := m.health(node)
	switch {
	case silent:
	case !alive && node != m.id.ID():
		err = errNotAnswering // as gossip says: a call would wait for its deadline
	default:
		found, err = m.verdictOf(ctx, node, verifyOrder{ID: d.ID, Shard: shard})
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

// verdictOf asks until the file is read.
func (m *member) verdictOf(ctx context.Context, node string, q verifyOrder) (shards.Verdict, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return "", fmt.Errorf("verify a shard: %w", err)
	}
	for ctx.Err() == nil {
		var found shards.Verdict
		if node == m.id.ID() {
			found, err = m.verifyHere(ctx, q)
		} else {
			var b []byte
			if b, err = m.mesh.Call(ctx, node, callVerify, body); err == nil {
				err = json.Unmarshal(b, &found)
			}
		}
		if err != nil {
			return "", err
		}
		if found != shards.Pending {
			return found, nil
		}
	}
	return "", context.Cause(ctx)
}

// verdict is nil if every shard has a whole copy and no copy is damaged, else a
// sentence for each shard of which that is not true.
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
		list = append(list[:most], fmt.Sprintf("and so on for %d shards more", more))
	}
	if len(list) == 0 {
		return nil
	}
	return api.Conflict("dataset %s: %s", d.Name, strings.Join(list, "; "))
}
