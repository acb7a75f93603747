package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/shards"
)

// keeping is what the keeper of shards needs of the rest of the node.
type keeping struct{ *member }

func (k keeping) Fetch(ctx context.Context, peer string, request, dst []byte) error {
	// Bound to no generation: a file is the same file whoever works on it.
	_, err := k.mesh.Fetch(ctx, peer, mesh.Question{Header: mesh.Header{Kind: mesh.Shard, Count: 1}, Body: request, Into: dst, Limit: len(dst), Exact: true})
	return err
}

// doubtTimeout bounds the wait for another node's look at its own copy.
const doubtTimeout = 30 * time.Second

func (k keeping) Doubt(ctx context.Context, peer, dataset string, shard int) {
	ctx, cancel := context.WithTimeout(ctx, doubtTimeout)
	defer cancel()
	if _, err := k.verdictOf(ctx, peer, verifyOrder{ID: dataset, Shard: shard}); err != nil {
		k.log.Debug("have a copy checked that came damaged", "peer", peer, "err", err)
	}
}

func (k keeping) Serving(id string) bool {
	alive, _ := k.health(id)
	return alive
}

func (k keeping) Hold(ctx context.Context, dataset string, list []int) (index uint64, err error) {
	err = k.atLeader(ctx, opHoldShards, shardsOrder{ID: dataset, Shards: list}, &index)
	return index, err
}

func (k keeping) Lose(ctx context.Context, dataset string, list []int) (index uint64, err error) {
	err = k.atLeader(ctx, opLoseShards, shardsOrder{ID: dataset, Shards: list}, &index)
	return index, err
}

func (k keeping) Index(ctx context.Context) (index uint64, err error) {
	err = k.atLeader(ctx, opPlanIndex, none{}, &index)
	return index, err
}

// serveShards registers what other nodes ask of the keeper, beside pieces of files.
func (m *member) serveShards() {
	m.mesh.Handle(callVerify, func(ctx context.Context, peer string, b []byte) ([]byte, error) {
		if _, in := m.plan.State().Members[peer]; !in {
			return nil, mesh.Refuse(reasonInvalid, "node %s is no member", peer)
		}
		var q verifyOrder
		if err := json.Unmarshal(b, &q); err != nil {
			return nil, fmt.Errorf("read which shard to verify: %w", err)
		}
		found, err := m.verifyHere(ctx, q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(found)
	})
}

// verifyOrder asks a node to read one of its shards through.
type verifyOrder struct {
	ID    string `json:"id"`
	Shard int    `json:"shard"`
}

// verifyPatience is how long a call waits for a file to be read before it answers
// that this goes on: well within a call's time.
const verifyPatience = 4 * time.Second

func (m *member) verifyHere(ctx context.Context, q verifyOrder) (shards.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyPatience)
	defer cancel()
	return m.keeper.Verify(ctx, q.ID, q.Shard)
}

// tidy removes from the plan what this node has begun to import and is not
// importing any more: before a restart, say, or because there was no leader to
// tell.
func (m *member) tidy(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		for id, d := range m.plan.State().Datasets {
			op := opGiveUpDataset
			if m.forsaken.has(id) {
				op = opAbortDataset
			} else if d.Stage != plan.Importing || d.Importer != m.id.ID() || m.keeper.Importing(id) {
				continue
			}
			if m.plan.Leader() == "" {
				break
			}
			if err := m.atLeader(ctx, op, id, nil); err != nil && ctx.Err() == nil {
				m.log.Debug("give up an import", "dataset", d.Name, "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// forsaken is ids of datasets. It only grows, by those of imports that ended while
// there was no leader.
type forsaken struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (f *forsaken) add(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil {
		f.ids = map[string]bool{}
	}
	f.ids[id] = true
}

func (f *forsaken) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids[id]
}
