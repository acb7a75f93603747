package bench

import (
	"fmt"
	"math"
)

// A Volume is what formulas say that the authors' eight nodes send in an epoch of one
// model on one graph, in bytes.
type Volume struct {
	Graph   string  `json:"graph"`
	Model   string  `json:"model"`
	Alpha   float64 `json:"alpha"`
	Halo    uint64  `json:"graph_halo_bytes"`
	Sums    uint64  `json:"graph_gradient_bytes"` // of the authors' models
	Pipe    uint64  `json:"pipe_boundary_bytes"`
	Rows    float64 `json:"rows_ratio"`    // L alpha / ((S-1) n_b)
	Counted float64 `json:"counted_ratio"` // with graph's sums, as the authors count
	Ours    float64 `json:"our_ratio"`     // the same, of our models
}

// volumes are those at the published vertices, widths and mirrors.
func volumes() (list []Volume, err error) {
	for _, g := range deepGraphs {
		for _, model := range deepModels {
			m, err := deep(model, deepLayers, g.hidden, g.features, g.classes)
			if err != nil {
				return nil, err
			}
			all := arrangements(publishedNodes)
			whole := all[0].sizes(m, g.vertices, int(math.Round(g.alpha*float64(g.vertices))), g.hidden)
			whole.Layers = deepLayers // the authors exchange rows before the first, too
			a, b := whole.Of(), all[1].sizes(m, g.vertices, 0, g.hidden).Of()
			whole.Weights = g.weights(model)
			sums := whole.Of().Sum
			list = append(list, Volume{
				Graph: g.name, Model: model, Alpha: g.alpha, Halo: a.Halo, Sums: sums, Pipe: b.Boundary,
				Rows: float64(a.Halo) / float64(b.Boundary), Counted: float64(a.Halo+sums) / float64(b.Boundary),
				Ours: float64(a.Total()) / float64(b.Total()),
			})
		}
	}
	return list, nil
}

// weights counts those of the authors' models, whose ResGCN+ has two products a layer, as
// a GraphSAGE has; ours has one.
func (g *deepGraph) weights(model string) int {
	in, square, out := g.features*g.hidden, g.hidden*g.hidden, g.hidden*g.classes
	switch model {
	case "gcn":
		return in + (deepLayers-1)*square + out
	case "sage":
		return 2*in + 2*(deepLayers-1)*square + out
	case "gcnii":
		return in + deepLayers*square + out
	}
	return in + 2*deepLayers*(square+g.hidden) + out // resgcn, with a LayerNorm for each layer
}

// judgedVolumes compares the formulas with the published ratios, which are geometric
// means without arXiv, count graph's sums of gradients, and none of a pipeline's.
func judgedVolumes(list []Volume) []Figure {
	var counted, rows, ours []float64
	best := list[0]
	for _, v := range list {
		if v.Counted > best.Counted {
			best = v
		}
		if v.Graph != "arXiv" {
			counted, rows, ours = append(counted, v.Counted), append(rows, v.Rows), append(ours, v.Ours)
		}
	}
	near := func(name string, value, want float64) Figure {
		return Figure{
			Name: name, Value: value, Unit: "x", Bar: fmt.Sprintf("%g x as published, to %.0f %%", want, 100*publishedSlack),
			Holds: math.Abs(value/want-1) <= publishedSlack,
		}
	}
	return []Figure{
		near("bytes of graph over pipe by the formulas, 8 nodes, geometric mean of 16", geometric(counted), publishedBytes),
		near(fmt.Sprintf("and at best (%s, %s)", best.Graph, best.Model), best.Counted, publishedBytesBest),
		{Name: "the same mean, of rows alone", Value: geometric(rows), Unit: "x"},
		{Name: "the same mean as the authors count, of our models", Value: geometric(ours), Unit: "x"},
	}
}
