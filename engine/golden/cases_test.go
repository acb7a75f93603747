package golden

import "slices"

// A variant is a strategy with settings, as users give them.
type variant struct {
	name     string // unique; begins with the strategy's
	strategy string
	set      []string // "key=value" of --set
	task     string   // empty: class
	full     bool     // all training vertices and all neighbours in each step
	// exact says that the weights are those of one machine that trains on the same batches:
	// those of the first variant with the same full and task.
	exact bool
	// sweep is the learning rates of models that are trained side by side; none: one model.
	sweep []float64
	// models are the models that the variant is trained with; none: all of those that see edges
	// alike.
	models []string
	typed  bool // of the graph with relations, by the models that tell them apart
	along  bool // of the graph with features of edges, by the models that read them
	bare   bool // of a graph of whose vertices, or of those of a type, rows are learnt
	// triples means that pairs of the graph of triples are learnt, by some of those models and
	// by embeddings alone.
	triples bool
}

// variants are all strategies with their defaults, and those settings that have arithmetic
// or communication of their own.
var variants = []variant{
	{name: "single", strategy: "single", exact: true},
	{name: "single,full", strategy: "single", full: true, exact: true},
	{name: "single,schedule", strategy: "single", models: some, set: []string{"train.schedule=cosine", "train.warmup=1", "train.metric=roc_auc"}},
	{name: "single,sweep", strategy: "single", models: some, sweep: []float64{0.01, 0.03}},

	{name: "centric", strategy: "centric", exact: true},
	{name: "centric,full", strategy: "centric", full: true, exact: true, models: some},
	{name: "centric,cache", strategy: "centric", exact: true, models: some, set: []string{"centric.cache=40", "topology=sharded"}},
	{name: "centric,bce", strategy: "centric", models: some, set: []string{"train.loss=bce", "train.metric=macro_f1"}},

	{name: "leap,stay", strategy: "leap", exact: true, set: []string{"leap.mode=stay"}},
	{name: "leap,migrate", strategy: "leap", exact: true, set: []string{"leap.mode=migrate"}},
	{name: "leap,auto", strategy: "leap", exact: true, models: some},
	{name: "leap,full", strategy: "leap", full: true, exact: true, models: some},
	{name: "leap,merge", strategy: "leap", exact: true, models: some, set: []string{"leap.mode=migrate", "leap.merge=2", "topology=sharded", "leap.cache=40"}},
	{name: "leap,plain", strategy: "leap", exact: true, models: some, set: []string{"leap.mode=migrate", "leap.merge=off", "leap.balance=off", "leap.pregather=off", "leap.dedup=off"}},
	{name: "leap,sweep", strategy: "leap", models: some, sweep: []float64{0.01, 0.03}, set: []string{"leap.mode=migrate"}},

	{name: "p3", strategy: "p3"},
	{name: "p3,full", strategy: "p3", full: true, models: some},
	{name: "p3,inflight=2", strategy: "p3", models: some, set: []string{"p3.inflight=2"}},
	{name: "p3,inflight=3,blocks", strategy: "p3", models: some, set: []string{"p3.inflight=3", "p3.push=blocks"}},
	{name: "p3,slices,blocks", strategy: "p3", models: some, set: []string{"p3.roots=slices", "p3.push=blocks"}},
	{name: "p3,sharded", strategy: "p3", models: some, set: []string{"topology=sharded"}},

	{name: "grappa", strategy: "grappa", set: []string{"grappa.period=1"}},
	{name: "grappa,full", strategy: "grappa", full: true, models: some, set: []string{"grappa.period=1"}},
	{name: "grappa,strict", strategy: "grappa", models: some, set: []string{"grappa.loader=strict", "grappa.period=1", "grappa.groups=3", "grappa.swept=1", "grappa.correction=node"}},
	{name: "grappa,sampled", strategy: "grappa", models: some, set: []string{"grappa.loader=halo-sampled", "grappa.period=1", "grappa.cap=60", "grappa.sweep=published"}},
	{name: "grappa,message", strategy: "grappa", models: some, set: []string{"grappa.loader=strict", "grappa.period=1", "grappa.correction=message"}},
	{name: "grappa,hops", strategy: "grappa", models: some, set: []string{"grappa.loader=strict", "grappa.period=1", "grappa.correction=batch", "grappa.hops=all", "grappa.shrink=0.3", "grappa.loss=groups"}},
	{name: "grappa,self", strategy: "grappa", models: some, set: []string{"grappa.loader=strict", "grappa.period=1", "grappa.swept=1", "grappa.correction=self-normalised", "grappa.pseudo=2", "grappa.prefetch=off"}},
	{name: "grappa,plateau", strategy: "grappa", models: some, set: []string{"grappa.loader=strict", "grappa.period=1", "grappa.switch=plateau"}},
	{name: "grappa,sweep", strategy: "grappa", models: some, sweep: []float64{0.01, 0.03}, set: []string{"grappa.period=1"}},

	{name: "leap,weights", strategy: "leap", models: some, set: []string{"train.class_weights=1,2,0.5,3"}},
	{name: "leap,balanced", strategy: "leap", models: some, set: []string{"train.class_weights=balanced"}},
	{name: "leap,labels,balanced", strategy: "leap", task: "multilabel", models: some, set: []string{"train.class_weights=balanced", "leap.mode=migrate"}},
	{name: "leap,delta", strategy: "leap", task: "regression", models: some, set: []string{"train.loss=huber", "train.huber_delta=0.25"}},
	{name: "graph,balanced", strategy: "graph", full: true, models: some, set: []string{"train.class_weights=balanced", "pipe.ways=3"}},
	{name: "single,labels", strategy: "single", task: "multilabel", exact: true, models: some},
	{name: "centric,labels", strategy: "centric", task: "multilabel", exact: true, models: some},
	{name: "leap,labels", strategy: "leap", task: "multilabel", exact: true, models: some, set: []string{"leap.mode=migrate"}},
	{name: "grappa,labels", strategy: "grappa", task: "multilabel", models: some, set: []string{"grappa.period=1"}},
	{name: "p3,labels", strategy: "p3", task: "multilabel", models: some},
	{name: "pipe,labels", strategy: "pipe", task: "multilabel", full: true, models: some},

	{name: "single,values", strategy: "single", task: "regression", exact: true, models: some},
	{name: "centric,values", strategy: "centric", task: "regression", exact: true, models: some},
	{name: "leap,values", strategy: "leap", task: "regression", exact: true, models: some, set: []string{"leap.mode=stay"}},
	{name: "leap,huber", strategy: "leap", task: "regression", models: some, set: []string{"train.loss=huber", "train.metric=r2"}},
	{name: "leap,l1", strategy: "leap", task: "regression", models: some, set: []string{"train.loss=l1", "train.metric=mae"}},
	{name: "grappa,values", strategy: "grappa", task: "regression", models: some, set: []string{"grappa.period=1"}},
	{name: "p3,values", strategy: "p3", task: "regression", models: some},
	{name: "graph,values", strategy: "graph", task: "regression", full: true, models: some},

	{name: "single,links", strategy: "single", task: "link", exact: true},
	{name: "centric,links", strategy: "centric", task: "link", exact: true, models: some},
	{name: "leap,links", strategy: "leap", task: "link", exact: true, models: some, set: []string{"leap.mode=stay"}},
	{name: "leap,links,migrate", strategy: "leap", task: "link", exact: true, models: some, set: []string{"leap.mode=migrate", "leap.cache=40"}},
	{name: "leap,links,sweep", strategy: "leap", task: "link", models: some, sweep: []float64{0.01, 0.03}, set: []string{"link.negatives=3", "train.metric=average_precision"}},
	{name: "leap,links,distmult", strategy: "leap", task: "link", models: some, set: []string{"link.decoder=distmult", "train.loss=margin", "link.negatives=source:2", "leap.mode=stay"}},
	{name: "centric,links,mlp", strategy: "centric", task: "link", models: some, set: []string{"link.decoder=mlp", "train.loss=bpr", "link.negatives=batch:2", "link.ranks=30", "train.metric=mrr"}},
	{name: "grappa,links", strategy: "grappa", task: "link", models: some, set: []string{"grappa.period=1"}},
	{name: "grappa,links,strict", strategy: "grappa", task: "link", models: some, set: []string{"grappa.period=1", "grappa.loader=strict", "grappa.groups=3", "grappa.swept=1", "link.negatives=batch:2", "link.decoder=mlp", "train.loss=bpr"}},
	{name: "grappa,links,source", strategy: "grappa", task: "link", models: some, set: []string{"grappa.loader=halo-sampled", "grappa.cap=60", "grappa.sweep=off", "grappa.phases=2", "link.negatives=source:3"}},
	{name: "grappa,links,one", strategy: "grappa", task: "link", exact: true, models: some, set: []string{"grappa.groups=1"}},
	{name: "p3,links", strategy: "p3", task: "link", models: some},
	{name: "graph,links", strategy: "graph", task: "link", models: some},

	{name: "pipe", strategy: "pipe", full: true},
	{name: "pipe,period=2", strategy: "pipe", full: true, models: some, set: []string{"pipe.period=2"}},
	{name: "pipe,ways=2", strategy: "pipe", full: true, models: some, set: []string{"pipe.ways=2", "pipe.chunks=4", "pipe.period=2"}},
	{name: "pipe,chunks=1", strategy: "pipe", full: true, models: some, set: []string{"pipe.chunks=1"}},
	{name: "pipe,chunks=3", strategy: "pipe", full: true, models: some, set: []string{"pipe.chunks=3", "pipe.shuffle=off", "pipe.compensate=off", "pipe.recompute=on"}},
	{name: "pipe,reader", strategy: "pipe", full: true, models: some, set: []string{"pipe.period=2", "pipe.first=reader"}},
	{name: "pipe,left", strategy: "pipe", full: true, models: some, set: []string{"pipe.histories=left", "pipe.gradients=kept", "pipe.period=2", "pipe.recompute=off"}},
	{name: "pipe,zeros", strategy: "pipe", full: true, models: some, set: []string{"pipe.histories=zeros", "pipe.period=2"}},

	{name: "single,typed", strategy: "single", typed: true, exact: true},
	{name: "single,typed,full", strategy: "single", typed: true, full: true, exact: true},
	{name: "centric,typed", strategy: "centric", typed: true, exact: true, set: []string{"topology=sharded", "centric.cache=40"}},
	{name: "leap,typed,stay", strategy: "leap", typed: true, exact: true, set: []string{"leap.mode=stay"}},
	{name: "leap,typed,migrate", strategy: "leap", typed: true, exact: true, set: []string{"leap.mode=migrate"}},
	{name: "leap,typed,full", strategy: "leap", typed: true, full: true, exact: true},
	{name: "grappa,typed", strategy: "grappa", typed: true, set: []string{"grappa.period=1", "grappa.groups=3"}},
	{name: "grappa,typed,strict", strategy: "grappa", typed: true, set: []string{"grappa.period=1", "grappa.loader=strict", "grappa.swept=2", "grappa.correction=node"}},
	{name: "grappa,typed,one", strategy: "grappa", typed: true, exact: true, set: []string{"grappa.groups=1"}},

	{name: "single,edges", strategy: "single", along: true, exact: true},
	{name: "single,edges,full", strategy: "single", along: true, full: true, exact: true},
	{name: "centric,edges", strategy: "centric", along: true, exact: true, set: []string{"centric.cache=40"}},
	{name: "leap,edges,stay", strategy: "leap", along: true, exact: true, set: []string{"leap.mode=stay"}},
	{name: "leap,edges,migrate", strategy: "leap", along: true, exact: true, set: []string{"leap.mode=migrate"}},
	{name: "leap,edges,full", strategy: "leap", along: true, full: true, exact: true},
	{name: "grappa,edges", strategy: "grappa", along: true, set: []string{"grappa.period=1", "grappa.groups=3"}},
	{name: "grappa,edges,strict", strategy: "grappa", along: true, set: []string{"grappa.period=1", "grappa.loader=strict", "grappa.swept=2", "grappa.correction=node"}},
	{name: "grappa,edges,one", strategy: "grappa", along: true, exact: true, set: []string{"grappa.groups=1"}},
	{name: "single,edges,links", strategy: "single", along: true, task: "link", exact: true},
	{name: "leap,edges,links", strategy: "leap", along: true, task: "link", exact: true, set: []string{"leap.mode=stay"}},
	{name: "centric,edges,links", strategy: "centric", along: true, task: "link", exact: true, set: []string{"link.decoder=dot"}},
	{name: "grappa,edges,links", strategy: "grappa", along: true, task: "link", set: []string{"grappa.period=1", "grappa.groups=3"}},

	{name: "single,rows", strategy: "single", bare: true, exact: true},
	{name: "single,rows,full", strategy: "single", bare: true, full: true, exact: true, models: some},
	{name: "centric,rows", strategy: "centric", bare: true, exact: true, models: some, set: []string{"topology=sharded"}},
	{name: "leap,rows,stay", strategy: "leap", bare: true, exact: true, set: []string{"leap.mode=stay"}},
	{name: "leap,rows,migrate", strategy: "leap", bare: true, exact: true, models: some, set: []string{"leap.mode=migrate", "leap.merge=2"}},
	{name: "leap,rows,owners", strategy: "leap", bare: true, exact: true, models: some, set: []string{"leap.mode=migrate", "leap.merge=2", "train.embeddings_at=owners"}},
	{name: "centric,rows,owners", strategy: "centric", bare: true, exact: true, models: some, set: []string{"topology=sharded", "train.embeddings_at=owners"}},
	{name: "leap,rows,full", strategy: "leap", bare: true, full: true, exact: true, models: some},
	{name: "grappa,rows", strategy: "grappa", bare: true, models: some, set: []string{"grappa.period=1", "grappa.groups=3"}},
	{name: "grappa,rows,strict", strategy: "grappa", bare: true, models: some, set: []string{"grappa.period=1", "grappa.loader=strict", "grappa.swept=2", "grappa.correction=node"}},
	{name: "grappa,rows,one", strategy: "grappa", bare: true, exact: true, models: some, set: []string{"grappa.groups=1"}},
	{name: "grappa,rows,owners", strategy: "grappa", bare: true, models: some, set: []string{"train.embeddings_at=owners"}},
	{name: "grappa,rows,links", strategy: "grappa", bare: true, task: "link", models: some, set: []string{"grappa.period=1", "grappa.groups=3"}},
	{name: "single,typed,rows", strategy: "single", typed: true, bare: true, exact: true},
	{name: "leap,typed,rows", strategy: "leap", typed: true, bare: true, exact: true},
	{name: "grappa,typed,rows", strategy: "grappa", typed: true, bare: true, set: []string{"grappa.period=1", "grappa.groups=3"}},
	{name: "single,typed,links", strategy: "single", task: "link", typed: true, exact: true, set: wrote},
	{name: "centric,typed,links", strategy: "centric", task: "link", typed: true, exact: true, set: slices.Concat(wrote, []string{"centric.cache=40"})},
	{name: "leap,typed,links,stay", strategy: "leap", task: "link", typed: true, exact: true, set: slices.Concat(wrote, []string{"leap.mode=stay"})},
	{name: "leap,typed,links,migrate", strategy: "leap", task: "link", typed: true, exact: true, set: slices.Concat(wrote, []string{"leap.mode=migrate"})},
	{name: "grappa,typed,links", strategy: "grappa", task: "link", typed: true, set: slices.Concat(wrote, []string{"grappa.period=1", "grappa.groups=3"})},
	{name: "leap,rows,links", strategy: "leap", bare: true, task: "link", models: some, set: []string{"leap.mode=stay"}},
	{name: "single,triples", strategy: "single", task: "link", triples: true, exact: true},
	{name: "centric,triples", strategy: "centric", task: "link", triples: true, exact: true},
	{name: "leap,triples,stay", strategy: "leap", task: "link", triples: true, exact: true, set: []string{"leap.mode=stay"}},
	{name: "leap,triples,migrate", strategy: "leap", task: "link", triples: true, exact: true, set: []string{"leap.mode=migrate", "leap.cache=40"}},
	{name: "grappa,triples", strategy: "grappa", task: "link", triples: true, set: []string{"grappa.period=1", "grappa.groups=3"}},
	{name: "leap,triples,softmax", strategy: "leap", task: "link", triples: true, set: []string{"train.loss=sampled_softmax", "link.negatives=3", "link.ranks=20", "train.metric=mrr"}},

	{name: "graph", strategy: "graph", full: true, set: []string{"pipe.ways=3"}},
	{name: "graph,reader", strategy: "graph", full: true, models: some, set: []string{"pipe.ways=3", "pipe.first=reader"}},
	{name: "graph,previous", strategy: "graph", full: true, models: some, set: []string{"pipe.ways=2", "pipe.halo=previous-epoch"}},
	{name: "graph,sampled", strategy: "graph", full: true, models: some, set: []string{"pipe.ways=3", "pipe.halo=sampled", "pipe.share=40"}},
	{name: "graph,skip", strategy: "graph", full: true, models: some, set: []string{"pipe.ways=3", "pipe.halo=skip", "pipe.age=1"}},
}

// trains returns the models that the variant is trained with.
func (v *variant) trains() []model {
	if v.typed {
		return typed
	}
	if v.along {
		return along
	}
	if v.triples {
		return ofTriples
	}
	return slices.DeleteFunc(slices.Clone(models), func(m model) bool { return v.models != nil && !slices.Contains(v.models, m.name) })
}

// A model is one of the models, with settings.
type model struct {
	name, model string
	layers      int
	set         []string // "key=value" of --set
	usual       bool     // trained without -all, too
}

var models = []model{
	{name: "gat", model: "gat", layers: 2, usual: true},
	{name: "gatv2", model: "gat", layers: 2, set: []string{"gat.version=2", "gat.out_heads=2"}},
	{name: "gcn", model: "gcn", layers: 2, usual: true},
	{name: "gcnii", model: "gcnii", layers: 3},
	{name: "gin", model: "gin", layers: 2, usual: true},
	{name: "gin-jump", model: "gin", layers: 2, set: []string{"model.jump=cat", "model.head=linear"}},
	{name: "mlp", model: "mlp", layers: 2},
	{name: "resgcn", model: "resgcn", layers: 3},
	{name: "sage", model: "sage", layers: 2, usual: true},
	{name: "sage-gcn", model: "sage", layers: 2, set: []string{"sage.aggregator=gcn"}},
	{name: "sage-max", model: "sage", layers: 2, set: []string{"sage.aggregator=max"}},
}

// some are the models of variants that are only trained with a few: one with weighted edges
// and one with a weight of its own for each vertex itself.
var some = []string{"gcn", "sage"}
