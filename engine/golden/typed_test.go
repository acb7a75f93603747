package golden

import "github.com/hopmesh/hopmesh/engine/enginetest"

// typed are the models that tell relations apart, of a graph with relations. The strategies are
// those that train them, with batches and with the whole graph.
var typed = []model{
	{name: "hetero-gat", model: "hetero:gat", layers: 2, set: []string{"gat.out_heads=2", "hetero.across=mean"}},
	{name: "hetero-attention", model: "hetero:sage", layers: 2, set: []string{"hetero.across=attention"}},
	{name: "hetero-gcn", model: "hetero:gcn", layers: 2},
	{name: "hetero-gin", model: "hetero:gin", layers: 2},
	{name: "hetero-sage", model: "hetero:sage", layers: 2, usual: true},
	{name: "hgt", model: "hgt", layers: 2, usual: true},
	{name: "rgcn", model: "rgcn", layers: 2},
	{name: "rgcn-bases", model: "rgcn", layers: 2, set: []string{"rgcn.bases=2"}},
}

// ofTriples are the models of the graph of triples.
var ofTriples = []model{
	{name: "rgcn", model: "rgcn", layers: 2, usual: true},
	{name: "hetero-sage", model: "hetero:sage", layers: 2},
	{name: "hgt", model: "hgt", layers: 2},
	{name: "sage", model: "sage", layers: 2},
	{name: "mlp", model: "mlp", layers: 1, usual: true},
}

// wrote are the settings of links of the graph with relations.
var wrote = []string{"link.relation=wrote", "link.negatives=2", "link.ranks=20", "train.metric=mrr"}

// relations are those of the graph, and the types at which they end.
var (
	relations = []string{"wrote", "edited", enginetest.Back + "wrote", enginetest.Back + "edited"}
	ends      = "0,0,1,1"
	starts    = "1,1,0,0"
)
