package generate

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %.4f, want %.4f within %g", what, got, want, tolerance)
	}
}

// agreeing is the share of edges whose ends have the same label.
func agreeing(g whole) float64 {
	n := 0
	for i := range g.src {
		if g.Labels()[g.src[i]] == g.Labels()[g.dst[i]] {
			n++
		}
	}
	return float64(n) / float64(len(g.src))
}

func TestHomophily(t *testing.T) {
	for _, o := range []Options{
		{Kind: "rmat", Homophily: 0.8}, {Kind: "rmat", Homophily: 0.3}, {Kind: "rmat", Homophily: 1}, {Kind: "rmat", Homophily: 0.1},
		{Kind: "sbm"}, {Kind: "sbm", Homophily: 0.95}, {Kind: "sbm", Homophily: 1}, {Kind: "sbm", Homophily: 0.5},
		{Kind: "sbm", Homophily: 0.3, Inside: 0.3}, {Kind: "sbm", Homophily: 0.7, Inside: 0.2}, {Kind: "sbm", Homophily: 0.6, Inside: 1},
	} {
		o.Vertices, o.Edges, o.Classes = 30_000, 300_000, 10
		want := max(orUsual(o.Homophily), 0.1)
		near(t, fmt.Sprintf("%s, homophily %v, inside %v", o.Kind, o.Homophily, o.Inside), agreeing(read(t, o)), want, 0.012)
	}
}

func TestInside(t *testing.T) {
	for _, inside := range []float64{0.2, 0.8, 1} {
		g := read(t, Options{Kind: "sbm", Vertices: 30_000, Edges: 300_000, Classes: 10, Inside: inside})
		model, n := g.Source.(*source).model, 0
		for i := range g.src {
			if model.community(uint64(g.src[i])) == model.community(uint64(g.dst[i])) {
				n++
			}
		}
		near(t, "inside", float64(n)/float64(len(g.src)), inside, 0.01)
	}
}

func TestSymmetry(t *testing.T) {
	g := read(t, Options{Kind: "sbm", Vertices: 1_000, Edges: 50_000})
	for i := 0; i < len(g.src); i += 2 {
		if g.src[i] != g.dst[i+1] || g.dst[i] != g.src[i+1] {
			t.Fatalf("edges %d and %d are not each other's reverse", i, i+1)
		}
	}
}

func degrees(vertices int, ends ...[]uint32) []float64 {
	d := make([]float64, vertices)
	for _, e := range ends {
		for _, v := range e {
			d[v]++
		}
	}
	slices.Sort(d)
	return d
}

func sum(x []float64) (total float64) {
	for _, v := range x {
		total += v
	}
	return total
}

func TestDegreesAreSkewed(t *testing.T) {
	const n, m = 1 << 16, 1 << 20
	g := read(t, Options{Kind: "rmat", Vertices: n, Edges: m})
	for end, ids := range map[string][]uint32{"out": g.src, "in": g.dst} {
		d := degrees(n, ids)
		// The vertex 0 of the positions gets 0.76^16 of all.
		near(t, end+": largest", d[n-1]/(m*math.Pow(0.76, 16)), 1, 0.1)
		if top := sum(d[n-n/100:]) / m; top < 0.25 || top > 0.6 {
			t.Errorf("%s: a hundredth of the vertices has %.2f of the edges", end, top)
		}
	}
	d := degrees(n, read(t, Options{Kind: "sbm", Vertices: n, Edges: m, Communities: 4}).src)
	if top := d[n-1] / (m / n); top < 20 || top > 150 {
		t.Errorf("sbm: the largest degree is %.0f times the average", top)
	}
	// A power law with the exponent 2.5 has degrees above x as x^-1.5.
	above := func(x float64) float64 {
		return float64(n - slices.IndexFunc(d, func(y float64) bool { return y > x }))
	}
	near(t, "sbm: exponent", 1+math.Log(above(32)/above(256))/math.Log(8), 2.5, 0.35)
}

// A position's share of R-MAT's edges is known: a product over its bits. What
// pairs share is known as well.
func TestQuadrants(t *testing.T) {
	s, err := New(Options{Kind: "rmat", Vertices: 64, Edges: 400_000})
	if err != nil {
		t.Fatal(err)
	}
	g := again(t, s)
	ids := s.(*source).model.(*rmat).ids
	var quadrant [6][4]float64
	for i := range g.src {
		a, b := ids.from(uint64(g.src[i])), ids.from(uint64(g.dst[i]))
		for bit := range quadrant {
			quadrant[bit][a>>bit&1<<1|b>>bit&1]++
		}
	}
	// Loops, drawn anew, are (a+d)^6 of all, and have the quadrants a and d only.
	loops := math.Pow(0.62, 6)
	for bit := range quadrant {
		for q, share := range []float64{0.57, 0.19, 0.19, 0.05} {
			if q == 0 || q == 3 {
				share -= loops * share / 0.62
			}
			near(t, fmt.Sprintf("bit %d, quadrant %d", bit, q), quadrant[bit][q]/400_000, share/(1-loops), 0.004)
		}
	}
}

func TestLabelsAndSplit(t *testing.T) {
	const n, classes = 20_000, 8
	for _, kind := range kinds {
		s, err := New(Options{Kind: kind, Vertices: n, Classes: classes, Communities: map[string]int{"sbm": 160}[kind]})
		if err != nil {
			t.Fatal(err)
		}
		var labels [classes]float64
		var marks [4]int
		for v, label := range s.Labels() {
			labels[label]++
			marks[s.Splits()[0][v]]++
		}
		for class, count := range labels {
			near(t, fmt.Sprintf("%s: class %d", kind, class), count/n, 1.0/classes, 0.03)
		}
		if marks != [4]int{graph.Train: 12_000, graph.Validation: 4_000, graph.Test: 4_000} {
			t.Errorf("%s: split %v", kind, marks)
		}
	}
}

// nearest is how often the class whose training rows' mean is nearest is right
// among the test vertices.
func nearest(g whole, rows []float32) float64 {
	m, marks, labels := g.Meta(), g.Splits()[0], g.Labels()
	columns := m.Features
	means, count := make([]float64, m.Classes*columns), make([]float64, m.Classes)
	for v, mark := range marks {
		if mark == graph.Train {
			count[labels[v]]++
			for i, x := range rows[v*columns : (v+1)*columns] {
				means[int(labels[v])*columns+i] += float64(x)
			}
		}
	}
	right, total := 0.0, 0.0
	for v, mark := range marks {
		if mark != graph.Test {
			continue
		}
		best, distance := 0, math.Inf(1)
		for class := range m.Classes {
			d := 0.0
			for i, x := range rows[v*columns : (v+1)*columns] {
				d += math.Pow(float64(x)-means[class*columns+i]/count[class], 2)
			}
			if d < distance {
				best, distance = class, d
			}
		}
		total++
		if best == int(labels[v]) {
			right++
		}
	}
	return right / total
}

func TestFeaturesAndNeighboursHelp(t *testing.T) {
	for _, kind := range kinds {
		const columns, classes = 64, 10
		g := read(t, Options{Kind: kind, Vertices: 3_000, Edges: 45_000, Features: columns, Classes: classes})
		around := slices.Clone(g.features)
		for i := range g.src {
			from, to := int(g.src[i])*columns, int(g.dst[i])*columns
			for j := range columns {
				around[to+j] += g.features[from+j]
			}
		}
		count := make([]float32, g.Meta().Vertices)
		for _, v := range g.dst {
			count[v]++
		}
		for i := range around {
			around[i] /= 1 + count[i/columns]
		}
		alone, together := nearest(g, g.features), nearest(g, around)
		t.Logf("%s: %.2f alone, %.2f with neighbours", kind, alone, together)
		if alone < 0.3 || alone > 0.9 || together < alone+0.1 {
			t.Errorf("%s: right in %.2f by features, %.2f with those of the neighbours", kind, alone, together)
		}
	}
}

func TestNoiseIsNormal(t *testing.T) {
	random := at(1, 2)
	var moments [4]float64
	const n = 1_000_000
	for range n {
		x := float64(normal(random.next()))
		for k := range moments {
			moments[k] += math.Pow(x, float64(k+1)) / n
		}
	}
	for k, want := range []float64{0, 1, 0, 2.85} {
		near(t, fmt.Sprintf("moment %d", k+1), moments[k], want, 0.02)
	}
}
