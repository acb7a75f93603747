package generate

import (
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

func TestBadOptionsGetASentence(t *testing.T) {
	fine := Options{Kind: "sbm", Vertices: 100, Edges: 200}
	for want, change := range map[string]func(*Options){
		`no kind of graph called "ring": choose one of rmat, sbm`:                    func(o *Options) { o.Kind = "ring" },
		`no kind of graph called ""`:                                                 func(o *Options) { o.Kind = "" },
		`no preset called "cora": choose one of arxiv, reddit, products, papers100m`: func(o *Options) { *o = Options{Preset: "cora"} },
		`the preset "arxiv" says by itself`:                                          func(o *Options) { *o = Options{Preset: "arxiv", Kind: "sbm"} },
		`the preset "reddit" says by itself`:                                         func(o *Options) { *o = Options{Preset: "reddit", Vertices: 3} },
		`can't be scaled by -1`:                                                      func(o *Options) { o.Scale = -1 },
		`can't be scaled by NaN`:                                                     func(o *Options) { o.Scale = math.NaN() },
		`can't be scaled by +Inf`:                                                    func(o *Options) { o.Scale = math.Inf(1) },
		`would have 100000000000 vertices, and 2147483647 is the most`:               func(o *Options) { o.Scale = 1e9 },
		`would have 20000000000000000 edges`:                                         func(o *Options) { o.Edges, o.Scale = 1<<53, 2.220446049250313 },
		`the graph has no vertices`:                                                  func(o *Options) { o.Vertices, o.Edges = 0, 0 },
		`the graph has no vertices: `:                                                func(o *Options) { o.Scale = 1e-9 },
		`2147483648 vertices are too many`:                                           func(o *Options) { o.Vertices = graph.MaxVertices + 1 },
		`9007199254740994 edges are too many`:                                        func(o *Options) { o.Edges = 1<<53 + 2 },
		`one vertex alone can't have edges`:                                          func(o *Options) { o.Vertices = 1 },
		`can't have -1 features`:                                                     func(o *Options) { o.Features = -1 },
		`can't have 65537 features`:                                                  func(o *Options) { o.Features = 65537 },
		`can't be -1 classes`:                                                        func(o *Options) { o.Classes = -1 },
		`101 classes are too many for 100 vertices`:                                  func(o *Options) { o.Classes = 101 },
		`the homophily 1.5 is not the share`:                                         func(o *Options) { o.Homophily = 1.5 },
		`the homophily NaN is not the share`:                                         func(o *Options) { o.Homophily = math.NaN() },
		`-0.1 of the edges can't be inside`:                                          func(o *Options) { o.Inside = -0.1 },
		`NaN of the edges can't be inside`:                                           func(o *Options) { o.Inside = math.NaN() },
		`can't be -2 communities`:                                                    func(o *Options) { o.Communities = -2 },
		`101 communities are too many for 100 vertices`:                              func(o *Options) { o.Communities = 101 },
		`3 communities are too few for 4 classes`:                                    func(o *Options) { o.Communities, o.Classes = 3, 4 },
		`an rmat graph has no communities`:                                           func(o *Options) { o.Kind, o.Inside = "rmat", 0.5 },
	} {
		o := fine
		change(&o)
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
			continue
		}
		if strings.ContainsAny(err.Error(), "\n;") || strings.HasSuffix(err.Error(), ".") {
			t.Errorf("not one sentence: %v", err)
		}
	}
}

func TestTheSmallestGraphs(t *testing.T) {
	for _, kind := range kinds {
		for vertices := uint32(1); vertices <= 9; vertices++ {
			for classes := 0; classes <= int(vertices); classes++ {
				o := Options{Kind: kind, Vertices: vertices, Edges: 300, Classes: classes, Features: 3, Homophily: 1}
				if vertices == 1 {
					o.Edges = 0
				}
				g := read(t, o)
				if len(g.src) != int(o.Edges) || len(g.features) != 3*int(vertices) {
					t.Errorf("%+v: %d edges, %d features", o, len(g.src), len(g.features))
				}
			}
		}
	}
}

func TestPresets(t *testing.T) {
	for _, want := range []struct {
		name, real        string
		vertices          uint32
		edges             uint64
		features, classes int
		train, validation float64
	}{
		{"arxiv", "ogbn-arxiv", 16_934, 116_624, 128, 40, 0.54, 0.18},
		{"reddit", "Reddit", 23_297, 11_461_588, 602, 41, 0.66, 0.10},
		{"products", "ogbn-products", 244_903, 12_371_828, 100, 47, 0.08, 0.016},
	} {
		s, err := New(Options{Preset: want.name, Scale: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		m := s.Meta()
		if m.Format != "sbm" || m.Vertices != want.vertices || m.Edges != want.edges || m.Features != want.features || m.Classes != want.classes {
			t.Errorf("%s: %+v", want.name, m)
		}
		count := [4]float64{}
		for _, mark := range s.Splits()[0] {
			count[mark]++
		}
		n := float64(m.Vertices)
		if math.Abs(count[graph.Train]/n-want.train) > 0.005 || math.Abs(count[graph.Validation]/n-want.validation) > 0.005 || count[graph.Unmarked] != 0 {
			t.Errorf("%s: split %v", want.name, count)
		}
		if note := "synthetic, shaped like " + want.real + "; its accuracy says nothing about the real graph"; !strings.Contains(s.Notes()[0], note) {
			t.Errorf("%s: %q", want.name, s.Notes())
		}
	}
	papers, _, err := Options{Preset: "papers100m", Scale: 0.1}.resolve()
	if err != nil || papers.Vertices != 11_105_996 || papers.Edges != 323_137_174 || papers.Features != 128 || papers.Classes != 172 {
		t.Errorf("papers100m: %+v, %v", papers, err)
	}
	full, err := New(Options{Preset: "arxiv"})
	if err != nil {
		t.Fatal(err)
	}
	if m := full.Meta(); m.Vertices != 169_343 || m.Edges != 1_166_242 {
		t.Errorf("arxiv: %+v", m)
	}
}
