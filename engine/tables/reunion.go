package tables

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A found is a checkpoint that a node has, as it says to others: where it stands, and how much of the
// learnt rows it has.
type found struct {
	said
	shards []bool
}

// said is what messages have of a found, whatever the dataset.
type said struct {
	Have, Parts                bool
	Before                     bool // it is not the last one, but the one before it
	Epoch, Step, Left, Updates uint64
	Best                       uint64 // the best epoch; 0: none
	Size                       uint64 // of the file
	Tensors                    [sha256.Size]byte
}

// A finding is what a node has: its last checkpoint, and the one before it.
type finding [2]found

// keepers are the nodes of the run that has written a checkpoint, by which those can be named that have
// the rows which nobody here has.
type keepers struct {
	Nodes  []string `json:"nodes"`
	Owners []int    `json:"owners"`
}

// KeptBy returns what a checkpoint of a run whose rows are apart says of the nodes that have them.
func KeptBy(s *session.Session) any { return keepers{s.Work.Nodes, s.Work.Owners} }

// The messages in which nodes say which checkpoints they have, and that these lie where others ask for
// them. They follow greetings.
var (
	findings = exchange.Tag{Lane: exchange.LaneMessages, Index: 4}
	settled  = exchange.Tag{Lane: exchange.LaneMessages, Index: 5}
)

// A Reunion brings the learnt rows of a run together that lie in the checkpoints of several nodes. Rows
// are those of a number of updates, so files of the same number fit together.
type Reunion struct {
	Session     *session.Session
	Table       *embedding.Table
	Checkpoints *checkpoint.Folder
	Shards      int
	Resume      bool // this node goes on from what it has
	Log         *slog.Logger
	// Fits returns an error unless a checkpoint is one of this run. Adopt has the model go on from one,
	// and returns where it stands then.
	Fits  func(*trained.Snapshot) error
	Adopt func(path string) (*trained.State, error)
	Done  func(*trained.State) bool
	Most  uint64 // bounds the size of a checkpoint
	Ask   func(ctx context.Context, node int) checkpoint.Ask

	all    []finding // of each node
	course found     // where all go on
	from   int       // the node that stands there
	at     *trained.State
}

// Reunite has the nodes go on from the furthest step of which the rows of all shards are here. It returns
// the node that stands there, or -1 where each checkpoint has all rows, and so does each node; and whether
// this node has taken over where another stands.
func (p *Placement) Reunite(ctx context.Context, u *Reunion) (from int, took bool, err error) {
	mine, who := u.find()
	messages, err := u.gather(ctx, findings, message(&mine, u.Shards, who))
	if err != nil {
		return -1, false, fmt.Errorf("hear which checkpoints the other nodes have: %w", err)
	}
	parts, some := p.Apart, false
	names := make([]keepers, len(messages))
	u.all = make([]finding, len(messages))
	for node, m := range messages {
		if err := u.all[node].read(m, u.Shards, &names[node]); err != nil {
			return -1, false, &session.Agreed{Err: fmt.Errorf("node %s %w", u.Session.Name(node), err)}
		}
		for _, f := range u.all[node] {
			parts, some = parts || f.Parts, some || f.Have
		}
	}
	if !parts || !some {
		return -1, false, nil
	}
	if err := u.choose(names); err != nil {
		return -1, false, &session.Agreed{Err: err}
	}
	if took, p.done, err = u.goOn(ctx); err != nil {
		return -1, false, fmt.Errorf("bring the learnt rows of epoch %d, step %d together: %w", u.course.Epoch, u.course.Step, err)
	}
	return u.from, took, nil
}

// gather returns what all nodes say, of which this may be the only one.
func (u *Reunion) gather(ctx context.Context, tag exchange.Tag, mine []byte) ([][]byte, error) {
	if u.Session.Alone() {
		return [][]byte{mine}, nil
	}
	return u.Session.Exchange.Gather(ctx, tag, mine, &u.Session.Start)
}

// find looks at this node's checkpoints.
func (u *Reunion) find() (mine finding, who string) {
	if !u.Resume || !u.Checkpoints.Keeps() {
		return mine, ""
	}
	for i, path := range []string{u.Checkpoints.Path(), u.Checkpoints.BeforePath()} {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		c, err := trained.OpenCheckpoint(path)
		if err != nil {
			continue
		}
		if f := &mine[i]; u.Fits(c) == nil && c.Models[0].State.Diverged == nil {
			s := &c.Models[0]
			f.Have, f.Parts, f.Before = true, embedding.InParts(c.File, u.Shards), i > 0
			f.Epoch, f.Step, f.Updates = uint64(s.State.Epoch), uint64(s.State.Step), s.Updates
			if !u.Done(&s.State) {
				f.Left = 1
			}
			if s.State.Best != nil {
				f.Best = uint64(s.State.Best.Epoch)
			}
			f.Size, f.Tensors = uint64(info.Size()), c.File.Digest()
			f.shards = make([]bool, u.Shards)
			u.Table.Shards(c.File, f.shards)
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

// message returns what a node says of its checkpoints.
func message(mine *finding, shards int, who string) (m []byte) {
	for i := range mine {
		m, _ = binary.Append(m, binary.LittleEndian, &mine[i].said)
		for shard := range shards {
			has := byte(0)
			if mine[i].Have && mine[i].shards[shard] {
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
	each := binary.Size(&said{}) + shards
	if len(m) < 2*each || len(m) > 2*each+mostWho {
		return fmt.Errorf("says in %d bytes which checkpoints it has", len(m))
	}
	for i := range g {
		f := &g[i]
		n, err := binary.Decode(m, binary.LittleEndian, &f.said)
		if err != nil {
			return fmt.Errorf("says which checkpoints it has in other words: %w", err)
		}
		if max(f.Epoch, f.Step, f.Left, f.Best) > math.MaxInt32 {
			return fmt.Errorf("says that it stands at step %d of epoch %d", f.Step, f.Epoch)
		}
		for _, has := range m[n : n+shards] {
			f.shards = append(f.shards, has != 0)
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
func (u *Reunion) choose(names []keepers) error {
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
			u.course, u.from = *u.of(s.node, s.Updates), s.node
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
func (u *Reunion) lacking(updates uint64) (shards []int) {
	for shard := range u.Shards {
		here := false
		for node := range u.all {
			f := u.of(node, updates)
			here = here || f != nil && f.shards[shard]
		}
		if !here {
			shards = append(shards, shard)
		}
	}
	return shards
}

// missing returns the error of rows that are on no node that is here.
func (u *Reunion) missing(shards []int, at *found, of keepers) error {
	var who []string
	for _, shard := range shards {
		if len(of.Nodes) == 0 {
			break
		}
		owner := of.Owners[shard]
		for _, node := range []int{owner, embedding.Second(owner, len(of.Nodes))} {
			if name := of.Nodes[node]; !slices.Contains(who, name) && !slices.Contains(u.Session.Work.Nodes, name) {
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

// of returns the checkpoint that a node gives of the rows after so many updates; nil: it has none.
func (u *Reunion) of(node int, updates uint64) *found {
	for i := range u.all[node] {
		if f := &u.all[node][i]; f.Have && f.Updates == updates {
			return f
		}
	}
	return nil
}

// goOn has this node go on from the step that was chosen, with the rows that it is to have. It returns
// whether it took over where another node stands, and whether its own checkpoint has all rows.
func (u *Reunion) goOn(ctx context.Context) (took, done bool, err error) {
	mine := u.of(u.Session.Work.Self, u.course.Updates)
	if mine != nil && mine.Before {
		if err := u.Checkpoints.Return(); err != nil {
			return false, false, err
		}
	}
	// Others ask for files that lie where they stay.
	if _, err := u.gather(ctx, settled, nil); err != nil {
		return false, false, fmt.Errorf("wait until the checkpoints of all nodes are where they are asked for: %w", err)
	}
	own := mine != nil && mine.compare(&u.course) == 0
	if own {
		u.at, err = u.Adopt(u.Checkpoints.Path())
	} else {
		err = u.fetch(ctx, u.from, &u.course, func(path string) error {
			if u.at, err = u.Adopt(path); err != nil {
				return err
			}
			return u.take(path, &u.course)
		})
	}
	if err == nil && mine != nil {
		err = u.take(u.Checkpoints.Path(), mine)
	}
	if err != nil {
		return false, false, err
	}
	kept := own && len(u.Table.Lacks()) == 0
	for node := range u.all {
		f := u.of(node, u.course.Updates)
		if f == nil || node == u.Session.Work.Self || !u.helps(f) {
			continue
		}
		if err := u.fetch(ctx, node, f, func(path string) error { return u.take(path, f) }); err != nil {
			return false, false, err
		}
	}
	if lacks := u.Table.Lacks(); len(lacks) > 0 {
		return false, false, fmt.Errorf("no node had the rows of shard %d that it said it had", lacks[0])
	}
	if !kept || mine.Parts && !u.Table.Apart() {
		u.Checkpoints.Forget() // this node's has other rows, or has in parts what is whole from now on
	}
	return !own, kept && !mine.Parts, nil
}

// helps reports whether a checkpoint has rows that this node lacks.
func (u *Reunion) helps(f *found) bool {
	return slices.ContainsFunc(u.Table.Lacks(), func(shard int) bool { return f.shards[shard] })
}

// take takes rows from a file.
func (u *Reunion) take(path string, f *found) (err error) {
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
	return errors.Join(u.Table.Take(c.File, best), c.Close())
}

// best returns where a checkpoint has the rows of the best epoch. One that was written before the end of
// that epoch was agreed on has them as those of its last step.
func (u *Reunion) best(f *found) (embedding.BestRows, error) {
	at := u.at
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
func (u *Reunion) fetch(ctx context.Context, node int, f *found, use func(path string) error) error {
	name := u.Session.Name(node)
	if !u.Checkpoints.Keeps() {
		return fmt.Errorf("node %s has rows that this node is to have, which has no folder to take its checkpoint over in", name)
	}
	if f.Size > u.Most {
		return fmt.Errorf("the checkpoint of node %s has %d bytes, and one of this job has no more than %d", name, f.Size, u.Most)
	}
	u.Log.Info("this node takes learnt rows from the checkpoint of another", "node", name, "epoch", f.Epoch, "step", f.Step, "bytes", f.Size)
	if err := u.Checkpoints.Borrow(f.Size, u.Ask(ctx, node), use); err != nil {
		return fmt.Errorf("take rows from the checkpoint of node %s: %w", name, err)
	}
	return nil
}
