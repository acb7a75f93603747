package grappa

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// Strategy trains groups of shards in isolation.
var Strategy = train.Descriptor{
	Declaration: declaration, Deal: Deal, Isolated: true,
	Check: func(r *recipe.Recipe, _ *nn.Model, about dataset.About) error { return checkIsolation(r, about) },
	CheckSweep: func(r *recipe.Recipe) error {
		if Of(&r.Sharing).Switch == onPlateau {
			return errors.New("{sweep}: with {grappa.switch}=plateau each model would turn to other shards at another time, and all train on the same batches: leave one of the two out")
		}
		return nil
	},
	Wrap:  func(p peer.Peers) peer.Peers { return &guard{Peers: p} },
	Serve: func(p peer.Peers) any { return vicinity.Register(p) },
	Ready: func(t *train.Trainer, served any) error {
		x, source := t.Session, served.(*vicinity.Source)
		if t.Recipe.Model.Related() {
			source.Relate(t.Recipe.Model.Relations)
		}
		return source.Ready(t.Data.Shards, t.Data.About.Edges, t.Data.Features, x.Source, x.Work, x.Layout, t.Recipe.Sharing.Wire())
	},
	Cache:    func(job *strategy.Settings) int { return Of(job).Cache },
	Forecast: forecast.Hooks{Volume: volume, Sight: newOutlook},
	New:      func(t *train.Trainer) (train.Method, error) { return newGrappa(t) },
}

// Method trains groups in isolation. A group samples from the part of the graph
// that it has been given, and a step sends nothing but gradients. The parts change
// between epochs; the next ones are fetched while the groups train.
type Method struct {
	*batched.Batched
	Schedule *Schedule
	settings *Settings
	layout   peer.Layout
	source   *vicinity.Source
	mine     []int    // groups of this node
	edges    []uint64 // of each shard

	bounds
	lent
	phasing
	pairing
	corrector *Corrector

	Now  *View
	Next *pending // view being fetched; nil: none
	Seen seenEdges
}

// bounds are what memory bounds.
type bounds struct {
	Memory  uint64 // of the views; 0: no bound
	most    int    // a group's halo rows; 0: no bound
	sampled bool   // messages can be reweighted for those of a halo that are left out
}

// lent is what the groups of a node compute with and other nodes hold, fetched once.
type lent struct {
	Lacking *vicinity.Edges // of base shards
	vault   *vicinity.Vault // of Lacking
	known   known           // labels in base shards
}

func newGrappa(t *train.Trainer) (*Method, error) {
	settings := Of(&t.Recipe.Sharing)
	n := &Method{Batched: batched.New(t), settings: &settings}
	n.Sources, n.Weights = n, n
	n.Regions = func() *link.Regions { return n.Now.pairs }
	if settings.Average > 1 && !t.Session.Alone() {
		schedule, err := NewSchedule(len(t.Data.Shards), n.settings, t.Recipe.Seed)
		if err != nil {
			return nil, err
		}
		n.Updates = batched.NewHomes(n.Batched, settings.Average, without(&t.Session.Layout, schedule))
	}
	return n, nil
}

// Open implements Method: it plans what the groups of this node see, and fetches the
// edges. The rows follow when it is known how many fit in memory.
func (n *Method) Open(ctx context.Context) (err error) {
	t := n.Run
	settings := n.settings
	n.Memory, n.most = viewRoom(t), t.Learners[0].At.Halo
	sampled := *settings
	sampled.Loader = HaloSampled
	n.sampled = CheckModel(&sampled, t.Recipe.Model) == nil
	for i, s := range t.Data.Shards {
		n.edges = append(n.edges, uint64(len(s.Indices)))
		if !t.Session.Alone() && t.Session.Replica.Summaries[i] != nil {
			n.edges[i] = uint64(t.Session.Replica.Summaries[i].Edges)
		}
	}
	self, dealer := t.Session.Work.Self, t.Sharing.Dealer
	n.layout = t.Session.Layout
	if !t.Session.Alone() {
		n.source = t.Sharing.Served[Name].(*vicinity.Source)
	} else {
		n.source = vicinity.Alone(t.Data.Shards, t.Data.Features, n.layout)
		if dealer, err = Deal(n.layout, t.Recipe.Sharing); err != nil {
			return fmt.Errorf("share the steps by %s: %w", Name, err)
		}
	}
	if n.Schedule, err = NewSchedule(len(t.Data.Shards), settings, t.Recipe.Seed); err != nil {
		return err
	}
	for g := range n.Schedule.Groups() {
		if NodeOf(&n.layout, n.Schedule, g) == self {
			n.mine = append(n.mine, g)
		}
	}
	n.vault = vicinity.NewVault(t.Options.Dir)
	n.corrector = NewCorrector(settings, n.Schedule)
	n.SetUp(dealer)
	phases := settings.Phases
	if !n.mayPhase() {
		phases = 1
	}
	if err := n.usePhases(phases); err != nil {
		return err
	}
	if t.Data.Links != nil {
		if err := n.pairing.begin(n.Schedule, &n.layout, t.Data.Links.Of[graph.Train], n.supers()); err != nil {
			return err
		}
	}
	if !t.Session.Alone() && t.Data.Links == nil {
		if n.known, err = n.bringLabels(ctx); err != nil {
			return err
		}
		n.Labels = n.labels
	}
	t.Notes = append(t.Notes, n.notes()...)
	view, err := n.plan(ctx, n.super())
	if err != nil {
		n.drop(view)
		return fmt.Errorf("bring what the groups of this node see: %w", err)
	}
	n.Use(view)
	return nil
}

// super returns the super-epoch of the next epoch.
func (n *Method) super() int {
	t := n.Run
	switch {
	case !n.turns():
		return 0
	case n.settings.Switch == onPlateau:
		return t.Learners[0].At.Super // the only learner
	}
	return (min(t.Place().Epoch, n.Run.Recipe.Epochs) - 1) / n.settings.Period
}

// supers returns how many super-epochs the job has; of those that plateaus end, a sweep.
func (n *Method) supers() int {
	switch {
	case !n.turns():
		return 1
	case n.settings.Switch == onPlateau:
		return n.Schedule.Slots()
	}
	return (n.Run.Recipe.Epochs + n.settings.Period - 1) / n.settings.Period
}

// notes returns what users should know of how groups are dealt, and of what they will
// not see.
func (n *Method) notes() (all []string) {
	t := n.Run
	groups := n.Schedule.Groups()
	if idle := without(&n.layout, n.Schedule); len(idle) > 0 && !t.Session.Alone() {
		var names []string
		for _, node := range idle {
			names = append(names, t.Session.Name(node))
		}
		all = append(all, fmt.Sprintf("grappa has %s, and nodes run whole ones: %s %s, and only %s to compare epochs: choose {grappa.groups}=%d or more, where the dataset has that many shards", recipe.Count(groups, "group"), nodesOf(names), verb(len(names), "trains nothing", "train nothing"), verb(len(names), "helps", "help"), n.moreGroups()))
	}
	all = append(all, n.pairing.notes()...)
	if empty := n.empty(); len(empty) > 0 {
		all = append(all, fmt.Sprintf("%s no training vertices, and only %s others with what they see: %s", groupsOf(empty), verb(len(empty), "serves", "serve"), "import the dataset with fewer shards, or choose fewer grappa.groups"))
	}
	if g := n.settings; g.hop() > 0 && g.Hops != allHops && g.Correction != CorrectReleased && g.Correction != CorrectNone {
		all = append(all, fmt.Sprintf("grappa.correction=%s changes nothing: with a halo groups see all neighbours of their vertices, or some that stand for them: choose {grappa.loader}=%s, or leave it out", g.Correction, Strict))
	}
	if !n.turns() {
		return all
	}
	period := n.settings.Period
	if n.settings.Switch == onPlateau {
		return append(all, fmt.Sprintf("groups turn to other shards when %s have brought nothing better: if that never comes, they see of other groups what they see now", recipe.Count(period, "epoch")))
	}
	supers := n.supers()
	if pairs := len(n.Schedule.Unseen(supers)); pairs > 0 {
		all = append(all, fmt.Sprintf("the job has %s, of %s each, and a whole sweep has %d: %d of %d pairs of a group and a shard of others never meet: take more {epochs}, or a smaller {grappa.period}", recipe.Count(supers, "super-epoch"), recipe.Count(period, "epoch"), n.Schedule.Slots(), pairs, n.pairs()))
	}
	return all
}

// moreGroups returns the number of groups that gives each node one: one per node where
// shards are spread evenly, else one per shard.
func (n *Method) moreGroups() int {
	if n.Schedule.Groups() < n.layout.Nodes {
		return n.layout.Nodes
	}
	return len(n.Run.Data.Shards)
}

// pairs counts the pairs of a group and a shard that is not its own.
func (n *Method) pairs() (pairs int) {
	for g := range n.Schedule.Groups() {
		first, end := n.Schedule.Base(g)
		pairs += len(n.Run.Data.Shards) - (end - first)
	}
	return pairs
}

// empty returns the groups without training vertices.
func (n *Method) empty() (groups []int) {
	if n.between != nil {
		return nil // training pairs are noted by themselves
	}
	roots := make([]int, n.Schedule.Groups())
	for _, v := range n.Run.Data.Training {
		roots[n.Schedule.Of(n.layout.Shard(v))]++
	}
	for g, count := range roots {
		if count == 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

func verb(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

func nodesOf(names []string) string {
	return verb(len(names), "node ", "nodes ") + strings.Join(names, ", ")
}

func groupsOf(groups []int) string {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(groups), " ", ", "), "[]")
	return verb(len(groups), "group "+text+" has", "groups "+text+" have")
}

// Close implements Method: it ends what is under way.
func (n *Method) Close() {
	n.end()
	_ = n.join()
	if n.spare != nil {
		n.spare.Rows.Close()
	}
	n.Batched.Close()
	n.drop(n.Now)
	if err := n.vault.Close(); err != nil {
		n.Run.Log.Warn("could not give up what groups have seen", "err", err)
	}
}

// Needs implements Method.
func (n *Method) Needs(need *train.Needs) {
	need.Add(budget.Graph, n.Forecast())
	if n.runs > 1 {
		need.Add(budget.Slots, need.Of(budget.Slots)/uint64(max(1, n.Run.Batches.Depth))) // the next phase
	}
}

// BeginSteps implements Method.
func (n *Method) BeginSteps(int, int) {
	t := n.Run
	n.guard(true)
	if t.Session.Alone() {
		return
	}
	came := n.brought()
	t.Lead().At.Under.Sent.Add(came)
	if came.Bytes[peer.Shard] >= muchCame {
		runtime.GC() // pools keep what they hold over one collection
		debug.FreeOSMemory()
	}
}

// muchCame is how many bytes leave so much behind, in answers and in questions of others,
// that it is given back to the system before steps begin.
const muchCame = 8 << 20

// EndSteps implements Method: the way opens once no worker prepares a step any more.
func (n *Method) EndSteps() {
	if n.Run.Batches != nil {
		n.Run.Batches.End()
	}
	_ = n.join() // a step has failed, if any
	n.guard(false)
}

// Mine implements Method.
func (n *Method) Mine(_ *train.Learner, h *train.Share) { h.Seen = n.Seen.edges }

// Use makes a view the one that is trained in.
func (n *Method) Use(s *View) {
	if n.Now != s {
		n.drop(n.Now)
	}
	n.Now = s
	n.Seen.add(n, s)
}

// Of returns the context of a group's roots. All roots of a dealt group are of one.
func (n *Method) Of(roots []uint32) *Context {
	return n.Now.contexts[n.Schedule.Of(n.layout.Shard(roots[0]))]
}

// A guard restricts the connection to the other nodes of a run whose groups train in
// isolation. During steps it carries only gradients, the nodes' messages, and the
// shards that are fetched for later.
type guard struct {
	peer.Peers
	closed atomic.Bool
}

// Ask implements peer.Peers.
func (g *guard) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	if g.closed.Load() {
		switch q.Kind {
		case peer.Gradient, peer.Control, peer.Shard:
		default:
			return nil, fmt.Errorf("%w: groups train in isolation, and %s bytes were asked for in an epoch", peer.ErrRefused, q.Kind)
		}
	}
	return g.Peers.Ask(ctx, node, q, buf)
}

// guard closes the connection to other nodes while steps are under way, or opens it.
func (n *Method) guard(closed bool) {
	if g, shared := n.Run.Session.Peers.(*guard); shared {
		g.closed.Store(closed)
	}
}

// Weigh implements batched.weights: it sets those of the losses of a group's roots.
func (n *Method) Weigh(s *slot.Slot, g *slot.Group) {
	g.Weights, g.Weight = nil, float64(len(g.Roots))
	if len(g.Roots) == 0 {
		return
	}
	w := n.corrector.Weigh(g.Weighed[:0], n.Of(g.Roots), s.Roots, g.Roots, g.Batch.Blocks)
	g.Weight = Sum(w, len(g.Roots))
	if w != nil {
		g.Weighed, g.Weights = w, w
	}
}

// Topology implements batched.sources.
func (n *Method) Topology(roots []uint32) *sample.Topology { return n.Of(roots).Topology }

// Count implements batched.sources: no row is requested in a step.
func (*Method) Count(*slot.Outline) error { return nil }

// Find implements batched.sources: all rows of a slot are local. Others have not been
// given to the group and are never requested.
func (n *Method) Find(_ context.Context, s *slot.Slot, _ int) ([][]uint32, *features.Far, error) {
	r := &s.Far
	if n.Now.rows != nil {
		r.Far.Kept = &n.Now.rows.Far
	} else {
		r.Far.Kept = nil
	}
	for len(r.Places) < len(s.Sets) {
		r.Places = append(r.Places, nil)
	}
	r.Places = r.Places[:len(s.Sets)]
	for i, set := range s.Sets {
		r.Places[i] = r.Places[i][:0]
		if len(set) == 0 {
			continue
		}
		c := n.Of(s.Groups[i].Roots)
		for _, v := range set {
			place, ok := v, c.Has(v)
			if ok && !n.source.Reads(v) {
				place, ok = n.Now.rows.Place(v)
			}
			if !ok {
				return nil, nil, fmt.Errorf("group %d trains in isolation and would read vertex %d, which it has not been given", c.Group, v)
			}
			r.Places[i] = append(r.Places[i], place)
		}
		s.Gathered += len(set)
	}
	return r.Places, &r.Far, nil
}

// weightUnit is one over the unit of the weights that nodes exchange: whole units add
// up to the same in any order.
const weightUnit = 1 << 24

// Units implements batched.weights, in whole units.
func (*Method) Units(s *slot.Slot) (units uint64) {
	for i := range s.Groups {
		units += uint64(s.Groups[i].Weight*weightUnit + 0.5)
	}
	return units
}

// Scale implements batched.weights: the weights of losses are relative.
func (n *Method) Scale(l *train.Learner, s *slot.Slot, units uint64) {
	by := n.corrector.Scale(len(s.Roots), float64(units)/weightUnit)
	if by != 1 {
		l.Run.Device.Combine(l.Gradients, by, l.Gradients, 0, tensor.Matrix{})
	}
}

// Bytes implements batched.sources.
func (n *Method) Bytes(o *slot.Outline) (bytes uint64) {
	for _, set := range o.Sets {
		bytes += 4 * uint64(len(set))
	}
	return bytes
}

// Evaluated implements Method.
func (n *Method) Evaluated(l *train.Learner) { Plateau(&l.At, n.settings) }

// Plateau ends a super-epoch after an epoch, if the settings end it when validation has
// not improved for so many epochs. Only an epoch that was evaluated and was no better
// can end one.
func Plateau(s *trained.State, g *Settings) {
	if g.Switch != onPlateau || !g.sweeps() || s.Best == nil || s.Last.Eval == nil {
		return
	}
	// The best is this epoch itself where that was better.
	if s.Last.Epoch-max(s.Turned, s.Best.Epoch) >= g.Period {
		s.Super, s.Turned = s.Super+1, s.Last.Epoch
	}
}

// BeginEpoch implements Method: it switches to the view of the super-epoch. All nodes
// wait for the last one: no step can begin before all have their views.
func (n *Method) BeginEpoch(ctx context.Context, epoch int) error {
	t := n.Run
	if err := n.Next.tooLarge(); err != nil {
		return fmt.Errorf("bring what the groups of this node will see after epoch %d: %w", epoch, err)
	}
	if super := n.super(); n.Now.Super != super {
		start := time.Now()
		view, err := n.Take(ctx, super)
		if err != nil {
			if ctx.Err() != nil {
				return t.Stopped(ctx)
			}
			return fmt.Errorf("bring what the groups of this node see from epoch %d on: %w", epoch, err)
		}
		n.Use(view)
		under := &t.Lead().At.Under
		under.Phases.Wait += time.Since(start).Seconds()
		if t.Batches.Same {
			// The batch of all epochs was made from the view before.
			if err := t.Batches.Fill(ctx, epoch); err != nil {
				return fmt.Errorf("epoch %d: %w", epoch, err)
			}
		}
	}
	if next, ok := n.after(n.Now.Super); ok && n.settings.Prefetch && (n.Next == nil || n.Next.super != next) {
		n.Ahead(ctx, next)
	}
	return nil
}
