package train

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// wire is the version of what nodes that share a run say to each other, beside what
// packages below say. It comes first in what they say of their memory, which is the first
// thing that they say, and when they meet.
const wire = 6

// A greeting is what each node of a run tells the others when they meet.
type greeting struct {
	Wire            uint32
	Recipe, Dataset [sha256.Size]byte // digests
	// Where the node stands, if it has a checkpoint; Tensors is the digest of its
	// numbers, Size that of its file.
	Have, Damaged        bool
	Edges                bool   // all of the graph's are here
	Foreign              bool   // it does not compute on its processor
	Epoch, Step, Updates uint64 // of all models
	Left                 uint64 // models that have yet to do the step
	Size                 uint64
	Tensors              [sha256.Size]byte
	Tuning               wireTuning
}

// wireTuning is strategy.Tuning in numbers of a fixed size.
type wireTuning struct {
	Nodes, Slots, Epochs uint32
	Members              uint64
	Best                 float64
	Frozen               bool
}

func (w wireTuning) tuning() strategy.Tuning {
	return strategy.Tuning{Nodes: int(w.Nodes), Members: w.Members, Slots: int(w.Slots), Best: w.Best, Epochs: int(w.Epochs), Frozen: w.Frozen}
}

// agreed marks what ends a run for all nodes at once: each comes to it by itself, from
// what all know.
type agreed struct{ err error }

func (e *agreed) Error() string { return e.err.Error() }

func (e *agreed) Unwrap() error { return e.err }

// meet finds out where the nodes stand, and brings all to where the furthest does: who
// is not there takes its checkpoint over.
func (t *trainer) meet(ctx context.Context) error {
	mine, own := t.greeting()
	if mine.Damaged {
		t.log.Warn("this node's own checkpoint is not usable; another node's is taken if there is one", "err", own)
	}
	all, err := t.greet(ctx, mine)
	if err != nil {
		return err
	}
	best, err := t.furthest(all)
	if err != nil {
		return errors.Join(err, own)
	}
	if best >= 0 {
		if err := t.goOn(ctx, all, best); err != nil {
			return err
		}
	}
	if t.shared.dealer != nil {
		t.shared.dealer.Restore(t.tuning())
	}
	return nil
}

// greet tells all others a greeting and hears theirs.
func (t *trainer) greet(ctx context.Context, mine greeting) ([]greeting, error) {
	s := t.shared
	message, err := binary.Append(nil, binary.LittleEndian, &mine)
	if err != nil {
		return nil, fmt.Errorf("encode where this node stands: %w", err)
	}
	messages, err := s.exchange.Gather(ctx, exchange.Tag{Lane: exchange.LaneMessages}, message, &s.start)
	if err != nil {
		return nil, fmt.Errorf("meet the other nodes of the job: %w", err)
	}
	all := make([]greeting, len(messages))
	s.replicated, s.mixed = true, false
	for node, m := range messages {
		if err := all[node].read(m); err != nil {
			return nil, &agreed{fmt.Errorf("node %s %w", s.name(node), err)}
		}
		s.replicated = s.replicated && all[node].Edges
		if t.recipe.Sharing.Deterministic && all[node].Foreign != all[0].Foreign {
			return nil, &agreed{fmt.Errorf("node %s computes on %s and node %s on %s, which differ in the last digits, and a job with --deterministic has the same bits everywhere: start all of its nodes with --device cpu, or the job without --deterministic", s.name(0), all[0].computes(), s.name(node), all[node].computes())}
		}
		s.mixed = s.mixed || all[node].Foreign != all[0].Foreign
		for _, d := range []struct {
			what  string
			a, b  [sha256.Size]byte
			cause string
		}{
			{"recipe", all[node].Recipe, all[0].Recipe, "run the same version of hopmesh on both"},
			{"content of the dataset", all[node].Dataset, all[0].Dataset, "import the dataset anew"},
		} {
			if d.a != d.b {
				return nil, &agreed{fmt.Errorf("node %s and node %s can't share this job, since each has another %s of it: %s", s.name(0), s.name(node), d.what, d.cause)}
			}
		}
	}
	return all, nil
}

// computes names what a node computes on.
func (g *greeting) computes() string {
	if g.Foreign {
		return "a GPU"
	}
	return "its processor"
}

// checkWire looks at what a message begins with.
func checkWire(m []byte) error {
	if len(m) < 4 || binary.LittleEndian.Uint32(m) != wire {
		return errors.New("speaks of training in another version: run the same version of hopmesh on all nodes of the job")
	}
	return nil
}

// read reads what came from another node.
func (g *greeting) read(m []byte) error {
	if err := checkWire(m); err != nil {
		return err
	}
	if n, err := binary.Decode(m, binary.LittleEndian, g); err != nil || n != len(m) {
		return fmt.Errorf("says in %d bytes where it stands, which is not what that takes", len(m))
	}
	if w := g.Tuning; max(g.Epoch, g.Step, g.Left, uint64(w.Epochs), uint64(w.Slots), uint64(w.Nodes)) > math.MaxInt32 || !(w.Best >= 0) {
		return fmt.Errorf("says that it stands at step %d of epoch %d", g.Step, g.Epoch)
	}
	return nil
}

// compare says who is further.
func (g *greeting) compare(o *greeting) int {
	return cmp.Or(cmp.Compare(g.Epoch, o.Epoch), cmp.Compare(g.Step, o.Step), cmp.Compare(o.Left, g.Left), cmp.Compare(g.Updates, o.Updates))
}

// furthest is the node that all go on from; -1: all begin.
func (t *trainer) furthest(all []greeting) (int, error) {
	best, damaged := -1, -1
	for node := range all {
		switch g := &all[node]; {
		case g.Have && (best < 0 || g.compare(&all[best]) > 0):
			best = node
		case g.Damaged && damaged < 0:
			damaged = node
		}
	}
	if best < 0 && damaged < 0 && t.options.Known > 0 {
		return -1, &agreed{fmt.Errorf("%d epochs of this job are known, and no node that is here has what it had learnt: start the nodes that trained it, and then `hopmesh train resume`, or remove the job and start another", t.options.Known)}
	}
	if best < 0 && damaged >= 0 {
		return -1, &agreed{fmt.Errorf("node %s has a checkpoint of this job that is not usable, and no other node has one: remove it to begin anew", t.shared.name(damaged))}
	}
	return best, nil
}

// goOn takes over the checkpoint of a node, which is this one if they are the same.
func (t *trainer) goOn(ctx context.Context, all []greeting, best int) error {
	self := t.shared.work.Self
	from, mine := &all[best], &all[self]
	if !mine.Have || mine.compare(from) != 0 || mine.Tensors != from.Tensors {
		had := make([]state, len(t.learners))
		for k, l := range t.learners {
			had[k] = l.at
		}
		if err := t.fetch(ctx, best, from); err != nil {
			return err
		}
		for k, l := range t.learners {
			own := had[k].Under
			if !mine.Have || l.at.Epoch != had[k].Epoch {
				own = Epoch{}
			}
			// What the other node did for the epoch under way is told by that one: this one
			// tells what it did, as far as it knows.
			of := l.at.Under
			own.Epoch, own.Model, own.Steps, own.Rate, own.Seconds = of.Epoch, of.Model, of.Steps, of.Rate, max(own.Seconds, of.Seconds)
			l.at.Under = own
		}
	}
	// Nodes that stand at one step may have heard of the time of the epoch before, or not.
	t.tuned(from.Tuning.tuning())
	return nil
}

// greeting is this node's, which has gone on from its own checkpoint if there is one.
// What is wrong with that is said, too.
func (t *trainer) greeting() (greeting, error) {
	g := greeting{Wire: wire, Edges: t.shared.replica.Replicated, Foreign: t.foreign != nil, Recipe: t.recipe.digest(t.shared.work), Dataset: sha256.Sum256([]byte(t.options.Dataset))}
	if !t.options.Resume || t.options.Dir == "" {
		return g, nil
	}
	path := filepath.Join(t.options.Dir, CheckpointFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil {
		g.Tensors, err = t.resume(path)
	}
	if err != nil {
		g.Damaged = true
		return g, err
	}
	g.Have, g.Size = true, uint64(info.Size())
	at := t.place()
	g.Epoch, g.Step, g.Left, g.Updates = uint64(at.epoch), uint64(at.step), uint64(at.left), t.updates()
	w := t.tuning()
	g.Tuning = wireTuning{Nodes: uint32(w.Nodes), Members: w.Members, Slots: uint32(w.Slots), Epochs: uint32(w.Epochs), Best: w.Best, Frozen: w.Frozen}
	return g, nil
}

// digest is that of all that the nodes of a run must have been told alike.
func (r *Recipe) digest(w strategy.Work) [sha256.Size]byte {
	text, err := json.Marshal(struct {
		Recipe  *Recipe
		Nodes   []string
		Owners  []int
		Holders [][]int
		Weights []uint64
	}{r, w.Nodes, w.Owners, w.Holders, w.Weights})
	if err != nil {
		return sha256.Sum256([]byte(err.Error()))
	}
	return sha256.Sum256(text)
}

// fetch takes over a node's checkpoint: it replaces this node's own once all of it has
// been checked. A node whose disk does not take it goes on from it all the same, as one
// does that can't write its own.
func (t *trainer) fetch(ctx context.Context, node int, of *greeting) error {
	name := t.shared.name(node)
	if t.options.Dir == "" {
		return fmt.Errorf("node %s stands at step %d of epoch %d, and this node has no folder to take its checkpoint over in", name, of.Step, of.Epoch)
	}
	if most := t.mostCheckpoint(); of.Size > most {
		return fmt.Errorf("the checkpoint of node %s has %d bytes, and one of this job has no more than %d", name, of.Size, most)
	}
	path := filepath.Join(t.options.Dir, CheckpointFile)
	t.log.Info("this node goes on from the checkpoint of another", "node", name, "epoch", of.Epoch, "step", of.Step, "bytes", of.Size)
	err := t.download(ctx, node, of, path+".tmp")
	if _, full := errors.AsType[*Unsaved](err); full {
		if failed := t.fetchUnkept(ctx, node, of); failed != nil {
			return fmt.Errorf("take over the checkpoint of node %s: %w", name, failed)
		}
		t.saved = saved{}
		t.unkept(err)
		return nil
	}
	var tensors [sha256.Size]byte
	if err == nil {
		tensors, err = t.resume(path + ".tmp")
	}
	if err == nil {
		err = t.arrived(node, of, tensors)
	}
	if err == nil {
		err = replace(path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("take over the checkpoint of node %s: %w", name, err), drop(path+".tmp"))
	}
	return nil
}

// fetchUnkept takes a node's checkpoint over in memory, which has room for it for as long
// as the first step has not begun.
func (t *trainer) fetchUnkept(ctx context.Context, node int, of *greeting) error {
	var whole bytes.Buffer
	if err := t.ask(ctx, node, of, &whole); err != nil {
		return err
	}
	name := "of node " + t.shared.name(node)
	c, err := parseCheckpoint(name, whole.Bytes())
	if err != nil {
		return err
	}
	tensors, err := t.resumeFrom(c, name)
	if err != nil {
		return err
	}
	return t.arrived(node, of, tensors)
}

// arrived says whether this node stands where the checkpoint that it took over was said to.
func (t *trainer) arrived(node int, of *greeting, tensors [sha256.Size]byte) error {
	if tensors != of.Tensors {
		return errors.New("its numbers are not those that the node told of")
	}
	at := t.place()
	if uint64(at.epoch) != of.Epoch || uint64(at.step) != of.Step || uint64(at.left) != of.Left || t.updates() != of.Updates {
		return fmt.Errorf("it stands at step %d of epoch %d, and node %s at step %d of epoch %d", at.step, at.epoch, t.shared.name(node), of.Step, of.Epoch)
	}
	return nil
}

// download writes a node's checkpoint to a file. Where that can't be, none is left, nor
// the room taken that it had.
func (t *trainer) download(ctx context.Context, node int, of *greeting, path string) error {
	if err := os.MkdirAll(t.options.Dir, 0o700); err != nil {
		return &Unsaved{err: err}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return &Unsaved{err: err}
	}
	if err = t.ask(ctx, node, of, file); err != nil {
		return errors.Join(err, file.Close(), drop(path))
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return errors.Join(&Unsaved{err: err}, drop(path))
	}
	return nil
}

// ask takes a node's checkpoint, piece by piece.
func (t *trainer) ask(ctx context.Context, node int, of *greeting, to io.Writer) error {
	var buffer []byte
	for at := uint64(0); at < of.Size; {
		n := min(of.Size-at, mostPiece)
		body := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, at), n)
		var err error
		buffer, err = t.shared.peers.Ask(ctx, node, strategy.Query{
			Service: strategy.Checkpoint, Kind: strategy.Model, Part: askFile, Body: body, Limit: int(n), Tally: &t.shared.start,
		}, buffer)
		if err == nil && uint64(len(buffer)) != n {
			err = fmt.Errorf("%d bytes came of the %d that were asked for", len(buffer), n)
		}
		if err != nil {
			return err
		}
		if _, err := to.Write(buffer); err != nil {
			return &Unsaved{err: err}
		}
		at += n
	}
	return nil
}

// mostCheckpoint is how large a checkpoint of this run may be: its numbers, and what it
// tells of itself.
func (t *trainer) mostCheckpoint() uint64 {
	most := uint64(64 << 20)
	for _, l := range t.learners {
		most += 4*4*uint64(l.model.Size()) + l.older.bytes()
		if l.remembers() {
			most += 4 * uint64(l.model.Size())
		}
	}
	return most
}

// drop removes a file, if it is there.
func drop(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
