package grappa

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/train"
)

// viewRoom returns how many bytes views may take, beside what is in use when the first
// is fetched.
func viewRoom(t *train.Trainer) uint64 {
	return budget.Left(t.Options.Memory, budget.Program+t.WeightBytes()+t.Data.Features.Bytes())
}

// Views returns how many views there are at once: the one that is trained in, and the
// next one.
func (n *Method) Views() uint64 {
	if n.turns() {
		return 2
	}
	return 1
}

// takes returns the memory of a view, with the rows that have yet to come.
func (n *Method) takes(s *View) uint64 {
	takes := s.Bytes() + uint64(len(s.far))*n.rowBytes()
	if len(s.far) > 0 {
		takes += n.bits()
	}
	return takes
}

// bits returns about the memory of a set of vertices.
func (n *Method) bits() uint64 {
	vertices := uint64(n.Run.Data.Topology.Vertices())
	return vertices/8 + vertices/64
}

// filed reports whether what groups see lies in files: edges, and dense rows.
func (n *Method) filed() bool { return n.Run.Options.Dir != "" }

// fits returns an error if views take more memory than there is. It is called before
// the rows of a view are fetched.
func (n *Method) fits(s *View) error {
	takes, far := n.Views()*n.takes(s), len(s.far)
	if n.Memory == 0 || takes <= n.Memory {
		return nil
	}
	halo, groups := 0, max(1, len(n.mine))
	for _, g := range n.mine {
		halo += s.contexts[g].HaloRows()
	}
	advice := []budget.Advice{"take fewer {grappa.swept}", "import the dataset with more shards", "use more nodes or nodes with more memory"}
	before := func(first budget.Advice) { advice = append([]budget.Advice{first}, advice...) }
	switch {
	case n.settings.hop() > 1:
		before("take a smaller {grappa.depth}")
	case halo > 0 && !n.sampled:
		before("take {grappa.loader=" + Strict + "}")
	case halo > 0 && n.rowBytes() > 0:
		left := n.Memory/n.Views() - min(n.Memory/n.Views(), s.Bytes())
		rest := uint64(max(0, far-halo)) * n.rowBytes()
		if most := (left - min(left, rest)) / n.rowBytes() / uint64(groups); most > 0 {
			before(budget.Advice(fmt.Sprintf("take {grappa.loader=%s} and {grappa.cap=%d}, so that fewer rows of the halo are kept", HaloSampled, most)))
		} else {
			before("take {grappa.loader=" + Strict + "}")
		}
	}
	return &tooLarge{&budget.Short{
		Cause: fmt.Sprintf("what the groups of this node see of other nodes' shards takes %s of memory, as it is and as it will be next, and there are %s for it", budget.Format(takes), budget.Format(n.Memory)),
		Needs: takes, Has: n.Memory, Advice: advice,
	}}
}

// rowBytes returns about the memory of a fetched row.
func (n *Method) rowBytes() uint64 {
	switch {
	case n.Run.Data.Features.Learnt():
		return 0 // none is fetched
	case n.Run.Data.Features.Sparse():
		return uint64(8*n.Run.Data.Entries) + 12
	case n.filed():
		return 0
	}
	return n.source.RowBytes()
}

// Bringing is what fetching takes for each node that is asked, beside what is kept: an answer to
// it, of up to 2 MiB, and half as much for what is collected later. Rows come 4 MiB at a time,
// from all nodes together.
const Bringing = 3 << 20

// Forecast returns the memory of all views at once. It takes them to be as large as the
// largest one to come, by the shards that pass through the groups and by the first
// view's share of seen edges and halo.
func (n *Method) Forecast() uint64 {
	first := n.Load(n.Now.Super)
	largest := uint64(0)
	for super := range n.Schedule.Slots() * min(1, len(n.mine)) {
		largest = max(largest, n.predict(n.Load(super), first))
	}
	return n.Views()*max(largest, n.takes(n.Now)) + n.Fixed()
}

// Fixed returns the memory that views take beside each other.
func (n *Method) Fixed() (bytes uint64) {
	bytes = n.Lacking.Index() + n.Seen.Bytes() + n.known.Bytes()
	if !n.filed() {
		return bytes + n.Lacking.Bytes()
	}
	if !n.Run.Session.Alone() {
		bytes += Bringing * uint64(n.layout.Nodes-1)
	}
	return bytes
}

// A load is the size of the shards that pass through a node's groups and are held by
// other nodes.
type load struct {
	vertices, edges uint64 // once, whatever groups they pass through, if they are no group's own
	copied, within  uint64 // vertices and edges, for each group
	rows, all       uint64 // all vertices that groups have, wherever they lie, and edges into them
}

// Load returns the load of a super-epoch.
func (n *Method) Load(super int) (l load) {
	once := map[int]bool{}
	for _, g := range n.mine {
		first, end := n.Schedule.Base(g)
		for shard := first; shard < end; shard++ {
			l.rows, l.all = l.rows+uint64(n.Run.Data.Shards[shard].Vertices), l.all+n.edges[shard]
		}
		for _, shard := range n.Schedule.Swept(g, super) {
			s := n.Run.Data.Shards[shard]
			l.rows, l.all = l.rows+uint64(s.Vertices), l.all+n.edges[shard]
			if s.Vertices == 0 || n.source.Has(s.First) {
				continue
			}
			edges := n.edges[shard]
			if s.Indptr != nil { // they have come with all others
				edges = 0
			}
			l.copied, l.within = l.copied+uint64(s.Vertices), l.within+edges
			if _, _, _, lacking := n.Lacking.Row(s.First); !once[shard] && !lacking {
				once[shard] = true
				l.vertices, l.edges = l.vertices+uint64(s.Vertices), l.edges+edges
			}
		}
	}
	return l
}

// elsewhere counts the vertices that other nodes hold.
func (n *Method) elsewhere() (vertices uint64) {
	for _, s := range n.Run.Data.Shards {
		if s.Vertices > 0 && !n.source.Has(s.First) {
			vertices += uint64(s.Vertices)
		}
	}
	return vertices
}

// Bytes of copied edges: the place and length of a row, and each edge.
const row, entry = 12, 4

// Bare returns the memory of a view of a load without any halo. Edges of all rows are
// copied, since the ones into a missing halo are left out.
func (n *Method) Bare(l load) uint64 {
	groups := uint64(len(n.mine))
	index := (2 + 3*groups) * n.bits() // of edges, of rows, and of contexts
	rows := (l.vertices + uint64(n.Lacking.Len())) * n.rowBytes()
	if n.filed() {
		return index + rows
	}
	edge := uint64(entry + 4) // with the weight of its message
	for _, s := range n.Run.Data.Shards {
		if s.Weights != nil || n.Run.Recipe.Model.Related() {
			edge = entry + 8
			break
		}
	}
	if n.Run.Recipe.Model.EdgeFeatures > 0 {
		edge += 8 // where its features are
	}
	return row*l.vertices + entry*l.edges + index + rows + row*l.rows + edge*l.all + groups*8*uint64(n.largest())
}

// largest returns how many vertices the largest shard has.
func (n *Method) largest() (vertices int) {
	for _, s := range n.Run.Data.Shards {
		vertices = max(vertices, s.Vertices)
	}
	return vertices
}

// predict estimates the memory of a view of a load, from the current view of another
// load.
func (n *Method) predict(l, first load) uint64 {
	s, index := n.Now, n.Now.index()
	if len(s.far) > 0 {
		index += n.bits()
	}
	seen := 1.0 // of the edges that are fetched
	if entries := 0; first.edges > 0 && n.settings.hop() == 0 {
		for _, e := range s.edges {
			entries += e.Entries()
		}
		seen = float64(entries) / float64(first.edges)
	}
	copied, far, cut := uint64(0), s.reads(), n.settings.Loader == HaloSampled
	for _, g := range n.mine {
		copied += s.contexts[g].Bytes()
		cut = cut || s.contexts[g].Share < 1
	}
	of := func(vertices, edges uint64) uint64 { return row*vertices + uint64(entry*seen*float64(edges)) }
	lacking := uint64(n.Lacking.Len())
	beyond := far - min(far, first.vertices+lacking)
	if !cut {
		// Assume the same share of what is held elsewhere, and more where more edges
		// come from there.
		left := func(l load) float64 { return float64(max(1, n.elsewhere()-min(n.elsewhere(), l.vertices+lacking))) }
		share := float64(beyond) / left(first) * float64(l.all) / float64(max(1, first.all))
		beyond = uint64(min(1, share) * left(l))
	}
	if n.most > 0 {
		beyond = min(beyond, uint64(n.most*len(n.mine)))
	}
	rows := (l.vertices + lacking + beyond) * n.rowBytes()
	if n.filed() {
		return index + rows
	}
	base := copied - min(copied, of(first.copied, first.within))
	return index + of(l.vertices, l.edges) + rows + base + of(l.copied, l.within)
}

// roomForHalo tags the message in which nodes exchange how many halo rows their groups
// have room for. It is the last before the one on the memory of steps.
var roomForHalo = exchange.Tag{Lane: exchange.LaneMessages, Step: 1<<20 - 1}

// A haloRoom is the content of that message.
type haloRoom struct {
	Most       uint32 // rows of each group; 0: none, unboundedHalo: as many as there are
	Kept       uint32 // the job's bound until now on this node; 0: none
	Needs, Has uint64 // what the run needs without any halo, and what there is
}

const unboundedHalo = math.MaxUint32

// Fit implements Method: it fetches the rows of the view, as many as all nodes have
// memory for. What a group sees must not depend on which node runs it, so the node with
// the least memory decides for all.
func (n *Method) Fit(ctx context.Context, need *train.Needs) (again bool, err error) {
	if err := n.fitRows(ctx, need); err != nil {
		return false, err
	}
	return false, n.fitPhases(ctx, need)
}

func (n *Method) fitRows(ctx context.Context, need *train.Needs) error {
	t := n.Run
	cut, err := n.boundHalo(ctx, need)
	if err != nil {
		return err
	}
	if cut {
		view, err := n.plan(ctx, n.Now.Super, n.Now)
		if err != nil {
			n.drop(view)
			return fmt.Errorf("leave rows of the halo out: %w", err)
		}
		view.Sent.Add(n.Now.Sent.Take())
		n.Seen = seenEdges{}
		n.Use(view)
		if *need, err = t.Forecast(ctx); err != nil {
			return err
		}
	}
	if len(n.Now.far) == 0 {
		return nil
	}
	if err := n.bringRows(ctx, n.Now); err != nil {
		return fmt.Errorf("bring what the groups of this node see: %w", err)
	}
	return nil
}

// boundHalo agrees with the other nodes on the halo rows of a group, and reports
// whether a group of this node now has more. A job keeps its bound for as long as it
// fits, whichever nodes go on with it. There is no bound in jobs that promise the same
// bits on any nodes, nor for models whose messages can't be reweighted.
func (n *Method) boundHalo(ctx context.Context, need *train.Needs) (cut bool, err error) {
	t := n.Run
	if t.Session.Alone() || n.settings.hop() != 1 || t.Recipe.Sharing.Deterministic || !n.sampled {
		return false, nil
	}
	mine := haloRoom{Most: unboundedHalo}
	if t.Options.Memory > 0 {
		mine = n.haloRoom(t.Options.Memory, need.OnHost()-n.Forecast())
	}
	mine.Kept = uint32(min(n.most, math.MaxInt32))
	message, err := binary.Append(nil, binary.LittleEndian, &mine)
	if err != nil {
		return false, fmt.Errorf("encode how much of the halo there is room for: %w", err)
	}
	s := t.Session
	messages, err := s.Exchange.Gather(ctx, roomForHalo, message, &s.Start)
	if err != nil {
		return false, fmt.Errorf("hear how much of the halo the other nodes have room for: %w", err)
	}
	least, kept, tightest := uint32(unboundedHalo), uint32(unboundedHalo), 0
	for node, m := range messages {
		var of haloRoom
		if size, err := binary.Decode(m, binary.LittleEndian, &of); err != nil || size != len(m) {
			return false, fmt.Errorf("node %s sent a malformed report of its room for the halo (%d bytes)", s.Name(node), len(m))
		}
		if of.Most == 0 {
			return false, &session.Agreed{Err: &budget.Short{
				Cause: fmt.Sprintf("on node %s, the training needs %s of memory even if its groups see next to nothing of the halo, and has %s", s.Name(node), budget.Format(of.Needs), budget.Format(of.Has)),
				Needs: of.Needs, Has: of.Has, Advice: slices.Concat([]budget.Advice{"take fewer {grappa.swept}"}, t.Smaller(), []budget.Advice{budget.AllowMore, "use more nodes"}),
			}}
		}
		if of.Most < least {
			least, tightest = of.Most, node
		}
		if of.Kept > 0 {
			kept = min(kept, of.Kept)
		}
	}
	// Checkpoints of one place may be of attempts with and without a bound.
	if n.most = 0; kept < unboundedHalo {
		n.most = int(min(kept, math.MaxInt32))
	}
	switch {
	case least < unboundedHalo && (n.most == 0 || uint64(least) < uint64(n.most)):
		n.most = int(min(least, math.MaxInt32))
		t.Notes = append(t.Notes, fmt.Sprintf("groups keep %d rows of their halo at most, since {agent.memory} on node %s leaves no room for more, and those count for the rest, as with {grappa.loader}=halo-sampled: allow more, or use more nodes, before the job begins", n.most, s.Name(tightest)))
	case n.most > 0:
		t.Notes = append(t.Notes, fmt.Sprintf("groups keep %d rows of their halo at most, as since the job began", n.most))
	}
	for _, l := range t.Learners {
		l.At.Halo = n.most
	}
	for _, g := range n.mine {
		cut = cut || n.most > 0 && n.Now.contexts[g].HaloRows() > n.most
	}
	return cut, nil
}

// haloRoom returns how many halo rows each group of this node has room for, in a memory
// of which taken is used by other things than views. It counts on the largest load of
// the schedule, which is known in advance, unlike the largest halo.
func (n *Method) haloRoom(memory, taken uint64) (r haloRoom) {
	room := memory - min(memory, taken)
	if n.Forecast() <= room {
		return haloRoom{Most: unboundedHalo}
	}
	largest := uint64(0)
	for super := range n.Schedule.Slots() {
		largest = max(largest, n.Bare(n.Load(super)))
	}
	bare := n.Views()*largest + n.Fixed()
	r.Needs, r.Has = bare+taken, memory
	switch each := n.Views() * n.rowBytes() * uint64(max(1, len(n.mine))); {
	case each == 0: // rows are in files: what else is too large may give way
		r.Most = unboundedHalo
	case bare >= room:
	default:
		if r.Most = uint32(min((room-bare)/each, math.MaxInt32)); r.Most == 0 {
			r.Needs += each
		}
	}
	return r
}
