package generate

import "math"

// sbm draws the edges of a degree-corrected stochastic block model. Communities are runs
// of positions, with those of one class adjacent; ids are permuted positions. Inside a
// community the probability of a vertex falls with its rank r as (r+offset)^(-2/3), so
// degrees follow a power law with exponent 2.5.
//
// The share inside of all edges stays in the community. If homophily is above that,
// enough of the other edges lead to another community of the same class. If it is below,
// none do, and enough vertices get a random class instead of their community's.
type sbm struct {
	n        uint64
	ids      permutation
	key      uint64
	labelKey uint64
	towns    *communities
	inside   float64
	alike    float64 // share of the edges leaving a community that keep the class
	keeps    float64 // share of vertices that have their community's class
}

func newSBM(o Options, ids permutation) *sbm {
	s := &sbm{n: uint64(o.Vertices), ids: ids, key: key(o.Seed, forEdges), labelKey: key(o.Seed, forLabels),
		towns: newCommunities(o), inside: o.Inside, keeps: 1}
	chance := 1 / float64(max(1, o.Classes))
	switch {
	case o.Homophily >= o.Inside && o.Inside < 1:
		s.alike = (o.Homophily - o.Inside) / (1 - o.Inside)
	case o.Homophily < o.Inside && o.Inside > chance:
		// Two ends in one community agree with probability keeps² + (1-keeps²)/Classes,
		// those in communities of two classes with (1-keeps²)/Classes.
		s.keeps = math.Sqrt(max(0, (o.Homophily-chance)/(o.Inside-chance)))
	}
	return s
}

// draw makes each pair of edges from one undirected edge; first must be even.
func (s *sbm) draw(first uint64, src, dst []uint32) {
	for i := 0; i+1 < len(src); i += 2 {
		a, b := s.edge((first + uint64(i)) / 2)
		from, to := uint32(s.ids.of(a)), uint32(s.ids.of(b))
		src[i], dst[i] = from, to
		src[i+1], dst[i+1] = to, from
	}
}

func (s *sbm) edge(index uint64) (a, b uint64) {
	random := at(s.key, index)
	for range attempts {
		position := random.below(s.n)
		home := s.towns.of(position)
		there := home
		if random.unit() >= s.inside {
			there = s.abroad(home, &random)
		}
		a, b = s.towns.vertex(home, random.unit()), s.towns.vertex(there, random.unit())
		if a != b {
			return a, b
		}
	}
	a = random.below(s.n)
	return a, (a + 1) % s.n
}

// abroad returns a community other than home, of the same class or of another, if there
// is one.
func (s *sbm) abroad(home int, random *sequence) int {
	same := random.unit() < s.alike
	homeFirst, homeEnd := s.towns.run(home)
	first, end := s.towns.classRun(home)
	switch {
	case s.towns.classes <= 1: // anywhere else
		first, end = 0, s.n
		fallthrough
	case same:
		if end-first == homeEnd-homeFirst {
			return home
		}
		position := first + random.below(end-first-(homeEnd-homeFirst))
		if position >= homeFirst {
			position += homeEnd - homeFirst
		}
		return s.towns.of(position)
	default:
		position := random.below(s.n - (end - first))
		if position >= first {
			position += end - first
		}
		return s.towns.of(position)
	}
}

func (s *sbm) class(vertex uint64) int {
	random := at(s.labelKey, vertex)
	if random.unit() >= s.keeps {
		return int(random.below(uint64(s.towns.classes)))
	}
	return s.towns.class(s.community(vertex))
}

func (s *sbm) community(vertex uint64) int { return s.towns.of(s.ids.from(vertex)) }
