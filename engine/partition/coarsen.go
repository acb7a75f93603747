package partition

import "math/bits"

// none stands for no vertex, no cluster or no part, where the type is wide enough.
const none = 1<<32 - 1

const (
	coarsenRounds = 24   // times within a sweep that clusters are brought up to date
	coarsenSweeps = 3    // times that each vertex may choose its cluster
	coarsenSample = 8192 // edges of a vertex that are looked at, no more
	coarsenTwoHop = 8    // degree up to which vertices without edges between them may share a cluster
)

// clusterer groups vertices that belong together, as label propagation does: each vertex in turn joins the
// neighbouring cluster it is most strongly tied to, if that stays light enough. Matching in pairs would
// stall on graphs with hubs. The slices are scratch of the first and largest graph's size, used again by
// each level.
type clusterer struct {
	crew    crew
	label   []uint32 // by vertex: its cluster, named after the vertex it began with
	size    []uint32 // by cluster: vertices
	weight  []uint32 // by cluster: weights, as in Graph
	want    []uint32 // by vertex: the cluster it proposes to join
	admired []uint32 // by vertex: the cluster it is most strongly tied to, whether or not that has room
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

// cluster fills label for g, with numbers from 0 in the order of the clusters' first vertices, and answers
// how many there are. limit is each constraint's most for one cluster.
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

// sort orders the vertices by the size of their degree: those with few edges know best where they belong.
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

// choose writes the cluster that v would join. It reads what other vertices are in, and writes nothing but
// what is v's own.
func (l *clusterer) choose(g *Graph, v uint32, limit []int64, t *tally, seed uint64) {
	own := l.label[v]
	l.want[v] = own
	first, last := g.Indptr[v], g.Indptr[v+1]
	if first == last {
		return
	}
	step := (last-first)/coarsenSample + 1
	t.expect(int((last - first + step - 1) / step))
	for e := first; e < last; e += step {
		t.add(l.label[g.Indices[e]], g.weightOf(e))
	}
	var best, most uint64
	for i, cluster := range t.keys {
		// The lower half is a coin for what is tied alike.
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

// join moves v to a cluster, if that still has room. The vertex the cluster began with may have left it
// empty since v chose; then v goes after it.
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

// gather puts vertices together that are still alone: those without edges with each other, and those of
// small degree with others tied to the same cluster, as the leaves of a star are.
func (l *clusterer) gather(g *Graph, limit []int64) {
	n := g.vertices()
	for v := range n {
		l.want[v] = none // by cluster from here on: the cluster of those who admire it
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

// renumber names the clusters 0, 1, 2... in the order of their first vertices.
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
