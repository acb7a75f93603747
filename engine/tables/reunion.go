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
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
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
	Mixed                      bool // its weights differ from those of other nodes in the last digits
	Epoch, Step, Left, Updates uint64
	Best                       uint64 // the best epoch; 0: none
	Size                       uint64 // of the file
	Tensors                    [sha256.Size]byte
	Weights                    [sha256.Size]byte // digest of the weights without rows
}

// same reports whether rows of two checkpoints fit together: after the same updates, to the same weights.
// Nodes that were away may have made as many updates by themselves, to others.
func (f *found) same(o *found) bool {
	return f.Have && o.Have && f.Updates == o.Updates && (f.Weights == o.Weights || f.Mixed && o.Mixed)
}

// A finding is what a node has, by checkpoint.Which.
type finding [3]found

// keepers are the nodes of the run that has written a checkpoint, by which those can be named that have
// the rows that no node here has.
type keepers struct {
	Nodes  []string `json:"nodes"`
	Owners []int    `json:"owners"`
	Mixed  bool     `json:"mixed,omitempty"` // they compute on different devices
}

// KeptBy returns what a checkpoint of a run whose rows are apart says of the nodes that have them.
func KeptBy(s *session.Session) any { return keepers{s.Work.Nodes, s.Work.Owners, s.Mixed} }

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
	Known       int // how many epochs of the run this node knows of: if one knows any, it does not begin anew
	// Fits returns an error unless a checkpoint is one of this run, and Weights the weights that it has.
	// Adopt has the model go on from one, and returns where it stands then; Anew has it begin anew.
	Fits    func(*trained.Snapshot) error
	Weights func(*trained.Snapshot) ([]float32, error)
	Adopt   func(path string) (*trained.State, error)
	Anew    func() error
	Done    func(*trained.State) bool
	Most    uint64 // bounds the size of a checkpoint
	Ask     func(ctx context.Context, node int) checkpoint.Ask

	met
}

// met is what nodes know of each other once they have said it.
type met struct {
	all    []finding // of each node
	course found     // where all go on
	from   int       // the node that stands there
	at     *trained.State
}

// What Reunite returns in place of a node.
const (
	Whole = -1 - iota // each checkpoint has all rows, and so does each node
	Anew              // the run begins anew, on all nodes
)

// BegunAnew is what a run says that begins anew.
const BegunAnew = "all nodes stopped while the first checkpoint was written, which some of them lack: the training begins anew"

// Reunite has the nodes go on from the furthest step of which the rows of all shards are here. It returns
// the node that stands there, Whole or Anew, and whether this node has taken over where another stands.
func (p *Placement) Reunite(ctx context.Context, u *Reunion) (from int, took bool, err error) {
	mine, who := u.find()
	messages, err := u.gather(ctx, findings, message(&mine, u.Shards, u.Known, who))
	if err != nil {
		return Whole, false, fmt.Errorf("hear which checkpoints the other nodes have: %w", err)
	}
	parts, some := p.Apart, false
	names := make([]keepers, len(messages))
	u.all = make([]finding, len(messages))
	for node, m := range messages {
		known, err := u.all[node].read(m, u.Shards, &names[node])
		if err != nil {
			return Whole, false, &session.Agreed{Err: fmt.Errorf("node %s %w", u.Session.Name(node), err)}
		}
		u.Known = max(u.Known, known)
		for _, f := range u.all[node] {
			parts, some = parts || f.Parts, some || f.Have
		}
	}
	if !parts || !some {
		return Whole, false, nil
	}
	if err := u.choose(names); errors.Is(err, errUnfinished) {
		u.Log.Warn(BegunAnew)
		u.Checkpoints.Forget()
		return Anew, false, u.Anew()
	} else if err != nil {
		return Whole, false, &session.Agreed{Err: err}
	}
	if took, p.done, err = u.goOn(ctx); err != nil {
		return Whole, false, fmt.Errorf("bring the learnt rows of epoch %d, step %d together: %w", u.course.Epoch, u.course.Step, err)
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
	for i := range mine {
		path := u.Checkpoints.PathOf(checkpoint.Which(i))
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		c, err := trained.OpenCheckpoint(path)
		if err != nil {
			continue
		}
		if u.Fits(c) == nil && c.Models[0].State.Diverged == nil {
			err = u.look(c, &mine[i])
			mine[i].Size = uint64(info.Size())
		}
		if i == 0 {
			who = c.File.Text(embedding.KeepersField)
		}
		if err = errors.Join(err, c.Close()); err != nil {
			mine[i] = found{}
		}
	}
	return mine, who
}

// look notes what a checkpoint of this run has.
func (u *Reunion) look(c *trained.Snapshot, f *found) error {
	s := &c.Models[0]
	weights, err := u.Weights(c)
	if err != nil {
		return err
	}
	if c.File.Text(embedding.KeepersField) != "" {
		var by keepers
		if err := c.File.JSON(embedding.KeepersField, &by); err != nil {
			return err
		}
		f.Mixed = by.Mixed
	}
	f.Have, f.Parts = true, embedding.InParts(c.File, u.Shards)
	f.Epoch, f.Step, f.Updates = uint64(s.State.Epoch), uint64(s.State.Step), s.Updates
	if !u.Done(&s.State) {
		f.Left = 1
	}
	if s.State.Best != nil {
		f.Best = uint64(s.State.Best.Epoch)
	}
	f.Tensors, f.Weights = c.File.Digest(), sha256.Sum256(plain.Bytes(weights))
	f.shards = make([]bool, u.Shards)
	u.Table.Shards(c.File, f.shards)
	return nil
}

// message returns what a node says of its checkpoints, and how many epochs of the run it knows of.
func message(mine *finding, shards, known int, who string) (m []byte) {
	m = binary.LittleEndian.AppendUint32(m, uint32(min(known, math.MaxInt32)))
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
func (g *finding) read(m []byte, shards int, who *keepers) (known int, err error) {
	each := binary.Size(&said{}) + shards
	if all := 4 + len(g)*each; len(m) < all || len(m) > all+mostWho {
		return 0, fmt.Errorf("says in %d bytes which checkpoints it has", len(m))
	}
	known = int(min(binary.LittleEndian.Uint32(m), math.MaxInt32))
	m = m[4:]
	for i := range g {
		f := &g[i]
		n, err := binary.Decode(m, binary.LittleEndian, &f.said)
		if err != nil {
			return 0, fmt.Errorf("says which checkpoints it has in other words: %w", err)
		}
		if max(f.Epoch, f.Step, f.Left, f.Best) > math.MaxInt32 {
			return 0, fmt.Errorf("says that it stands at step %d of epoch %d", f.Step, f.Epoch)
		}
		for _, has := range m[n : n+shards] {
			f.shards = append(f.shards, has != 0)
		}
		m = m[each:]
	}
	if len(m) == 0 {
		return known, nil
	}
	if err := json.Unmarshal(m, who); err != nil {
		return 0, fmt.Errorf("does not say on which nodes rows were: %w", err)
	}
	if len(who.Owners) != shards || slices.ContainsFunc(who.Owners, func(owner int) bool { return owner < 0 || owner >= len(who.Nodes) }) {
		return 0, fmt.Errorf("says that the rows of %d shards were on %d nodes", len(who.Owners), len(who.Nodes))
	}
	return known, nil
}

// errUnfinished is the error of choose where the run may begin anew: nothing that anybody knows of was
// learnt.
var errUnfinished = errors.New("no checkpoint is whole, and no node is away that had a part of one")

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
	var first, away error
	named := true
	for _, s := range stands {
		lacks := u.lacking(&s.found)
		if len(lacks) == 0 {
			u.course, u.from = s.found, s.node
			return nil
		}
		of := &names[s.node]
		who := u.away(lacks, of)
		err := missing(lacks, who, &s.found)
		if first == nil {
			first = err
		}
		if away == nil && len(who) > 0 {
			away = err
		}
		named = named && len(of.Nodes) > 0
	}
	switch {
	case away != nil:
		return away
	case named && u.Known == 0:
		return errUnfinished
	}
	return first
}

// compare orders checkpoints by how far they are.
func (f *found) compare(o *found) int {
	return cmp.Or(cmp.Compare(f.Updates, o.Updates), cmp.Compare(f.Epoch, o.Epoch), cmp.Compare(f.Step, o.Step), cmp.Compare(o.Left, f.Left))
}

// lacking returns the shards whose rows no checkpoint has as they are where this one stands.
func (u *Reunion) lacking(at *found) (shards []int) {
	for shard := range u.Shards {
		here := false
		for node := range u.all {
			for i := range u.all[node] {
				f := &u.all[node][i]
				here = here || f.same(at) && f.shards[shard]
			}
		}
		if !here {
			shards = append(shards, shard)
		}
	}
	return shards
}

// away returns the names of those nodes that had rows of some shards and are not here.
func (u *Reunion) away(shards []int, of *keepers) (who []string) {
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
	return who
}

// missing returns the error of rows that are on no node that is here.
func missing(shards []int, away []string, at *found) error {
	const say = "the learnt rows of some vertices are on no node that is here (shard %d, after step %d of epoch %d)"
	if len(away) == 0 {
		return fmt.Errorf(say+": start the nodes that trained this job, and then {train.resume}, or remove the job and start another", shards[0], at.Step, at.Epoch)
	}
	return fmt.Errorf(say+": start node %s, and then {train.resume}", shards[0], at.Step, at.Epoch, strings.Join(away, " or node "))
}

// settle has the last checkpoint of each node be one of where all go on, if it has one. It returns which
// takes the last one's place here.
func (u *Reunion) settle() (mine checkpoint.Which) {
	for node := range u.all {
		of := &u.all[node]
		i := slices.IndexFunc(of[:], func(f found) bool { return f.same(&u.course) })
		if i <= 0 {
			continue
		}
		of[checkpoint.Last], of[i] = of[i], found{}
		if node == u.Session.Work.Self {
			mine = checkpoint.Which(i)
		}
	}
	return mine
}

// standing returns which checkpoint of a node stands where all go on; -1: none does.
func (u *Reunion) standing(node int) int {
	return slices.IndexFunc(u.all[node][:], func(f found) bool { return f.same(&u.course) && f.compare(&u.course) == 0 })
}

// goOn has this node go on from the step that was chosen, with the rows that it is to have. It returns
// whether it took over where another node stands, and whether its own checkpoint has all rows.
func (u *Reunion) goOn(ctx context.Context) (took, done bool, err error) {
	if which := u.settle(); which != checkpoint.Last {
		if err := u.Checkpoints.Return(which); err != nil {
			return false, false, err
		}
	}
	// Others ask for files that lie where they stay.
	if _, err := u.gather(ctx, settled, nil); err != nil {
		return false, false, fmt.Errorf("wait until the checkpoints of all nodes are where they are asked for: %w", err)
	}
	self := u.Session.Work.Self
	own := u.standing(self)
	if own >= 0 {
		u.at, err = u.Adopt(u.Checkpoints.PathOf(checkpoint.Which(own)))
	} else {
		which := u.standing(u.from)
		err = u.fetch(ctx, u.from, which, func(path string) error {
			if u.at, err = u.Adopt(path); err != nil {
				return err
			}
			return u.take(path, &u.all[u.from][which])
		})
	}
	if err == nil && (uint64(u.at.Epoch) != u.course.Epoch || uint64(u.at.Step) != u.course.Step) {
		err = fmt.Errorf("the checkpoint stands at step %d of epoch %d, which is not what the node spoke of", u.at.Step, u.at.Epoch)
	}
	kept := false
	for i := range u.all[self] {
		f := &u.all[self][i]
		if err == nil && f.same(&u.course) {
			err = u.take(u.Checkpoints.PathOf(checkpoint.Which(i)), f)
			kept = kept || i == 0 && own == 0 && len(u.Table.Lacks()) == 0
		}
	}
	if err == nil {
		err = u.takeOthers(ctx)
	}
	if err != nil {
		return false, false, err
	}
	mine := &u.all[self][checkpoint.Last]
	if !kept || mine.Parts && !u.Table.Apart() {
		u.Checkpoints.Supersede() // this node's has other rows, or has in parts what is whole from now on
	}
	return own < 0, kept && !mine.Parts && mine.Left == 0, nil
}

// takeOthers takes the rows that are lacking from checkpoints of other nodes.
func (u *Reunion) takeOthers(ctx context.Context) error {
	for node := range u.all {
		for i := range u.all[node] {
			f := &u.all[node][i]
			if node == u.Session.Work.Self || !f.same(&u.course) || !u.helps(f) {
				continue
			}
			if err := u.fetch(ctx, node, i, func(path string) error { return u.take(path, f) }); err != nil {
				return err
			}
		}
	}
	if lacks := u.Table.Lacks(); len(lacks) > 0 {
		return fmt.Errorf("no node had the rows of shard %d that it said it had", lacks[0])
	}
	return nil
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

// fetch brings one of another node's checkpoints into a file for as long as it is used.
func (u *Reunion) fetch(ctx context.Context, node, which int, use func(path string) error) error {
	name, f := u.Session.Name(node), &u.all[node][which]
	if !u.Checkpoints.Keeps() {
		return fmt.Errorf("node %s has rows that this node is to have, which has no folder to take its checkpoint over in", name)
	}
	if f.Size > u.Most {
		return fmt.Errorf("the checkpoint of node %s has %d bytes, and one of this job has no more than %d", name, f.Size, u.Most)
	}
	u.Log.Info("this node takes learnt rows from the checkpoint of another", "node", name, "epoch", f.Epoch, "step", f.Step, "bytes", f.Size)
	if err := u.Checkpoints.Borrow(checkpoint.Which(which), f.Size, u.Ask(ctx, node), use); err != nil {
		return fmt.Errorf("take rows from the checkpoint of node %s: %w", name, err)
	}
	return nil
}
