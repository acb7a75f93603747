package train

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A found is a checkpoint that a node has, as it says to others: where it stands, and how much of the
// learnt rows it has.
type found struct {
	Have, Parts                bool
	Epoch, Step, Left, Updates uint64
	Best                       uint64 // the best epoch; 0: none
	Size                       uint64 // of the file
	Tensors                    [sha256.Size]byte
	Before                     bool // it is not the last one, but the one before it
	shards                     []bool
}

// A finding is what a node has: its last checkpoint, and the one before it.
type finding [2]found

// keepers are the nodes of the run that has written a checkpoint, by which those can be named that have
// the rows which nobody here has.
type keepers struct {
	Nodes  []string `json:"nodes"`
	Owners []int    `json:"owners"`
}

// The messages in which nodes say which checkpoints they have, and that these lie where others ask for
// them. They follow greetings.
var (
	findings = exchange.Tag{Lane: exchange.LaneMessages, Index: 4}
	settled  = exchange.Tag{Lane: exchange.LaneMessages, Index: 5}
)

// A reunion brings the learnt rows of a run together that lie in the checkpoints of several nodes. Rows
// are those of a number of updates, so files of the same number fit together.
type reunion struct {
	t      *Trainer
	l      *Learner
	all    []finding // of each node
	course found     // where all go on
	from   int       // the node that stands there
}

// reunite has the nodes go on from the furthest step of which the rows of all shards are here, and reports
// whether it did: not where each checkpoint has all rows, and so does each node.
func (r *learnt) reunite(ctx context.Context, t *Trainer, greetings []session.Greeting) (bool, error) {
	if !t.Recipe.MayPart() && !r.apart {
		return false, nil
	}
	u := &reunion{t: t, l: t.Learners[0]}
	mine, who := u.find()
	messages, err := t.Session.Exchange.Gather(ctx, findings, u.message(&mine, who), &t.Session.Start)
	if err != nil {
		return false, fmt.Errorf("hear which checkpoints the other nodes have: %w", err)
	}
	parts, any := r.apart, false
	names := make([]keepers, len(messages))
	u.all = make([]finding, len(messages))
	for node, m := range messages {
		if err := u.all[node].read(m, len(t.Data.Shards), &names[node]); err != nil {
			return false, &session.Agreed{Err: fmt.Errorf("node %s %w", t.Session.Name(node), err)}
		}
		for _, f := range u.all[node] {
			parts, any = parts || f.Parts, any || f.Have
		}
	}
	if !parts || !any {
		return false, nil
	}
	if err := u.choose(names); err != nil {
		return false, &session.Agreed{Err: err}
	}
	if err := u.goOn(ctx, &greetings[u.from]); err != nil {
		return false, fmt.Errorf("bring the learnt rows of epoch %d, step %d together: %w", u.course.Epoch, u.course.Step, err)
	}
	return true, nil
}

// find looks at this node's checkpoints.
func (u *reunion) find() (mine finding, who string) {
	t := u.t
	if !t.Options.Resume || !t.Checkpoints.Keeps() {
		return mine, ""
	}
	for i, path := range []string{t.Checkpoints.Path(), t.Checkpoints.BeforePath()} {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		c, err := trained.OpenCheckpoint(path)
		if err != nil {
			continue
		}
		if f := &mine[i]; t.fits(c) == nil && c.Models[0].State.Diverged == nil {
			s := &c.Models[0]
			f.Have, f.Parts, f.Before = true, embedding.InParts(c.File, len(t.Data.Shards)), i > 0
			f.Epoch, f.Step, f.Updates = uint64(s.State.Epoch), uint64(s.State.Step), s.Updates
			if !s.State.Done(&t.Recipe) {
				f.Left = 1
			}
			if s.State.Best != nil {
				f.Best = uint64(s.State.Best.Epoch)
			}
			f.Size, f.Tensors = uint64(info.Size()), c.File.Digest()
			f.shards = make([]bool, len(t.Data.Shards))
			u.l.Rows.Shards(c.File, f.shards)
			if i == 0 {
				who = c.File.Text(embedding.KeepersField)
			}
		}
		if err := c.Close(); err != nil {
			mine[i] = found{}
		}
	}
	return mine, who
}

// fixed is what messages have of a found, whatever the dataset.
type fixed struct {
	Have, Parts, Before                    bool
	Epoch, Step, Left, Updates, Best, Size uint64
	Tensors                                [sha256.Size]byte
}

func (u *reunion) message(mine *finding, who string) (m []byte) {
	for i := range mine {
		f := &mine[i]
		m, _ = binary.Append(m, binary.LittleEndian, &fixed{f.Have, f.Parts, f.Before, f.Epoch, f.Step, f.Left, f.Updates, f.Best, f.Size, f.Tensors})
		for shard := range u.t.Data.Shards {
			has := byte(0)
			if f.Have && f.shards[shard] {
				has = 1
			}
			m = append(m, has)
		}
	}
	return append(m, who...)
}

// mostWho bounds the text of keepers.
const mostWho = 1 << 20

// read decodes what came from another node.
func (g *finding) read(m []byte, shards int, who *keepers) error {
	each := binary.Size(&fixed{}) + shards
	if len(m) < 2*each || len(m) > 2*each+mostWho {
		return fmt.Errorf("says in %d bytes which checkpoints it has", len(m))
	}
	for i := range g {
		var f fixed
		n, err := binary.Decode(m, binary.LittleEndian, &f)
		if err != nil {
			return fmt.Errorf("says which checkpoints it has in other words: %w", err)
		}
		if max(f.Epoch, f.Step, f.Left, f.Best) > math.MaxInt32 {
			return fmt.Errorf("says that it stands at step %d of epoch %d", f.Step, f.Epoch)
		}
		g[i] = found{Have: f.Have, Parts: f.Parts, Before: f.Before, Epoch: f.Epoch, Step: f.Step, Left: f.Left, Updates: f.Updates, Best: f.Best, Size: f.Size, Tensors: f.Tensors}
		for _, has := range m[n : n+shards] {
			g[i].shards = append(g[i].shards, has != 0)
		}
		m = m[each:]
	}
	if len(m) == 0 {
		return nil
	}
	if err := json.Unmarshal(m, who); err != nil {
		return fmt.Errorf("does not say on which nodes rows were: %w", err)
	}
	if len(who.Owners) != shards || slices.ContainsFunc(who.Owners, func(owner int) bool { return owner < 0 || owner >= len(who.Nodes) }) {
		return fmt.Errorf("says that the rows of %d shards were on %d nodes", len(who.Owners), len(who.Nodes))
	}
	return nil
}

// choose chooses the furthest step of which all rows are here, the same on each node.
func (u *reunion) choose(names []keepers) error {
	type stand struct {
		found
		node int
	}
	var stands []stand
	for node := range u.all {
		for _, f := range u.all[node] {
			if f.Have {
				stands = append(stands, stand{f, node})
			}
		}
	}
	slices.SortStableFunc(stands, func(a, b stand) int { return b.compare(&a.found) })
	var missing []int
	for i, s := range stands {
		lacks := u.lacking(s.Updates)
		if len(lacks) == 0 {
			u.course, u.from = s.found, s.node
			return nil
		}
		if i == 0 {
			missing = lacks
		}
	}
	first := stands[0]
	return u.missing(missing, &first.found, names[first.node])
}

// compare orders checkpoints by how far they are.
func (f *found) compare(o *found) int {
	return cmp.Or(cmp.Compare(f.Updates, o.Updates), cmp.Compare(f.Epoch, o.Epoch), cmp.Compare(f.Step, o.Step), cmp.Compare(o.Left, f.Left))
}

// lacking returns the shards whose rows after so many updates nobody has.
func (u *reunion) lacking(updates uint64) (shards []int) {
	for shard := range u.t.Data.Shards {
		here := slices.ContainsFunc(u.all, func(g finding) bool {
			return slices.ContainsFunc(g[:], func(f found) bool { return f.Have && f.Updates == updates && f.shards[shard] })
		})
		if !here {
			shards = append(shards, shard)
		}
	}
	return shards
}

// missing returns the error of rows that are on no node that is here.
func (u *reunion) missing(shards []int, at *found, of keepers) error {
	var who []string
	for _, shard := range shards {
		if len(of.Nodes) == 0 {
			break
		}
		owner := of.Owners[shard]
		for _, node := range []int{owner, embedding.Second(owner, len(of.Nodes))} {
			if name := of.Nodes[node]; !slices.Contains(who, name) && !slices.Contains(u.t.Session.Work.Nodes, name) {
				who = append(who, name)
			}
		}
	}
	const say = "the learnt rows of some vertices are on no node that is here (shard %d, after step %d of epoch %d)"
	if len(who) == 0 {
		return fmt.Errorf(say+": start the nodes that trained this job, and then {train.resume}", shards[0], at.Step, at.Epoch)
	}
	return fmt.Errorf(say+": start node %s, and then {train.resume}", shards[0], at.Step, at.Epoch, strings.Join(who, " or node "))
}

// mine returns this node's checkpoint of the rows with which all go on; nil: it has none.
func (u *reunion) mine() *found {
	for i := range u.all[u.t.Session.Work.Self] {
		if f := &u.all[u.t.Session.Work.Self][i]; f.Have && f.Updates == u.course.Updates {
			return f
		}
	}
	return nil
}

// goOn has this node go on from the step that was chosen, with the rows that it is to have.
func (u *reunion) goOn(ctx context.Context, greeting *session.Greeting) error {
	t, mine := u.t, u.mine()
	if mine != nil && mine.Before {
		if err := t.Checkpoints.Return(); err != nil {
			return err
		}
	}
	// Others ask for files that lie where they stay.
	if _, err := t.Session.Exchange.Gather(ctx, settled, nil, &t.Session.Start); err != nil {
		return fmt.Errorf("wait until the checkpoints of all nodes are where they are asked for: %w", err)
	}
	own, whole := u.l.At, mine != nil && mine.compare(&u.course) == 0
	if whole {
		if _, err := t.resume(t.Checkpoints.Path()); err != nil {
			return err
		}
		if err := u.takeOwn(mine); err != nil {
			return err
		}
	} else {
		err := u.fetch(ctx, u.from, &u.course, func(path string) error {
			if _, err := t.resume(path); err != nil {
				return err
			}
			return u.take(path, &u.course)
		})
		if err != nil {
			return err
		}
		u.keepUnder(own)
		if mine != nil {
			if err := u.takeOwn(mine); err != nil {
				return err
			}
		}
	}
	for node := range u.all {
		for i := range u.all[node] {
			f := &u.all[node][i]
			if !f.Have || f.Updates != u.course.Updates || node == t.Session.Work.Self || !u.helps(f) {
				continue
			}
			whole = false
			if err := u.fetch(ctx, node, f, func(path string) error { return u.take(path, f) }); err != nil {
				return err
			}
		}
	}
	if lacks := u.l.Rows.Lacks(); len(lacks) > 0 {
		return fmt.Errorf("no node had the rows of shard %d that it said it had", lacks[0])
	}
	if !whole {
		t.Checkpoints.Forget() // this node's has other rows
	}
	t.Sharing.learnt.whole = whole && !mine.Parts
	t.tuned(greeting.DealTuning())
	return nil
}

// keepUnder keeps what this node did of the epoch under way, since the others report their own.
func (u *reunion) keepUnder(had trained.State) {
	under, of := had.Under, &u.l.At.Under
	if u.l.At.Epoch != had.Epoch {
		under = trained.Epoch{}
	}
	under.Epoch, under.Model, under.Steps, under.Rate, under.Seconds = of.Epoch, of.Model, of.Steps, of.Rate, max(under.Seconds, of.Seconds)
	*of = under
}

// helps reports whether a checkpoint has rows that this node lacks.
func (u *reunion) helps(f *found) bool {
	return slices.ContainsFunc(u.l.Rows.Lacks(), func(shard int) bool { return f.shards[shard] })
}

// takeOwn takes rows from this node's own checkpoint.
func (u *reunion) takeOwn(f *found) error { return u.take(u.t.Checkpoints.Path(), f) }

// take takes rows from a file.
func (u *reunion) take(path string, f *found) (err error) {
	best, err := u.best(f)
	if err != nil {
		return err
	}
	c, err := trained.OpenCheckpoint(path)
	if err != nil {
		return err
	}
	if c.File.Digest() != f.Tensors {
		return errors.Join(errors.New("its numbers are not those that the node spoke of"), c.Close())
	}
	return errors.Join(u.l.Rows.Take(c.File, best), c.Close())
}

// best returns where a checkpoint has the rows of the best epoch. One that was written before the end of
// that epoch was agreed on has them as those of its last step.
func (u *reunion) best(f *found) (embedding.BestRows, error) {
	at := &u.l.At
	switch {
	case at.Best == nil:
		return embedding.NoBest, nil
	case f.Best == uint64(at.Best.Epoch):
		return embedding.BestApart, nil
	case at.Best.Epoch == at.Epoch-1 && at.Step == 0:
		return embedding.BestNow, nil
	}
	return 0, fmt.Errorf("a checkpoint has the best rows of epoch %d, and the best epoch is %d", f.Best, at.Best.Epoch)
}

// fetch brings another node's checkpoint into a file for as long as it is used.
func (u *reunion) fetch(ctx context.Context, node int, f *found, use func(path string) error) error {
	t := u.t
	name := t.Session.Name(node)
	if !t.Checkpoints.Keeps() {
		return fmt.Errorf("node %s has rows that this node is to have, which has no folder to take its checkpoint over in", name)
	}
	if most := t.maxCheckpoint(); f.Size > most {
		return fmt.Errorf("the checkpoint of node %s has %d bytes, and one of this job has no more than %d", name, f.Size, most)
	}
	t.Log.Info("this node takes learnt rows from the checkpoint of another", "node", name, "epoch", f.Epoch, "step", f.Step, "bytes", f.Size)
	if err := t.Checkpoints.Borrow(f.Size, t.pieces(ctx, node), use); err != nil {
		return fmt.Errorf("take rows from the checkpoint of node %s: %w", name, err)
	}
	return nil
}
