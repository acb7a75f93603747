package train

import (
	"context"
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// isolated is a run by grappa: groups draw from what they have been given to see, and in
// a step nothing travels but gradients. What they see changes between epochs, and what
// they see next is brought while they train.
type isolated struct {
	schedule *grappa.Schedule
	settings *strategy.GrappaSettings
	dealer   strategy.Dealer
	layout   strategy.Layout
	data     *data
	seed     uint64
	epochs   int // of the run
	source   *vicinity.Source
	mine     []int    // groups of this node
	edges    []uint64 // of each shard
	memory   uint64   // that scenes may take; 0: no bound

	corrector *grappa.Corrector

	// lacking are the edges of base shards that this node computes with and others hold:
	// they are brought once.
	lacking *vicinity.Edges
	now     *scene
	next    *coming // what is being brought; nil: nothing
	seen    seen
}

// openIsolated brings what the groups of this node see, where grappa trains.
func (t *trainer) openIsolated(ctx context.Context) (err error) {
	if t.recipe.Sharing.Strategy != strategy.Grappa {
		return nil
	}
	settings := &t.recipe.Sharing.Grappa
	n := &isolated{settings: settings, data: t.data, seed: t.recipe.Seed, epochs: t.recipe.Epochs, memory: t.sceneRoom()}
	for i, s := range t.data.shards {
		n.edges = append(n.edges, uint64(len(s.Indices)))
		if t.shared != nil && t.shared.replica.Summaries[i] != nil {
			n.edges[i] = uint64(t.shared.replica.Summaries[i].Edges)
		}
	}
	self := 0
	if s := t.shared; s != nil {
		n.layout, n.dealer, n.source, self = s.layout, s.dealer, s.vicinity, s.work.Self
	} else {
		n.layout = newAlone(t.data, false).layout
		n.source = vicinity.Alone(t.data.shards, t.data.features, n.layout)
		if n.dealer, err = (grappa.Strategy{}).New(n.layout, t.recipe.Sharing); err != nil {
			return fmt.Errorf("share the steps by %s: %w", strategy.Grappa, err)
		}
	}
	if n.schedule, err = grappa.NewSchedule(len(t.data.shards), settings, t.recipe.Seed); err != nil {
		return err
	}
	for g := range n.schedule.Groups() {
		if grappa.NodeOf(&n.layout, n.schedule, g) == self {
			n.mine = append(n.mine, g)
		}
	}
	n.corrector = grappa.NewCorrector(settings, n.schedule)
	t.isolated = n
	t.notes = append(t.notes, n.notes(t)...)
	scene, err := n.bring(ctx, n.super(t), nil)
	if err != nil {
		return fmt.Errorf("bring what the groups of this node see: %w", err)
	}
	n.enter(scene)
	return nil
}

// super is the super-epoch of the epoch that is trained next.
func (n *isolated) super(t *trainer) int {
	switch {
	case !n.turns():
		return 0
	case n.settings.OnPlateau():
		return t.learners[0].at.Super // there are no others
	}
	return (min(t.place().epoch, n.epochs) - 1) / n.settings.Epochs()
}

// notes are what users should know of how the groups are dealt, and of what they will
// not see.
func (n *isolated) notes(t *trainer) (all []string) {
	groups := n.schedule.Groups()
	if idle := without(&n.layout, n.schedule); len(idle) > 0 && t.shared != nil {
		var names []string
		for _, node := range idle {
			names = append(names, t.shared.name(node))
		}
		all = append(all, fmt.Sprintf("grappa has %s, and nodes run whole ones: %s %s, and only %s to judge epochs: choose --set grappa.groups=%d or more, where the dataset has that many shards",
			count(groups, "group"), nodesOf(names), verb(len(names), "trains nothing", "train nothing"), verb(len(names), "helps", "help"), n.layout.Nodes))
	}
	if empty := n.empty(); len(empty) > 0 {
		all = append(all, fmt.Sprintf("%s no training vertices, and only %s others with what they see: %s", groupsOf(empty), verb(len(empty), "serves", "serve"), "import the dataset with fewer shards, or choose fewer grappa.groups"))
	}
	if g := n.settings; g.Hop() > 0 && !g.AllHops() && g.Corrects() != strategy.CorrectReleased && g.Corrects() != strategy.CorrectNone {
		all = append(all, fmt.Sprintf("grappa.correction=%s changes nothing: with a halo groups see all neighbours of their vertices, or some that stand for them: choose --set grappa.loader=%s, or leave it out", g.Corrects(), strategy.Strict))
	}
	if !n.turns() {
		return all
	}
	period := n.settings.Epochs()
	if n.settings.OnPlateau() {
		return append(all, fmt.Sprintf("groups turn to other shards when %s have brought nothing better: if that never comes, they see of other groups what they see now", count(period, "epoch")))
	}
	supers := (n.epochs + period - 1) / period
	if pairs := len(n.schedule.Unseen(supers)); pairs > 0 {
		all = append(all, fmt.Sprintf("%s of %s each are too few for a whole sweep, which has %d: %d of %d pairs of a group and a shard of others never meet: take more --epochs, or a smaller grappa.period",
			count(supers, "super-epoch"), count(period, "epoch"), n.schedule.Slots(), pairs, n.pairs()))
	}
	return all
}

// pairs counts groups with each shard of others.
func (n *isolated) pairs() (pairs int) {
	for g := range n.schedule.Groups() {
		first, end := n.schedule.Base(g)
		pairs += len(n.data.shards) - (end - first)
	}
	return pairs
}

// empty are the groups without training vertices.
func (n *isolated) empty() (groups []int) {
	roots := make([]int, n.schedule.Groups())
	for _, v := range n.data.training {
		roots[n.schedule.Of(n.layout.Shard(v))]++
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

// close ends what is under way.
func (n *isolated) close() {
	if n != nil {
		n.next.end()
	}
}

// enter makes a scene the one that is trained in.
func (n *isolated) enter(s *scene) {
	n.now = s
	n.seen.add(n, s)
}

// of is the context of a group's roots: those of a dealt group are all of one.
func (n *isolated) of(roots []uint32) *grappa.Context {
	return n.now.contexts[n.schedule.Of(n.layout.Shard(roots[0]))]
}
