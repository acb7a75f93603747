package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// learnt is where the learnt rows of a run's vertices are, which all nodes decide alike.
type learnt struct {
	apart bool        // a row is with its shard's owner and one more node; else all nodes have all
	far   gather.Rows // those of other nodes that the step under way reads
	// mark is where the run stood before the last update, with rows: the weights and moments. If a
	// node is lost, others may not have made that update.
	mark Mark
	rows []tensor.Matrix
	// whole is whether this node goes on from a checkpoint of its own that has all rows.
	whole bool
}

// roomForRows is the message in which nodes say whether they have room for all rows. It comes before
// those of needs.go.
var roomForRows = exchange.Tag{Lane: exchange.LaneMessages, Index: 3}

// decide decides where rows are: where the recipe leaves it open, each node has all if all nodes have
// room for them.
func (r *learnt) decide(ctx context.Context, t *Trainer) error {
	if t.Session.Alone() || !t.Recipe.MayPart() {
		return nil
	}
	if t.Recipe.EmbeddingsAt == recipe.AtOwners {
		r.apart = true
		return nil
	}
	has := budget.NewNode(0, t.Options.Memory, t.Options.Measured()).Has
	fits := byte(0)
	if embedding.Fits(t.WeightBytes(), has-min(has, budget.Program)) {
		fits = 1
	}
	all, err := t.Session.GatherVersioned(ctx, roomForRows, []byte{fits})
	if err != nil {
		return fmt.Errorf("hear which nodes have room for the learnt rows of all vertices: %w", err)
	}
	for node, m := range all {
		if len(m) != 1 {
			return fmt.Errorf("node %s says in %d bytes whether it has room for the learnt rows of all vertices", t.Session.Name(node), len(m))
		}
		r.apart = r.apart || m[0] == 0
	}
	return nil
}

// bytes returns the memory of a model's table on this node.
func (r *learnt) bytes(l *Learner) uint64 {
	t, rows := l.Run, l.Run.Data.About.Vertices
	if r.apart {
		rows = embedding.Held(&t.Session.Layout, t.Session.Work.Self)
	}
	return embedding.Bytes(rows, t.Data.About.Features-l.Recipe.Embeddings, l.Recipe.Embeddings, l.Recipe.Optimizer)
}

// notes returns which nodes have which rows, the same on all nodes.
func (r *learnt) notes(t *Trainer) []string {
	of := &t.Recipe
	if of.Embeddings == 0 {
		return nil
	}
	bytes := func(rows uint64) string {
		return budget.Format(embedding.Bytes(rows, t.Data.About.Features-of.Embeddings, of.Embeddings, of.Optimizer))
	}
	all := t.Data.About.Vertices
	if !r.apart {
		return []string{fmt.Sprintf("each node has the learnt rows of all vertices, with what the optimizer and the best epoch keep of them: %s", bytes(all))}
	}
	most := uint64(0)
	for node := range t.Session.Work.Nodes {
		most = max(most, embedding.Held(&t.Session.Layout, node))
	}
	return []string{fmt.Sprintf("the learnt rows of a shard's vertices are on its owner and on the next node, with what the optimizer and the best epoch keep of them: a node has up to %s, of %s in all", bytes(most), bytes(all))}
}

// bring brings the rows of other nodes that a step reads, as they are after the step before, and lets
// others read those that are here. It returns nil where all rows are here.
func (r *learnt) bring(ctx context.Context, t *Trainer, s *slot.Slot) (*gather.Rows, error) {
	if !r.apart {
		return nil, nil
	}
	l := t.Lead()
	l.Rows.Serve(l.At.Epoch, s.Step)
	if err := t.Session.Source.Gather(ctx, &r.far, s.Sets, uint32(l.At.Epoch), uint32(s.Step), t.Dealt(s.Step).Asking, &s.Tally); err != nil {
		return nil, err
	}
	s.Gathered, s.Remote = r.far.Local+r.far.Remote, r.far.Remote
	return &r.far, nil
}

// hash returns the hash of the weights and all rows, which no node has all of. It leaves a copy of the
// weights in Host.
func (r *learnt) hash(ctx context.Context, l *Learner) (string, error) {
	l.Run.Device.Read32(l.Host, l.Weights)
	at := exchange.Tag{Epoch: uint32(l.At.Epoch), Step: uint32(l.Run.Batches.Steps)}
	return l.Rows.Hash(ctx, l.Run.Session.Exchange, at, l.Host, &l.Run.Session.Start)
}

// remember marks where the run stands before an update.
func (r *learnt) remember(l *Learner) {
	if !r.apart {
		return
	}
	if r.rows == nil {
		r.rows = []tensor.Matrix{l.Weights}
		for _, m := range l.Optimizer.Moments() {
			r.rows = append(r.rows, m.Row)
		}
	}
	r.mark.Set(l, r.rows)
}

// saveBefore leaves a checkpoint of before the last update, too, if that was made in the epoch under
// way: with its end all nodes have made it. The run ends.
func (r *learnt) saveBefore(t *Trainer) error {
	l := t.Learners[0]
	last, good := t.Checkpoints.Last()
	if !r.apart || !t.Checkpoints.Keeps() || !good || last != t.Place() || l.At.Epoch != r.mark.course.At.Epoch || l.Optimizer.Steps() != r.mark.updates+1 {
		return nil
	}
	if !l.Rows.Back() || !r.mark.Return(l, r.rows) {
		return nil
	}
	metadata, err := t.metadata()
	if err != nil {
		return err
	}
	return t.Checkpoints.SaveBefore(t.sections(), metadata, func() error { return t.Fault(last.Epoch, last.Step) })
}

// complete has the first nodes of a run that is done write checkpoints with all rows, so that each has
// the model. The others offer what they have until all have written.
func (r *learnt) complete(ctx context.Context, t *Trainer) error {
	if !r.apart {
		return nil
	}
	l, tag := t.Learners[0], exchange.Tag{Epoch: uint32(t.Place().Epoch) + 1}
	l.Rows.Offer(t.Session.Exchange, tag)
	if t.Session.Work.Self >= Keepers {
		return errPart
	}
	if r.whole && r.rows == nil {
		return nil // it was done before
	}
	l.Rows.Whole(ctx, t.Session.Exchange, tag, &t.Session.Start)
	t.Checkpoints.Forget() // the last has some rows
	return t.Save()
}

// errPart is why a node's last checkpoint is not that of a whole run.
var errPart = errors.New("it has the learnt rows of some vertices")

// giveUp removes the checkpoint of a node that has some rows, once others have all.
func (r *learnt) giveUp(t *Trainer) error {
	if !r.apart || t.Session.Work.Self < Keepers || !t.Checkpoints.Keeps() {
		return nil
	}
	return t.Checkpoints.Remove()
}
