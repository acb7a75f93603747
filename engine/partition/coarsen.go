package partition

import "math/bits"

// none stands for no vertex, cluster or part, where the type is wide enough.
const none = 1<<32 - 1

const (
	coarsenRounds = 24   // cluster updates within a sweep
	coarsenSweeps = 3    // times that each vertex may choose its cluster
	coarsenSample = 8192 // maximum number of a vertex's edges examined
	coarsenTwoHop = 8    // maximum degree of vertices that may share a cluster without an edge between them
)

// clusterer groups related vertices by label propagation: each vertex in turn joins the
// neighbouring cluster it is most strongly connected to, if that stays light enough.
// Matching in pairs would stall on graphs with hubs. The slices are scratch memory sized
// for the first and largest graph, and reused by each level.
type clusterer struct {
	crew    crew
	label   []uint32 // by vertex: its cluster, identified by its first vertex
	size    []uint32 // by cluster: vertices
	weight  []uint32 // by cluster: weights, as in Graph
	want    []uint32 // by vertex: the cluster it proposes to join
	admired []uint32 // by vertex: the cluster it is most strongly connected to, with room or not
	order   []uint32
	tallies []*tally
}

func newClusterer(c crew, vertices, constraints int) *clusterer {
	l := &clusterer{
		crew: c, label: make([]uint32, vertices), size: make([]uint32, vertices),
		weight: make([]uint32, vertices*constraints), want: make([]uint32, vertices),
		admired: make([]uint32, vertices), order: make([]uint32, vertices),
	}
	for range c.workers {
		l.tallies = append(l.tallies, newTally(vertices))
	}
	return l
}

// cluster fills label for g with clusters numbered from 0 in the order of their first
// vertices, and returns their number. limit is each constraint's maximum for one cluster.
func (l *clusterer) cluster(g *Graph, limit []int64, seed uint64) int {
	n := g.vertices()
	for v := range n {
		l.label[v], l.size[v], l.admired[v] = uint32(v), 1, none
	}
	copy(l.weight, g.Weights)
	l.sort(g)
	round := max(64, (n+coarsenRounds-1)/coarsenRounds)
	for sweep := range coarsenSweeps {
		for from := 0; from < n; from += round {
			if l.crew.ctx.Err() != nil {
				return n
			}
			vertices := l.order[from:min(from+round, n)]
			l.crew.each(len(vertices), 512, func(worker, a, b int) {
				for _, v := range vertices[a:b] {
					l.choose(g, v, limit, l.tallies[worker], randomMix(seed, uint64(sweep)))
				}
			})
			for _, v := range vertices {
				l.join(g, v, l.want[v], limit)
			}
		}
	}
	l.gather(g, limit)
	return l.renumber(n)
}

// sort orders the vertices by degree: the choice of vertices with few edges is clearest.
func (l *clusterer) sort(g *Graph) {
	var begin [66]int
	for v := range g.vertices() {
		begin[bits.Len64(uint64(g.degree(uint32(v))))+1]++
	}
	for i := 1; i < len(begin); i++ {
		begin[i] += begin[i-1]
	}
	for v := range g.vertices() {
		size := bits.Len64(uint64(g.degree(uint32(v))))
		l.order[begin[size]] = uint32(v)
		begin[size]++
	}
}

// choose sets the cluster that v would join. It reads other vertices' clusters and writes
// only v's own entries.
func (l *clusterer) choose(g *Graph, v uint32, limit []int64, t *tally, seed uint64) {
	own := l.label[v]
	l.want[v] = own
	first, last := g.Indptr[v], g.Indptr[v+1]
	if first == last {
		return
	}
	step := (last-first)/coarsenSample + 1
	t.expect(int((last - first + step - 1) / step))
	if g.EdgeWeights == nil {
		t.addEach(g.Indices[first:last], l.label, int(step))
	} else {
		for e := first; e < last; e += step {
			t.add(l.label[g.Indices[e]], g.EdgeWeights[e])
		}
	}
	var best, most uint64
	for i, cluster := range t.keys {
		// The lower half breaks ties at random.
		rating := uint64(t.sums[i])<<32 | randomMix(seed^uint64(v), uint64(cluster))>>32
		if rating > most {
			most, l.admired[v] = rating, cluster
		}
		if rating > best && (cluster == own || l.fits(g, v, cluster, limit)) {
			best, l.want[v] = rating, cluster
		}
	}
	t.reset()
}

func (l *clusterer) fits(g *Graph, v, cluster uint32, limit []int64) bool {
	for c, most := range limit {
		if int64(l.weight[int(cluster)*g.Constraints+c])+int64(g.Weights[int(v)*g.Constraints+c]) > most {
			return false
		}
	}
	return true
}

// join moves v to a cluster, if that still has room. The cluster's first vertex may have
// left since v chose; then v follows it.
func (l *clusterer) join(g *Graph, v, to uint32, limit []int64) {
	own := l.label[v]
	if to != own && l.size[to] == 0 {
		to = l.label[to]
	}
	if to == own || l.size[to] == 0 || !l.fits(g, v, to, limit) {
		return
	}
	l.size[own]--
	l.size[to]++
	for c := range g.Constraints {
		w := g.Weights[int(v)*g.Constraints+c]
		l.weight[int(own)*g.Constraints+c] -= w
		l.weight[int(to)*g.Constraints+c] += w
	}
	l.label[v] = to
}

// gather merges vertices that are still alone: those without edges with each other, and
// those of small degree with others connected to the same cluster, such as the leaves of
// a star.
func (l *clusterer) gather(g *Graph, limit []int64) {
	n := g.vertices()
	for v := range n {
		l.want[v] = none // by cluster from here on: the cluster of those that admire it
	}
	loners := uint32(none)
	for v := range uint32(n) {
		if l.size[l.label[v]] != 1 {
			continue
		}
		holder := &loners
		if degree := g.degree(v); degree > 0 {
			if l.admired[v] == none || degree > coarsenTwoHop {
				continue
			}
			holder = &l.want[l.admired[v]]
		}
		if *holder != none && l.fits(g, v, *holder, limit) {
			l.join(g, v, *holder, limit)
		} else {
			*holder = l.label[v]
		}
	}
}

// renumber numbers the clusters 0, 1, 2... in the order of their first vertices.
func (l *clusterer) renumber(n int) int {
	for v := range n {
		l.want[v] = none
	}
	count := uint32(0)
	for v, cluster := range l.label[:n] {
		if l.want[cluster] == none {
			l.want[cluster] = count
			count++
		}
		l.label[v] = l.want[cluster]
	}
	return int(count)
}
