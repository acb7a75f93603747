package grappa

import (
	"errors"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/cputime"
	"github.com/hopmesh/hopmesh/engine/forecast"
	draws "github.com/hopmesh/hopmesh/engine/frontier"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/vicinity"
)

// volume returns what a step sends: gradients, or what is averaged every few steps.
func volume(s *forecast.Step) (v forecast.Volume) {
	if s.Nodes == 1 {
		return v
	}
	settings := Of(s.Settings)
	columns := s.Model.Size()
	if settings.Average > 1 {
		columns = 0
		if s.Last || (s.Index+1)%settings.Average == 0 {
			columns = (1 + s.Moments) * s.Model.Size()
		}
	}
	v.AddSum(s, columns, s.Sums())
	v.AddLearnt(s)
	return v
}

// An outlook is what groups would see on nodes that need not be there. Of a graph that is
// here it builds contexts; of another it knows how many edges may reach a shard.
type outlook struct {
	*forecast.Isolation
	settings Settings
	schedule *Schedule
	nodes    []int // of each group
	super    int   // of the epoch that is counted

	node     int              // whose contexts are kept
	contexts map[int]*Context // by group, in super
	made     float64          // seconds of processor time that a view of a node took to make, on average
}

// newOutlook returns what groups would see of a job.
func newOutlook(i *forecast.Isolation) (forecast.Sight, error) {
	o := &outlook{Isolation: i, settings: Of(i.Settings), node: -1}
	var err error
	if o.schedule, err = NewSchedule(len(i.Layout.Owners), &o.settings, i.Seed); err != nil {
		return nil, err
	}
	if i.Graph.MadeUp() && o.settings.hop() > 1 {
		return nil, errors.New("{grappa.depth}: of a graph that is only known by its shape one hop of halo can be forecast: leave it out, or name a dataset")
	}
	for g := range o.schedule.Groups() {
		o.nodes = append(o.nodes, NodeOf(i.Layout, o.schedule, g))
	}
	if o.turns() {
		o.super = (i.Epoch - 1) / o.settings.Period
	}
	return o, nil
}

// shards reports which shards some groups have.
func (o *outlook) shards(groups []int, super int) []bool {
	has := make([]bool, len(o.Layout.Owners))
	for _, g := range groups {
		for _, shard := range o.schedule.has(g, super) {
			has[shard] = true
		}
	}
	return has
}

// mine returns the groups of a node.
func (o *outlook) mine(node int) (groups []int) {
	for g, n := range o.nodes {
		if n == node {
			groups = append(groups, g)
		}
	}
	return groups
}

// Within implements forecast.Sight.
func (o *outlook) Within(s *sample.Sampler, roots []uint32) error {
	g := o.schedule.Of(o.Layout.Shard(roots[0]))
	if o.Graph.MadeUp() {
		has := o.shards([]int{g}, o.super)
		inner := func(v uint32) bool { return has[o.Layout.Shard(v)] }
		if o.settings.hop() == 0 {
			o.Graph.Confine(inner, inner)
		} else {
			o.Graph.Confine(inner, nil)
		}
		return nil
	}
	if o.node != o.nodes[g] {
		o.node, o.contexts = o.nodes[g], map[int]*Context{}
	}
	if o.contexts[g] == nil {
		c, err := o.context(g, o.super, nil)
		if err != nil {
			return err
		}
		o.contexts[g] = c
	}
	s.Within(o.contexts[g].Topology)
	return nil
}

// Brought implements forecast.Sight.
func (o *outlook) Brought() (b forecast.Brought, err error) {
	if o.turns() && o.settings.Switch == afterPeriod {
		b.Period, b.Waits = o.settings.Period, !o.settings.Prefetch
	}
	for node := range o.Layout.Nodes {
		groups := o.mine(node)
		if len(groups) == 0 {
			continue
		}
		bring := o.guess
		if !o.Graph.MadeUp() {
			bring = o.count
		}
		o.made = 0
		first, next, held, err := bring(node, groups)
		if err != nil {
			return b, err
		}
		b.Next.Made = max(b.Next.Made, o.made)
		for _, c := range []struct {
			to   *forecast.Came
			sent peer.Counts
		}{{&b.First, first}, {&b.Next, next}} {
			c.to.All.Add(c.sent)
			c.to.Busiest = max(c.to.Busiest, c.sent.Bytes[peer.Shard])
		}
		b.Held = max(b.Held, held)
	}
	if o.Layout.Nodes > 1 {
		// Files are written through memory: what comes, what is written of it, and answers to others.
		b.Held += min(Bringing*uint64(o.Layout.Nodes-1), 3*b.First.Busiest)
	}
	o.contexts = nil
	return b, nil
}

// A sighting is what a node has for its groups in a super-epoch.
type sighting struct {
	edges, rows *vicinity.Set // of other nodes: vertices whose edges, and whose features, it brings
	within      []vicinity.Range
	bytes       uint64  // of memory
	made        float64 // seconds of processor time that making it took
}

// count returns what a node brings for its first view and for the next, and the memory that
// views take.
func (o *outlook) count(node int, groups []int) (first, next peer.Counts, held uint64, err error) {
	vertices := o.Graph.Topology.Vertices()
	lacking := vicinity.NewSet(uint32(vertices))
	for _, g := range groups {
		from, end := o.schedule.Base(g)
		for shard := from; shard < end; shard++ {
			if !o.knows(node, shard) {
				lacking.AddRange(vicinity.Range{First: o.Layout.Firsts[shard], End: o.Layout.Firsts[shard+1]})
			}
		}
	}
	held = o.bringEdges(&first, lacking, nil, nil)
	var before *sighting
	most, supers := uint64(0), o.supers()
	for super := range supers {
		s, err := o.sight(node, groups, super, lacking)
		if err != nil {
			return first, next, held, err
		}
		to := &first
		if super > 0 {
			to = &next
		}
		var edges, rows *vicinity.Set
		if before != nil {
			rows = before.rows
			if slices.Equal(before.within, s.within) {
				edges = before.edges
			}
		}
		s.bytes += o.bringEdges(to, s.edges, edges, s.within) + o.bringRows(to, s.rows, rows) + o.bringDegrees(to, s.rows)
		most, before = max(most, s.bytes), s
		o.made += s.made / float64(supers)
	}
	if turns := uint64(supers - 1); turns > 1 {
		next.Bytes[peer.Shard], next.Requests[peer.Shard] = next.Bytes[peer.Shard]/turns, next.Requests[peer.Shard]/turns
	}
	return first, next, held + uint64(o.views())*most + uint64(len(groups)*vertices/8), nil
}

// supers returns how many super-epochs are looked at: the first, and some of those that
// follow in the job, since what they bring differs.
func (o *outlook) supers() int {
	const most = 5
	if !o.turns() {
		return 1
	}
	return max(o.views(), min(most, 1+(o.Epochs-1)/o.settings.Period))
}

// sight finds what a node sees in a super-epoch.
func (o *outlook) sight(node int, groups []int, super int, lacking *vicinity.Set) (s *sighting, err error) {
	vertices := uint32(o.Graph.Topology.Vertices())
	s = &sighting{edges: vicinity.NewSet(vertices), rows: vicinity.NewSet(vertices)}
	edges, rows, here := vicinity.NewSet(vertices), vicinity.NewSet(vertices), vicinity.NewSet(vertices)
	begun, vault := cputime.Process(), vicinity.NewVault(o.Dir)
	defer func() { err = errors.Join(err, vault.Close()) }()
	for _, g := range groups {
		c, err := o.context(g, super, vault)
		if err == nil {
			err = o.copied(vault, node, c.rows)
		}
		if err != nil {
			return nil, err
		}
		edges.AddAll(c.rows)
		rows.AddAll(c.has)
		s.bytes += c.Index()
	}
	s.made = cputime.Process() - begun
	for shard := range o.Layout.Owners {
		if o.Holds(node, shard) {
			here.AddRange(vicinity.Range{First: o.Layout.Firsts[shard], End: o.Layout.Firsts[shard+1]})
		}
	}
	for v := range rows.Without(here) {
		s.rows.Add(v)
	}
	here.AddAll(lacking)
	for v := range edges.Without(here) {
		if !o.knows(node, o.Layout.Shard(v)) {
			s.edges.Add(v)
		}
	}
	if o.settings.hop() == 0 {
		s.within = vicinity.RangesOf(o.Layout.Firsts, o.shards(groups, super))
	}
	return s, nil
}

// bringEdges adds the questions for the edges of some vertices, but for those that are
// there, and returns the memory of all.
func (o *outlook) bringEdges(to *peer.Counts, vertices, there *vicinity.Set, within []vicinity.Range) (bytes uint64) {
	runs, last := make([]int, o.Layout.Nodes), make([]uint32, o.Layout.Nodes)
	rows, sent := 0, 0
	entry := vicinity.EntryBytes
	if o.Graph.Weighted || o.Related {
		entry *= 2
	}
	for v := range vertices.All() {
		sources, _ := o.Graph.Topology.Row(int(v))
		n := len(sources)
		if within != nil {
			n = vicinity.Wanted(v, sources, within)
		}
		rows++
		if there != nil && there.Has(v) {
			continue
		}
		sent += vicinity.RowBytes + entry*n
		owner := o.Layout.Owner(v)
		if runs[owner] == 0 || last[owner]+1 != v {
			runs[owner]++
		}
		last[owner] = v
	}
	for _, n := range runs {
		if n > 0 {
			sent += peer.QueryFraming + peer.AnswerFraming + 4 + vicinity.RunBytes*(len(within)+n) + vicinity.HeadBytes
			to.Requests[peer.Shard]++
		}
	}
	to.Bytes[peer.Shard] += uint64(sent)
	if rows > 0 {
		bytes = o.index()
	}
	return bytes
}

// bringRows adds the questions for features of some vertices, but for those that are there,
// and returns the memory of all.
func (o *outlook) bringRows(to *peer.Counts, vertices, there *vicinity.Set) uint64 {
	asked, rows := make([]int, o.Layout.Nodes), 0
	for v := range vertices.All() {
		rows++
		if there == nil || !there.Has(v) {
			asked[o.Layout.Owner(v)]++
		}
	}
	for _, n := range asked {
		o.askRows(to, float64(n))
	}
	return o.rowsHeld(float64(rows))
}

// askRows adds the questions to one node for so many rows of features.
func (o *outlook) askRows(to *peer.Counts, n float64) {
	if n < 1 || o.Learnt {
		return
	}
	requests := gather.Questions(int(n), o.Row)
	to.Requests[peer.Shard] += uint64(requests)
	to.Bytes[peer.Shard] += uint64(requests*(peer.QueryFraming+peer.AnswerFraming)) + uint64(n*(4+o.Row))
}

// index is the memory in which a view finds vertices.
func (o *outlook) index() uint64 { return o.Graph.About.Vertices/8 + o.Graph.About.Vertices/16 }

// bringDegrees adds the questions for the degrees of the vertices of other nodes that a view
// sees, where blocks are normalised by them, and returns their memory. Each view asks for all.
func (o *outlook) bringDegrees(to *peer.Counts, vertices *vicinity.Set) uint64 {
	if !o.Rooted || o.Graph.Pairs() != nil {
		return 0
	}
	asked, rows := make([]int, o.Layout.Nodes), 0
	for v := range vertices.All() {
		rows++
		asked[o.Layout.Owner(v)]++
	}
	for _, n := range asked {
		o.askDegrees(to, float64(n))
	}
	if rows == 0 {
		return 0
	}
	return uint64(degreeBytes*rows) + o.index()
}

// askDegrees adds the question to one node for so many degrees.
func (o *outlook) askDegrees(to *peer.Counts, n float64) {
	if o.Rooted && n >= 1 {
		to.Requests[peer.Shard]++
		to.Bytes[peer.Shard] += uint64(draws.InverseBytes(int(n)))
	}
}

// rowsHeld returns the memory of so many rows of other nodes.
func (o *outlook) rowsHeld(n float64) uint64 {
	if n < 1 {
		return 0
	}
	if !o.Graph.Sparse { // it lies in a file
		return o.index()
	}
	return uint64(n*(8*o.Graph.Entries+16)) + o.index()
}

// guess is count for a graph that is only known by its shape. A vertex is in a halo where
// some edge into the groups' shards begins there, and such edges are as many as chance
// has them.
func (o *outlook) guess(node int, groups []int) (first, next peer.Counts, held uint64, err error) {
	var views [2]struct {
		has  []bool
		into []forecast.Span
	}
	for super := range views[:o.views()] {
		w := &views[super]
		w.has = o.shards(groups, super)
		for _, r := range vicinity.RangesOf(o.Layout.Firsts, w.has) {
			w.into = append(w.into, forecast.Span(r))
		}
	}
	most := uint64(0)
	for super := range o.views() {
		now, before, to := &views[super], &views[0], &first
		if super > 0 {
			to = &next
		}
		var newEdges, runs, rows, newRows []float64
		for range o.Layout.Nodes {
			newEdges, runs, rows, newRows = append(newEdges, 0), append(runs, 0), append(rows, 0), append(newRows, 0)
		}
		seen := 1.0 // of the edges of a row
		if o.settings.hop() == 0 {
			seen = o.inside(now.has)
		}
		halo := 0.0
		for shard, owner := range o.Layout.Owners {
			of := forecast.Span{First: o.Layout.Firsts[shard], End: o.Layout.Firsts[shard+1]}
			n, here := float64(of.End-of.First), o.Holds(node, shard)
			fresh := 1.0 // the share of vertices that were not there before
			if super > 0 {
				switch {
				case before.has[shard]:
					fresh = 0
				case o.settings.hop() > 0:
					fresh = math.Exp(-o.Graph.Reached(before.into, of))
				}
			}
			switch {
			case now.has[shard] && !here:
				if super == 0 || !before.has[shard] || o.settings.hop() == 0 {
					newEdges[owner], runs[owner] = newEdges[owner]+n, runs[owner]+1
				}
				rows[owner], newRows[owner] = rows[owner]+n, newRows[owner]+n*fresh
			case !now.has[shard] && o.settings.hop() > 0:
				reached := n * -math.Expm1(-o.Graph.Reached(now.into, of))
				halo += reached
				if here {
					continue
				}
				rows[owner] += reached
				if super == 0 {
					newRows[owner] += reached
				} else if !before.has[shard] {
					now, was := o.Graph.Reached(now.into, of), o.Graph.Reached(before.into, of)
					both := o.Graph.Reached(common(views[super].into, views[0].into), of)
					newRows[owner] += n * math.Exp(-was) * -math.Expm1(-max(0, now-both))
				}
			}
		}
		keep := o.kept(halo, now.has, len(groups))
		bytes := 0.0
		degree := o.Graph.Degree() * seen
		for owner := range runs {
			if newEdges[owner] > 0 {
				to.Requests[peer.Shard]++
				to.Bytes[peer.Shard] += uint64(peer.QueryFraming + peer.AnswerFraming + 4 + vicinity.RunBytes*runs[owner] + vicinity.HeadBytes + newEdges[owner]*(vicinity.RowBytes+vicinity.EntryBytes*degree))
			}
			o.askRows(to, newRows[owner]*keep)
			o.askDegrees(to, rows[owner]*keep)
			bytes += float64(o.rowsHeld(rows[owner] * keep))
			if o.Rooted {
				bytes += degreeBytes * rows[owner] * keep
			}
			if rows[owner]*keep >= 1 {
				bytes -= float64(o.index())
			}
		}
		if o.Rooted {
			bytes += float64(o.index())
		}
		bytes += 2*float64(o.index()) + float64(len(groups))*3*float64(o.Graph.About.Vertices)/8
		most = max(most, uint64(bytes))
	}
	return first, next, uint64(o.views())*most + uint64(len(groups))*o.Graph.About.Vertices/8, nil
}

// inside returns the share of the edges into some shards that begin there.
func (o *outlook) inside(has []bool) float64 {
	n := 0.0
	for shard, is := range has {
		if is {
			n += float64(o.Layout.Firsts[shard+1] - o.Layout.Firsts[shard])
		}
	}
	return forecast.Inside + (1-forecast.Inside)*n/float64(o.Graph.About.Vertices)
}

// kept returns the share of a halo that is kept.
func (o *outlook) kept(halo float64, has []bool, groups int) float64 {
	if o.settings.Loader != HaloSampled || halo == 0 {
		return 1
	}
	most := float64(o.settings.Cap * groups)
	if o.settings.Cap == 0 {
		for shard, is := range has {
			if is {
				most += float64(o.Layout.Firsts[shard+1] - o.Layout.Firsts[shard])
			}
		}
	}
	return min(1, most/halo)
}

// common returns the parts of some ascending runs that are in others, too.
func common(a, b []forecast.Span) (both []forecast.Span) {
	for _, x := range a {
		for _, y := range b {
			if first, end := max(x.First, y.First), min(x.End, y.End); first < end {
				both = append(both, forecast.Span{First: first, End: end})
			}
		}
	}
	return both
}
