package link_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// linking returns a recipe that learns links, with all that could make a step depend on who
// computes it.
func linking(model string) recipe.Recipe {
	r := traintest.ExactRecipe(model)
	r.Learn(task.Named("link"))
	r.Links.Width, r.Links.Negatives = 3, 2
	return r
}

// Gradients of several nodes are those of one, and so are the losses.
func TestGradientsAreThoseOfOneNode(t *testing.T) {
	shards := enginetest.Tiny(t, 60, 5)
	for _, model := range []string{"gcn", "sage", "gat", "gin"} {
		r := linking(model)
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		for _, nodes := range []int{1, 2, 3, 5} {
			for how, sharing := range traintest.Sharings(nodes) {
				r.Sharing = sharing
				traintest.Within(t, fmt.Sprintf("%s on %d nodes by %s", model, nodes, how), r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
			}
		}
	}
}

// Gradients of several nodes are those of one with each decoder, loss and origin of negatives.
func TestGradientsOfDecodersAreThoseOfOneNode(t *testing.T) {
	shards := enginetest.Tiny(t, 60, 5)
	for _, s := range []struct{ decoder, loss, from string }{
		{"distmult", link.Margin, link.PerSource}, {"mlp", link.BPR, link.InBatch}, {"mlp", link.CrossEntropies, ""}, {"distmult", link.Softmax, ""},
		{"mlp", link.Softmax, link.InBatch},
	} {
		r := linking("sage")
		r.Links.Decoder, r.Links.From, r.Loss = s.decoder, s.from, s.loss
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		if want.Model.Added() == 0 {
			t.Fatal("the decoder has no weights")
		}
		for _, nodes := range []int{1, 2, 3, 5} {
			for how, sharing := range traintest.Sharings(nodes) {
				r.Sharing = sharing
				traintest.Within(t, fmt.Sprintf("%s, %s, %s on %d nodes by %s", s.decoder, s.loss, s.from, nodes, how), r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
			}
		}
	}
}

// Gradients of several nodes are those of one where models read features of edges, too.
func TestGradientsWithFeaturesOfEdgesAreThoseOfOneNode(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Described(true), 6)
	for _, model := range []string{"gat", "gin", "mpnn"} {
		r := linking(model)
		r.Model.EdgeFeatures = enginetest.DescribedColumns
		want := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1}))
		r.Model.EdgeFeatures = 0
		if without := traintest.Started(t, r, shards, traintest.Wide(train.Options{Threads: 1})); without.Model.Size() >= want.Model.Size() {
			t.Fatalf("%s has %d weights with features of edges, and %d without", model, want.Model.Size(), without.Model.Size())
		}
		r.Model.EdgeFeatures = enginetest.DescribedColumns
		for _, nodes := range []int{1, 2, 3, 5} {
			for how, sharing := range traintest.Sharings(nodes) {
				r.Sharing = sharing
				traintest.Within(t, fmt.Sprintf("%s on %d nodes by %s", model, nodes, how), r, shards, traintest.Wide(train.Options{Threads: 1}), nodes, want, 1e-10)
			}
		}
	}
}

// Decoders with weights learn citations, on one node as on several and on devices with memory of
// their own, and go on from checkpoints to the same bits.
func TestDecodersAreLearnt(t *testing.T) {
	shards := enginetest.Cora(t)
	for decoder, loss := range map[string]string{"distmult": link.Margin, "mlp": link.CrossEntropies} {
		r := recipe.DefaultRecipe("gcn")
		r.Learn(task.Named("link"))
		r.Features, r.Model.Dropout, r.Batch, r.Epochs, r.Sharing.Deterministic = "none", 0, 512, 4, true
		r.Links.Decoder, r.Links.Ranks, r.Loss, r.Metric, r.Optimizer.WeightDecay = decoder, 50, loss, task.MRR, 0
		result, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
		best := result.Best.Scores.Metrics
		if best.Test[task.ROCAUC] < 0.8 || best.Test[task.MRR] < 0.3 || best.Test["hits_at_10"] < 0.7 || best.Train[task.MRR] != 0 {
			t.Errorf("%s: %v", decoder, best)
		}
		if m := best.Val; !(m["hits_at_1"] <= m[task.MRR] && m["hits_at_1"] <= m["hits_at_3"] && m["hits_at_3"] <= m["hits_at_10"]) {
			t.Errorf("%s: %v", decoder, m)
		}
		if _, there := traintest.MustRun(t, r, shards, traintest.Abroad(train.Options{Threads: 2}, nil)); traintest.Learnt(there) != traintest.Learnt(one) {
			t.Errorf("%s on a device with memory of its own:\n%sand here:\n%s", decoder, traintest.Learnt(there), traintest.Learnt(one))
		}
		sameElsewhere(t, decoder, r, shards, one, 2, "leap")
	}
}

// sameElsewhere fails unless a job comes to what one node has learned of it: from a checkpoint after
// some of its epochs, and on three nodes by each strategy.
func sameElsewhere(t *testing.T, name string, r recipe.Recipe, shards []*graph.Shard, one []trained.Epoch, first int, by ...string) {
	t.Helper()
	resumed, half := train.Options{Threads: 1, Dir: t.TempDir(), Dataset: "d", Resume: true}, r
	half.Epochs = first
	traintest.MustRun(t, half, shards, resumed)
	if _, rest := traintest.MustRun(t, r, shards, resumed); len(rest) != len(one)-first || traintest.Learnt(rest) != traintest.Learnt(one[first:]) {
		t.Errorf("%s from a checkpoint:\n%sand at once:\n%s", name, traintest.Learnt(rest), traintest.Learnt(one[first:]))
	}
	for _, how := range by {
		r.Sharing = strategy.Given(how)
		r.Sharing.Deterministic = true
		_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
		for node, got := range reports {
			last := len(one) - 1
			if traintest.Learnt(got) != traintest.Learnt(one) || fmt.Sprint(got[last].Scores.Metrics) != fmt.Sprint(one[last].Scores.Metrics) {
				t.Errorf("%s by %s, node %d:\n%sand one node:\n%s", name, how, node, traintest.Learnt(got), traintest.Learnt(one))
			}
		}
	}
}

// No block has an edge of validation or test, or one of its own step in either direction, while
// the graph has all of them.
func TestBlocksLackWhatIsToBeFoundOut(t *testing.T) {
	shards := enginetest.Tiny(t, 200, 5)
	r := linking("gcn")
	r.Fanouts, r.Batch = nil, 40
	for nodes := 1; nodes <= 3; nodes++ {
		r.Sharing = strategy.Given("leap")
		whole, err := dataset.Open(shards, 0, "none")
		if err != nil {
			t.Fatal(err)
		}
		held, left := 0, 0 // entries of edges that are for training: of the step, and of others
		m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
		all := m.Start(t, r, shards, train.Options{Threads: 1})
		links := all[0].Run.Data.Links
		if len(links.Of[graph.Validation]) == 0 || len(links.Of[graph.Test]) == 0 {
			t.Fatal("nothing is held out")
		}
		out := map[link.Pair]bool{}
		for _, pair := range slices.Concat(links.Of[graph.Validation], links.Of[graph.Test]) {
			out[pair], out[link.Pair{Source: pair.Target, Target: pair.Source}] = true, true
		}
		for step := range all[0].Run.Batches.Steps {
			err := m.Each(func(node int) error {
				_, err := traintest.StepOnce(t.Context(), all[node], 1, step)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			own := map[link.Pair]bool{}
			for _, at := range all[0].Run.Batches.Roots(step) {
				pair := links.Of[graph.Train][at]
				own[pair], own[link.Pair{Source: pair.Target, Target: pair.Source}] = true, true
			}
			for _, l := range all {
				s := l.Run.Batches.Slots[0]
				for i := range s.Groups {
					for _, b := range s.Groups[i].Batch.Blocks {
						for target := range b.Rows {
							for _, source := range b.Indices[b.Indptr[target]:b.Indptr[target+1]] {
								u, v := b.Vertices[source], b.Vertices[target]
								if u == v {
									continue
								}
								if out[link.Pair{Source: u, Target: v}] {
									t.Fatalf("%d nodes, step %d: messages pass from %d to %d, which is held out", nodes, step, u, v)
								}
								if own[link.Pair{Source: u, Target: v}] {
									t.Fatalf("%d nodes, step %d: messages pass from %d to %d, which the step learns", nodes, step, u, v)
								}
								left++
							}
							sources, _ := whole.Topology.Row(int(b.Vertices[target]))
							for _, u := range sources {
								if own[link.Pair{Source: uint32(u), Target: b.Vertices[target]}] {
									held++
								}
							}
						}
					}
				}
			}
		}
		if held == 0 || left == 0 {
			t.Errorf("%d nodes: %d edges were left out and %d are there: nothing is shown", nodes, held, left)
		}
		for _, l := range all { // evaluations read the same edges
			for v := range l.Run.Data.Topology.Vertices() {
				sources, _ := l.Run.Data.Topology.Row(v)
				for _, u := range sources {
					if out[link.Pair{Source: uint32(u), Target: uint32(v)}] {
						t.Fatalf("%d nodes: evaluations see the edge from %d to %d, which is held out", nodes, u, v)
					}
				}
			}
		}
	}
}

// Citations are found, and other devices and several nodes come to what one comes to.
func TestLinksAreLearnt(t *testing.T) {
	shards := enginetest.Cora(t)
	r := recipe.DefaultRecipe("gcn")
	r.Learn(task.Named("link"))
	r.Features, r.Model.Dropout, r.Batch, r.Epochs, r.Sharing.Deterministic = "none", 0, 512, 6, true
	result, one := traintest.MustRun(t, r, shards, train.Options{Threads: 2})
	first, best := one[0].Scores.Metrics, result.Best.Scores.Metrics
	for part, m := range map[string]map[string]float64{"train": best.Train, "val": best.Val, "test": best.Test} {
		if m[task.ROCAUC] < 0.85 || m[task.AveragePrecision] < 0.85 {
			t.Errorf("%s: %v", part, m)
		}
	}
	if best.Val[task.ROCAUC] < first.Val[task.ROCAUC] || result.Best.Eval.Score != best.Val[task.ROCAUC] || result.Best.Eval.Val != nil {
		t.Errorf("the first epoch has %v, the best %+v", first.Val, result.Best.Eval)
	}
	// A device with memory of its own could hold the edges, with those of the step among them.
	if _, there := traintest.MustRun(t, r, shards, traintest.Abroad(train.Options{Threads: 2}, nil)); traintest.Learnt(there) != traintest.Learnt(one) {
		t.Errorf("on a device with memory of its own:\n%sand here:\n%s", traintest.Learnt(there), traintest.Learnt(one))
	}
	r.Sharing = strategy.Given("centric")
	r.Sharing.Deterministic = true
	_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, train.Options{Threads: 1})
	for node, got := range reports {
		if traintest.Learnt(got) != traintest.Learnt(one) || fmt.Sprint(got[5].Scores.Metrics) != fmt.Sprint(one[5].Scores.Metrics) {
			t.Errorf("node %d:\n%sand one node:\n%s", node, traintest.Learnt(got), traintest.Learnt(one))
		}
		// All embeddings go to all others, and are counted.
		sent := uint64(0)
		for _, bytes := range got[5].Scores.Sent.Bytes {
			sent += bytes
		}
		if least := uint64(2 * 4 * 2708 * r.Links.Width); sent < least || got[5].Scores.Seconds <= 0 {
			t.Errorf("node %d counts %d bytes of its evaluation, want more than %d", node, sent, least)
		}
	}
}

// What does not fit together is refused in a sentence.
func TestRefusals(t *testing.T) {
	about := dataset.About{Vertices: 100, Edges: 1000, Features: 5}
	for want, change := range map[string]func(r *recipe.Recipe, about *dataset.About){
		"": func(*recipe.Recipe, *dataset.About) {},
		"{strategy} p3 learns no links, and the task is link: choose one of single, centric, leap, grappa":   func(r *recipe.Recipe, _ *dataset.About) { r.Sharing.Strategy = "p3" },
		"{strategy} auto learns no links, and the task is link: choose one of single, centric, leap, grappa": func(r *recipe.Recipe, _ *dataset.About) { r.Sharing.Strategy = "auto" },
		"{strategy} pipe learns no links, and the task is link: choose one of single, centric, leap, grappa": func(r *recipe.Recipe, _ *dataset.About) { r.Sharing.Strategy = "pipe" },
		"{leap.sync_every} is 3, and the task is link, which adds up gradients in each step: leave it out":   func(r *recipe.Recipe, _ *dataset.About) { r.Sharing = strategy.Given("leap", "leap.sync_every=3") },
		"grappa.correction=node weighs the losses of vertices by the neighbours that their groups see, and a pair": func(r *recipe.Recipe, _ *dataset.About) {
			r.Sharing = strategy.Given("grappa", "grappa.correction=node")
		},
		"grappa.loss=groups weighs groups by their vertices, and {task} link learns pairs: leave it out": func(r *recipe.Recipe, _ *dataset.About) { r.Sharing = strategy.Given("grappa", "grappa.loss=groups") },
		"grappa.average_every=2: {task} link adds up gradients in each step: leave it out": func(r *recipe.Recipe, _ *dataset.About) {
			r.Sharing = strategy.Given("grappa", "grappa.average_every=2")
		},
		"{grappa.switch}=plateau needs validation edges to compare epochs by, and {edge-split} leaves none": func(r *recipe.Recipe, _ *dataset.About) {
			r.Sharing, r.Links.Split = strategy.Given("grappa", "grappa.switch=plateau"), [3]float64{0.9, 0, 0.1}
		},
		"{topology} is sharded, and {task} link is learnt where each node has all edges: leave it out":               func(r *recipe.Recipe, _ *dataset.About) { r.Sharing = strategy.Given("leap", "topology=sharded") },
		"{split} is 1, and {task} link splits edges and not vertices: leave it out, and give {edge-split}":           func(r *recipe.Recipe, _ *dataset.About) { r.Split = 1 },
		"{batch} is full, and no messages pass along the edges of a step of {task} link, so that none would be left": func(r *recipe.Recipe, _ *dataset.About) { r.Batch = 0 },
		"{batch} is 850, and the dataset has about 850 edges for training at most":                                   func(r *recipe.Recipe, _ *dataset.About) { r.Batch = 850 },
		"the dataset has no edges to learn":                                         func(_ *recipe.Recipe, a *dataset.About) { a.Edges = 0 },
		"the dataset has no features":                                               func(_ *recipe.Recipe, a *dataset.About) { a.Features = 0 },
		"{train.class_weights} weighs classes, and the task is link":                func(r *recipe.Recipe, _ *dataset.About) { r.Weights = []float64{1} },
		"{train.class_weights} weighs classes, and the task is link: leave it out":  func(r *recipe.Recipe, _ *dataset.About) { r.Balanced = true },
		"of the dataset's 1000 edges {edge-split} leaves fewer than 2 for training": func(r *recipe.Recipe, _ *dataset.About) { r.Links.Split = [3]float64{0.001, 0.5, 0.499} },
		"{sweep} link.width: embeddings of all models of a sweep have one width":    another(func(s *link.Spec) { s.Width++ }),
		"{sweep} link.negatives: all models of a sweep learn the same pairs":        another(func(s *link.Spec) { s.Negatives++ }),
		"{sweep} link.margin: the losses of all models of a sweep are compared":     another(func(s *link.Spec) { s.Margin++ }),
		"{sweep} link.ranks: all models of a sweep rank pairs alike":                another(func(s *link.Spec) { s.Ranks++ }),
		"{sweep} link.hits: all models of a sweep rank pairs alike":                 another(func(s *link.Spec) { s.Hits = []int{2} }),
		"{sweep} link.decoder: all models of a sweep score pairs alike":             another(func(s *link.Spec) { s.Decoder = "mlp" }),
		"{train.metric} is mrr, and {link.ranks} is 0, so that no pair has a rank":  func(r *recipe.Recipe, _ *dataset.About) { r.Metric = task.MRR },
		"at most 2147483647 may be: lower {link.width}": func(r *recipe.Recipe, _ *dataset.About) {
			r.Links.Decoder, r.Links.Width, r.Model.Hidden, r.Model.Layers = "mlp", 4096, 44300, 3
		},
		"{sweep} edge-split: all models of a sweep learn the same pairs":                                      another(func(s *link.Spec) { s.Split = [3]float64{0.8, 0.1, 0.1} }),
		"{edge-split} leaves none":                                                                            func(r *recipe.Recipe, _ *dataset.About) { r.Links.Split, r.Patience = [3]float64{0.9, 0, 0.1}, 3 },
		"{edge-split} has shares of 0.95 in all":                                                              func(r *recipe.Recipe, _ *dataset.About) { r.Links.Split[2] = 0.05 },
		"{train.loss} is \"softmax\": it is one of bce":                                                       func(r *recipe.Recipe, _ *dataset.About) { r.Loss = task.Softmax },
		"settings of links, such as {edge-split}, are for {task} link, and the task is class: leave them out": func(r *recipe.Recipe, a *dataset.About) { r.Learn(task.Named("class")); a.Classes = 3 },
		"the recipe does not say how edges are split":                                                         func(r *recipe.Recipe, _ *dataset.About) { r.Links = nil },
	} {
		r, a := linking("gcn"), about
		change(&r, &a)
		err := r.Check(a, strategies.All)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// How many pairs there are is known once the edges are. All nodes end with that.
	shards := enginetest.Tiny(t, 60, 5)
	edges := int(dataset.Describe(shards).Edges)
	for want, change := range map[string]func(r *recipe.Recipe){
		"pairs for training: no messages pass along the edges of a step, so give a smaller number": func(r *recipe.Recipe) { r.Batch = edges/2 - 1 },
		"need validation edges to compare epochs by, and none was drawn": func(r *recipe.Recipe) {
			r.Batch, r.Patience, r.Links.Split = 20, 2, [3]float64{0.5, 1e-9, 0.5 - 1e-9}
		},
		"the dataset has 0 pairs for training": func(r *recipe.Recipe) {
			r.Batch, r.Links.Split = 1, [3]float64{2.001 / float64(edges), 0.5, 0.5 - 2.001/float64(edges)}
			r.Seed = withoutTraining(t, r.Links, shards)
		},
	} {
		for nodes := 1; nodes <= 2; nodes++ {
			for node, err := range traintest.Ends(t, traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)), shards, func(_ int, of *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
				sharing := of.Sharing
				*of = linking("gcn")
				if of.Sharing, o.Strategies = sharing, strategies.All; nodes == 1 {
					of.Sharing = strategy.Settings{}
				}
				change(of)
			}) {
				if err == nil || !strings.Contains(err.Error(), want) || !train.Together(err) {
					t.Errorf("node %d of %d: %v, want %s", node, nodes, err, want)
				}
			}
		}
	}
}

// another makes a sweep of two models, whose settings of links differ.
func another(change func(s *link.Spec)) func(*recipe.Recipe, *dataset.About) {
	return func(r *recipe.Recipe, _ *dataset.About) {
		*r = traintest.Swept(*r, "lr=0.01", "lr=0.02")
		of := *r.Links
		change(&of)
		r.Sweep[1].Recipe.Links = &of
	}
}

// withoutTraining returns a seed by which no pair is for training.
func withoutTraining(t *testing.T, s *link.Spec, shards []*graph.Shard) uint64 {
	for seed := uint64(1); ; seed++ {
		d, err := dataset.Open(shards, 0, "none")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Link(t.Context(), s, seed); err != nil {
			t.Fatal(err)
		}
		if len(d.Training) == 0 {
			return seed
		}
	}
}

// Nodes that lack the memory for pairs and the copied edges all say so before any takes it.
func TestMemoryIsRefusedBeforeEdgesAreCopied(t *testing.T) {
	shards := enginetest.Cora(t)
	about := dataset.Describe(shards)
	r := recipe.DefaultRecipe("gcn")
	r.Learn(task.Named("link"))
	r.Features, r.Model.Hidden, r.Links.Width, r.Batch, r.Epochs = "none", 1, 1, 512, 1
	needs := about.LinkBytes(r.Links) + budget.Program
	for nodes := 1; nodes <= 2; nodes++ {
		if nodes > 1 {
			r.Sharing = strategy.Given("leap")
		}
		for node, err := range traintest.Ends(t, traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)), shards, func(node int, of *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
			*of, o.Strategies = r, strategies.All
			if node == nodes-1 {
				o.Memory = needs - 1
			}
		}) {
			want := "the training needs " + budget.Format(needs)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "{batch}") || nodes > 1 && !train.Together(err) {
				t.Errorf("node %d of %d: %v, want %s", node, nodes, err, want)
			}
		}
	}
	// No run takes less than was said.
	d, err := dataset.Open(shards, 0, "none")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Link(t.Context(), r.Links, 1); err != nil || d.Copied < about.LinkBytes(r.Links)*97/100 || d.Copied > 2*about.LinkBytes(r.Links) {
		t.Errorf("%d bytes were taken, and %d were expected: %v", d.Copied, about.LinkBytes(r.Links), err)
	}
}
