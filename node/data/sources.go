package data

import (
	"context"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/remote"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
)

// SourceFlag marks a question about a source among all requests of the kind mesh.Shard.
const SourceFlag = 4

// parts finds the nodes of sources that may be NODE:/PATH.
func (d *Datasets) parts(sources []string) ([]read.Part, error) {
	state := d.plan.State()
	parts := make([]read.Part, len(sources))
	for i, s := range sources {
		node, path := api.SplitSource(s)
		parts[i] = read.Part{Label: s, Path: path}
		if node == "" {
			continue
		}
		m, in := state.MemberByName(node)
		switch {
		case !in:
			return nil, fmt.Errorf("%s: there is no member %s: choose one that `hopmesh members` lists, or write ./%s for a file of that name", s, node, s)
		case m.ID == d.self:
			continue
		case !d.answers(m.ID):
			return nil, fmt.Errorf("%s: node %s does not answer: start it, or wait until it is reached", s, node)
		}
		parts[i].Node, parts[i].Ask = m.ID, d.ask(m.ID, node)
	}
	return parts, nil
}

// readPatience bounds how long a node may take for an answer, for instance to unpack a
// large page.
const readPatience = 30 * time.Second

// ask puts questions to the reader of another node.
func (d *Datasets) ask(id, name string) remote.Ask {
	return func(ctx context.Context, question []byte) ([]byte, error) {
		// Bound to no generation: an import is no job.
		b, err := reach(ctx, d.mesh, id, mesh.Question{
			Header: mesh.Header{Kind: mesh.Shard, Flags: SourceFlag, Count: 1},
			Body:   question, Limit: remote.MaxAnswer + 1, Patience: readPatience,
		})
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("node %s, which reads it, can't be reached (%w): import again when it is back", name, err)
		}
		return b, err
	}
}

// ServeSource answers a question about a source on this node.
func (d *Datasets) ServeSource(ctx context.Context, r *mesh.Request) error {
	if r.Length > remote.MaxQuestion {
		return fmt.Errorf("%w: a question of %d bytes about a source", mesh.ErrProtocol, r.Length)
	}
	body, err := r.TakeBody(nil, int(r.Length))
	if err != nil {
		return err
	}
	return r.Reply(r.Count, d.reader.Answer(ctx, r.Peer, body))
}
