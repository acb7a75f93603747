package train

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Meet finds the progress of all nodes, and brings them all to that of the furthest: a
// node that is behind adopts its checkpoint.
func (t *Trainer) Meet(ctx context.Context) error {
	mine, own := t.greeting()
	if mine.Damaged {
		t.Log.Warn("this node's own checkpoint is not usable; another node's is taken if there is one", "err", own)
	}
	all, err := t.Session.Greet(ctx, mine, t.Recipe.Sharing.Deterministic)
	if err != nil {
		return err
	}
	together, err := t.Sharing.learnt.reunite(ctx, t, all)
	if err != nil {
		return err
	}
	best := -1
	if !together {
		best, err = t.Session.Furthest(all, t.Options.Known)
	}
	if err != nil {
		return errors.Join(err, own)
	}
	if best >= 0 {
		if err := t.goOn(ctx, all, best); err != nil {
			return err
		}
	}
	if t.Sharing.Dealer != nil {
		t.Sharing.Dealer.Restore(t.tuning())
	}
	return nil
}

// goOn adopts the checkpoint of a node, which may be this one.
func (t *Trainer) goOn(ctx context.Context, all []session.Greeting, best int) error {
	self := t.Session.Work.Self
	from, mine := &all[best], &all[self]
	if !mine.Have || mine.Compare(from) != 0 || mine.Tensors != from.Tensors {
		had := make([]trained.State, len(t.Learners))
		for k, l := range t.Learners {
			had[k] = l.At
		}
		if err := t.fetch(ctx, best, from); err != nil {
			return err
		}
		for k, l := range t.Learners {
			if !mine.Have {
				had[k].Epoch = 0
			}
			l.At.KeepUnder(had[k].Epoch, had[k].Under)
		}
	}
	// Nodes at the same step may or may not have received the time of the epoch before.
	t.tuned(from.DealTuning())
	return nil
}

// greeting returns this node's greeting, after resuming from its own checkpoint if
// there is one. It includes what is wrong with that.
func (t *Trainer) greeting() (session.Greeting, error) {
	g := session.Greeting{Edges: t.Session.Replica.Replicated || t.Session.Replica.Later > 0, Foreign: t.Foreign != nil, Recipe: t.Recipe.Digest(t.Session.Work), Dataset: sha256.Sum256([]byte(t.Options.Dataset))}
	if !t.Options.Resume || !t.Checkpoints.Keeps() {
		return g, nil
	}
	path := t.Checkpoints.Path()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil {
		if g.Tensors, err = t.resumeLast(); err == nil {
			info, err = os.Stat(path) // it may be the one before
		}
	}
	if err != nil {
		g.Damaged = true
		return g, err
	}
	g.Have, g.Size = true, uint64(info.Size())
	at := t.Place()
	g.Epoch, g.Step, g.Left, g.Updates = uint64(at.Epoch), uint64(at.Step), uint64(at.Left), t.updates()
	g.SetTuning(t.tuning())
	return g, nil
}

// fetch adopts a node's checkpoint: it replaces this node's own once all of it has been
// checked. If the disk can't take it, the node goes on from it in memory.
func (t *Trainer) fetch(ctx context.Context, node int, of *session.Greeting) error {
	name := t.Session.Name(node)
	if !t.Checkpoints.Keeps() {
		return fmt.Errorf("node %s stands at step %d of epoch %d, and this node has no folder to take its checkpoint over in", name, of.Step, of.Epoch)
	}
	if most := t.maxCheckpoint(); of.Size > most {
		return fmt.Errorf("the checkpoint of node %s has %d bytes, and one of this job has no more than %d", name, of.Size, most)
	}
	t.Log.Info("this node goes on from the checkpoint of another", "node", name, "epoch", of.Epoch, "step", of.Step, "bytes", of.Size)
	err := t.Checkpoints.Receive(of.Size, t.pieces(ctx, node), func(path string) error {
		tensors, err := t.resume(path)
		if err != nil {
			return err
		}
		return t.arrived(node, of, tensors)
	})
	unkept := err
	if _, full := errors.AsType[*checkpoint.Unsaved](err); full {
		err = t.fetchUnkept(ctx, node, of)
	}
	if err != nil {
		return fmt.Errorf("take over the checkpoint of node %s: %w", name, err)
	}
	if unkept != nil {
		t.Checkpoints.Forget()
		t.unkept(unkept)
	}
	return nil
}

// fetchUnkept adopts a node's checkpoint in memory, which has room for it until the
// first step begins.
func (t *Trainer) fetchUnkept(ctx context.Context, node int, of *session.Greeting) error {
	var whole bytes.Buffer
	if err := checkpoint.Fetch(&whole, of.Size, t.pieces(ctx, node)); err != nil {
		return err
	}
	name := "of node " + t.Session.Name(node)
	c, err := trained.ParseCheckpoint(name, whole.Bytes())
	if err != nil {
		return err
	}
	tensors, err := t.resumeFrom(c, name)
	if err != nil {
		return err
	}
	return t.arrived(node, of, tensors)
}

// arrived fails unless the adopted checkpoint of a node left this one at the step that
// the node announced.
func (t *Trainer) arrived(node int, of *session.Greeting, tensors [sha256.Size]byte) error {
	if tensors != of.Tensors {
		return errors.New("its numbers are not those that the node told of")
	}
	at := t.Place()
	if uint64(at.Epoch) != of.Epoch || uint64(at.Step) != of.Step || uint64(at.Left) != of.Left || t.updates() != of.Updates {
		return fmt.Errorf("it stands at step %d of epoch %d, and node %s at step %d of epoch %d", at.Step, at.Epoch, t.Session.Name(node), of.Step, of.Epoch)
	}
	return nil
}

// pieces returns a function that requests a node's checkpoint.
func (t *Trainer) pieces(ctx context.Context, node int) checkpoint.Ask {
	return func(question []byte, limit int, buffer []byte) ([]byte, error) {
		return t.Session.Peers.Ask(ctx, node, peer.Query{
			Service: peer.Checkpoint, Kind: peer.Model, Part: session.AskFile, Body: question, Limit: limit, Tally: &t.Session.Start,
		}, buffer)
	}
}
