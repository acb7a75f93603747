package evaluate

import (
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// An Outlook is exact inference on a node that need not be there: what its memory depends
// on, as counts.
type Outlook struct {
	Model    *nn.Model
	Topology *sample.Topology // of the graph, which may lack all edges
	Columns  int              // of features
	Sparse   bool
	Entries  float64 // of a vertex's sparse features, on average
	Alone    bool    // this node has the whole graph
	Rows     int     // vertices of the node
	Edges    int     // into these
	Halo     int     // vertices of others from which there are edges into these
	Once     bool    // it runs only once
}

// Inference returns an inference that can forecast its memory, and nothing else.
func (o *Outlook) Inference() (*Inference, error) {
	bare := &graph.Shard{Shards: 1, Features: o.Columns, DType: graph.F32}
	store, err := features.OpenPart([]*graph.Shard{bare}, []graph.FeatureStats{{Sparse: o.Sparse}}, "none")
	if err != nil {
		return nil, err
	}
	h := &halo{own: extent{rows: o.Rows, edges: o.Edges}}
	if o.Rows > 0 {
		h.own.spans = []span{{rows: o.Rows}}
		h.own.mean = float64(o.Edges) / float64(o.Rows)
	}
	if !o.Alone {
		h.nodes.Work.Nodes = []string{"this node", "all others"}
		h.from = []int{0, 0, o.Halo}
	}
	h.nodes.Layout = peer.Layout{Nodes: len(h.nodes.Work.Nodes)}
	h.parcels = newParcels(&h.nodes)
	d := &dataset.Graph{Features: store, Topology: o.Topology, Entries: o.Entries}
	i := &Inference{data: d, halo: h, own: &h.own, limits: limits{once: o.Once}}
	i.Add(o.Model, tensor.Matrix{})
	return i, nil
}
