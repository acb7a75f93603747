// Package tables places the learnt rows of a run's vertices: on all of its nodes, or those of each shard
// on its owner and on one node more. It brings rows to the nodes that read them in a step, and together
// from the checkpoints of several nodes when a run goes on.
//
// It knows no model, and neither steps nor epochs: package embedding keeps and updates rows, and package
// train says when.
package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/slot"
)

// A Placement is where the learnt rows of a run's vertices are, which all nodes decide alike.
type Placement struct {
	Apart bool // a row is with its shard's owner and one more node; else all nodes have all

	far  gather.Rows // those of other nodes that the step under way reads
	done bool        // this node goes on from a checkpoint of its own that has all rows
	said bool        // nodes have said whether they have room for all rows
}

// The messages in which nodes say whether they have room for all rows, and what memory their weights need.
// Nodes whose programs are of different versions, of which one knows no first message, must see that in the
// one that both wait for: so what comes first has the same tag in either case.
var (
	earlier = exchange.Tag{Lane: exchange.LaneMessages, Index: 1}
	later   = exchange.Tag{Lane: exchange.LaneMessages, Index: 3}
)

// Room returns the tag of the message in which nodes say what memory their weights need, once they have
// decided where rows are.
func (p *Placement) Room() exchange.Tag {
	if p.said {
		return later
	}
	return earlier
}

// Decide decides where rows are: where the recipe leaves it open, each node has all if all nodes have
// room for them, or must have them, since it may ask for none in a step. weights are the bytes of a
// model with all rows, has is the memory of this node.
func (p *Placement) Decide(ctx context.Context, s *session.Session, r *recipe.Recipe, must bool, weights func() uint64, has uint64) error {
	if s.Alone() || must || !r.MayPart() {
		return nil
	}
	if r.EmbeddingsAt == recipe.AtOwners {
		p.Apart = true
		return nil
	}
	fits := byte(0)
	if embedding.Fits(weights(), has-min(has, budget.Program)) {
		fits = 1
	}
	p.said = true
	all, err := s.GatherVersioned(ctx, earlier, []byte{fits})
	if err != nil {
		return fmt.Errorf("hear which nodes have room for the learnt rows of all vertices: %w", err)
	}
	for node, m := range all {
		if len(m) != 1 {
			return fmt.Errorf("node %s says in %d bytes whether it has room for the learnt rows of all vertices", s.Name(node), len(m))
		}
		p.Apart = p.Apart || m[0] == 0
	}
	return nil
}

// Bytes returns the memory of a table on this node.
func (p *Placement) Bytes(s *session.Session, r *recipe.Recipe, about *dataset.About) uint64 {
	if !p.Apart {
		return bytes(r, about, about.Vertices)
	}
	return bytes(r, about, embedding.Held(&s.Layout, s.Work.Self))
}

// bytes returns the memory of so many rows.
func bytes(r *recipe.Recipe, about *dataset.About, rows uint64) uint64 {
	return embedding.Bytes(rows, about.Features-r.Embeddings, r.Embeddings, r.Optimizer)
}

// Notes returns which nodes have which rows, the same on all of several nodes.
func (p *Placement) Notes(s *session.Session, r *recipe.Recipe, about *dataset.About) []string {
	if r.Embeddings == 0 {
		return nil
	}
	all := budget.Format(bytes(r, about, about.Vertices))
	if !p.Apart {
		return []string{fmt.Sprintf("each node has the learnt rows of all vertices, with what the optimizer and the best epoch keep of them: %s", all)}
	}
	most := uint64(0)
	for node := range s.Work.Nodes {
		most = max(most, embedding.Held(&s.Layout, node))
	}
	return []string{fmt.Sprintf("the learnt rows of a shard's vertices are on its owner and on the next node, with what the optimizer and the best epoch keep of them: a node has up to %s, of %s in all", budget.Format(bytes(r, about, most)), all)}
}

// Bring brings the rows of other nodes that a step reads, as they are after the step before, and lets
// others read those that are here. It returns nil where all rows are on each node.
func (p *Placement) Bring(ctx context.Context, x *session.Session, t *embedding.Table, s *slot.Slot, epoch int, o gather.Options) (*gather.Rows, error) {
	if !p.Apart {
		return nil, nil
	}
	t.Serve(epoch, s.Step)
	if err := x.Source.Gather(ctx, &p.far, s.Sets, uint32(epoch), uint32(s.Step), o, &s.Tally); err != nil {
		return nil, err
	}
	s.Gathered, s.Remote = p.far.Local+p.far.Remote, p.far.Remote
	return &p.far, nil
}

// Flags of the notes that nodes exchange in a step, where all write their checkpoints at once: Due says that
// the node wants them written after the step, and Unkept that it could not write the last.
const (
	Due    uint64 = 1 << 63
	Unkept uint64 = 1 << 62
	Flags         = Due | Unkept
)

// Says returns the flags of a node: checkpoints are due when it is time to, and in the last step of an epoch
// if it has none.
func (p *Placement) Says(f *checkpoint.Folder, last bool) (flags uint64) {
	if !p.Apart {
		return 0
	}
	if f.Due() || last && f.Missing() {
		flags |= Due
	}
	if f.Failed() {
		flags |= Unkept
	}
	return flags
}

// Hears notes the flags that some nodes have, and reports whether checkpoints are due. While a node can't
// write its own, the others keep the last that all have: that node and the next may be the only two that have
// the rows of a shard.
func (p *Placement) Hears(f *checkpoint.Folder, flags uint64) (due bool) {
	f.Stay(flags&Unkept != 0)
	return flags&Due != 0
}

// mayKeep is the index of the message in which nodes say after a step whether they may keep where they stand.
const mayKeep = 1 << 14

// All reports whether all nodes say that where they stand may be kept, so that all write a checkpoint or none
// does.
func (p *Placement) All(ctx context.Context, s *session.Session, at checkpoint.Place, mine bool) (bool, error) {
	say := []byte{0}
	if mine {
		say[0] = 1
	}
	tag := exchange.Tag{Epoch: uint32(at.Epoch), Step: uint32(at.Step), Lane: exchange.LaneMessages, Index: mayKeep}
	all, err := s.Exchange.Gather(ctx, tag, say, nil)
	if err != nil {
		return false, fmt.Errorf("hear whether the other nodes may keep a checkpoint: %w", err)
	}
	for _, of := range all {
		mine = mine && len(of) == 1 && of[0] == 1
	}
	return mine, nil
}

// Hash returns the hash of weights and all rows at the end of an epoch of so many steps, where no node has
// all rows.
func (p *Placement) Hash(ctx context.Context, s *session.Session, t *embedding.Table, epoch, steps int, weights []float32) (string, error) {
	return embedding.Hash(ctx, t, s.Exchange, exchange.Tag{Epoch: uint32(epoch), Step: uint32(steps)}, weights, &s.Start)
}

// ErrPart is why a node's last checkpoint is not that of a whole run.
var ErrPart = errors.New("it has the learnt rows of some vertices")

// Complete has the nodes of a run that keep its model write checkpoints with all rows when the run is
// done, and the others offer theirs until these are written, as do those that could not keep their own:
// failed is why. epoch is one that no step has. trained is whether the run has made an update.
func (p *Placement) Complete(ctx context.Context, s *session.Session, t *embedding.Table, f *checkpoint.Folder, epoch int, keeps, trained bool, failed error, save func() error) error {
	tag := exchange.Tag{Epoch: uint32(epoch)}
	embedding.Offer(t, s.Exchange, tag)
	switch {
	case failed != nil:
		return failed
	case !keeps:
		return ErrPart
	case p.done && !trained:
		return nil // it was done before
	}
	t.Whole(ctx, s.Exchange, tag, &s.Start)
	f.Forget() // the last has some rows
	err := save()
	return cmp.Or(t.Unbrought(), err) // rows that did not come are no fault of this node's disk
}

// Tidy removes what other nodes need no more of a run that is done: all of it, of a node that has a part of
// what others have whole.
func (p *Placement) Tidy(f *checkpoint.Folder, r *recipe.Recipe, part bool, log *slog.Logger) {
	if !r.MayPart() || !f.Keeps() {
		return
	}
	err := f.RemoveEarlier()
	if part {
		err = errors.Join(err, f.Remove())
	}
	if err != nil {
		log.Warn("could not remove a part of what other nodes have whole", "err", err)
	}
}
