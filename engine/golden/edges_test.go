package golden

// along are the models that compute a row for each edge, of a graph whose edges have features. The
// strategies are those that sample blocks and hold all edges.
var along = []model{
	{name: "gat", model: "gat", layers: 2, set: []string{"gat.out_heads=2"}, usual: true},
	{name: "gin", model: "gin", layers: 2, usual: true},
	{name: "mpnn", model: "mpnn", layers: 2, usual: true},
	{name: "mpnn-sum", model: "mpnn", layers: 2, set: []string{"mpnn.aggregator=sum"}},
	{name: "mpnn-off", model: "mpnn", layers: 2, set: []string{"model.edges=off"}},
}
