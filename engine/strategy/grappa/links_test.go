package grappa_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// linking has a recipe learn links.
func linking(r recipe.Recipe, settings ...string) recipe.Recipe {
	r.Learn(task.Named("link"))
	r.Links.Width, r.Links.Negatives = 3, 2
	r.Sharing = apart(settings...)
	return r
}

// Gradients of pairs, and the losses, do not depend on how many nodes run the groups.
func TestGradientsOfPairsAreThoseOfOneNode(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	for _, model := range []string{"gcn", "sage", "gat", "gin"} {
		for _, from := range link.Froms {
			for _, settings := range [][]string{
				{"groups=3"}, {"groups=5", "loader=strict", "swept=1"}, {"groups=6", "sweep=off", "depth=2"}, {"groups=3", "phases=2", "swept=2"},
				{"groups=3", "loader=strict", "correction=message"}, {"groups=4", "loader=halo-sampled", "cap=12"},
			} {
				r := linking(traintest.ExactRecipe(model), settings...)
				if r.Links.From = from; model == "gat" && slices.ContainsFunc(settings, func(s string) bool { return strings.HasSuffix(s, "message") || strings.HasSuffix(s, "sampled") }) {
					continue // which messages can't count for
				}
				if from != link.Uniform {
					r.Links.Decoder = "mlp"
				}
				o := isolation(traintest.Wide(train.Options{Threads: 1}))
				want := traintest.Started(t, r, shards, o)
				for _, nodes := range []int{2, 3, 5} {
					traintest.Within(t, fmt.Sprintf("%s, %s, %v on %d nodes", model, from, settings, nodes), r, shards, o, nodes, want, 1e-10)
				}
			}
		}
	}
}

// Pairs whose edges have features are no exception.
func TestGradientsOfPairsWithFeaturesOfEdges(t *testing.T) {
	shards := traintest.Cut(t, enginetest.Described(true), 6)
	o := isolation(traintest.Wide(train.Options{Threads: 1}))
	for _, model := range []string{"gin", "mpnn"} {
		for _, settings := range [][]string{{"groups=1"}, {"groups=3"}, {"groups=6", "loader=strict", "swept=2"}} {
			r := linking(traintest.ExactRecipe(model), settings...)
			r.Model.EdgeFeatures, r.Batch = enginetest.DescribedColumns, 100
			alone := r
			if settings[0] == "groups=1" {
				alone.Sharing = strategy.Settings{}
			}
			want := traintest.Started(t, alone, shards, o)
			for _, nodes := range []int{2, 3, 5} {
				traintest.Within(t, fmt.Sprintf("%s, %v on %d nodes", model, settings, nodes), r, shards, o, nodes, want, 1e-10)
			}
		}
	}
}

// One group learns as one machine does, to the same bits.
func TestOneGroupLearnsPairsAsOneMachine(t *testing.T) {
	shards := traintest.Communities(t, 600)
	for _, from := range link.Froms {
		r := linking(traintest.Small("sage"), "groups=1")
		r.Links.From, r.Epochs, r.Batch, r.Sharing.Deterministic = from, 2, 300, true
		_, got := traintest.MustRun(t, r, shards, isolation(train.Options{Threads: 1}))
		r.Sharing = traintest.Short("sage").Sharing
		r.Sharing.Deterministic = true
		if _, want := traintest.MustRun(t, r, shards, train.Options{Threads: 1}); traintest.Learnt(got) != traintest.Learnt(want) || got[1].Seen != 1 {
			t.Errorf("%s: %s\nand one machine\n%s", from, traintest.Learnt(got), traintest.Learnt(want))
		}
	}
}

// inside returns the pairs that a node has learnt in its last step. It fails the test if they, their
// negatives, or what blocks read lie outside of what a group has been given.
func inside(t *testing.T, l *train.Learner) (pairs []link.Pair) {
	t.Helper()
	s := l.Run.Batches.Slots[0]
	for i := range s.Groups {
		g := &s.Groups[i]
		if len(g.Roots) == 0 {
			continue
		}
		c := traintest.IsolatedOf(l).Of(g.Roots)
		for w := g.Labels; len(w) > 0; w = w[link.WordsOfPair:] {
			of := link.Pair{Source: g.Roots[w[0]], Target: g.Roots[w[1]], Relation: uint32(w[2] >> 1)}
			is := w[2]&1 == 1
			if !c.Inner(of.Source) || !c.Inner(of.Target) || is && !c.Root(of.Source) {
				t.Fatalf("group %d learns %v in super-epoch %d", c.Group, of, c.Super)
			}
			if is {
				pairs = append(pairs, of)
			}
		}
		for _, v := range g.Outermost() {
			if !c.Has(v) {
				t.Fatalf("group %d reads %d", c.Group, v)
			}
		}
	}
	return pairs
}

// What groups read and learn in a step lies in what they have been given: pairs in their shards,
// blocks in their contexts, and neither has an edge that is held out or that the step learns. Over a
// whole sweep all training pairs are learnt.
func TestPairsLieInTheirGroups(t *testing.T) {
	shards := traintest.Communities(t, 600)
	for _, nodes := range []int{1, 3} {
		r := linking(traintest.Small("sage"), "groups=5", "period=1", "swept=1")
		r.Links.From, r.Batch, r.Fanouts, r.Epochs = link.InBatch, 300, nil, 9
		m := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes))
		all := m.Start(t, r, shards, isolation(train.Options{Threads: 1}))
		one := traintest.IsolatedOf(all[0])
		links := all[0].Run.Data.Links
		out := map[[2]uint32]bool{}
		for _, pair := range slices.Concat(links.Of[graph.Validation], links.Of[graph.Test]) {
			out[[2]uint32{pair.Source, pair.Target}], out[[2]uint32{pair.Target, pair.Source}] = true, true
		}
		learnt := map[link.Pair]bool{}
		for super := range one.Schedule.Slots() {
			if err := m.Each(func(node int) error {
				n := traintest.IsolatedOf(all[node])
				view, err := n.BringView(t.Context(), super, n.Now)
				if err == nil {
					n.Use(view)
					n.BeginSteps(1, 0)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			now := map[link.Pair]bool{}
			for step := range all[0].Run.Batches.Steps {
				if err := m.Each(func(node int) error {
					_, err := traintest.StepOnce(t.Context(), all[node], super+1, step)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				own := map[[2]uint32]bool{}
				var pairs []link.Pair
				for _, l := range all {
					pairs = append(pairs, inside(t, l)...)
				}
				for _, of := range pairs {
					own[[2]uint32{of.Source, of.Target}], own[[2]uint32{of.Target, of.Source}] = true, true
				}
				for _, l := range all {
					s := l.Run.Batches.Slots[0]
					for i := range s.Groups {
						for _, b := range s.Groups[i].Batch.Blocks {
							for target := range b.Rows {
								for _, source := range b.Indices[b.Indptr[target]:b.Indptr[target+1]] {
									if e := [2]uint32{b.Vertices[source], b.Vertices[target]}; e[0] != e[1] && (out[e] || own[e]) {
										t.Fatalf("a message passes along %v", e)
									}
								}
							}
						}
					}
				}
				for _, pair := range pairs {
					if now[pair] {
						t.Fatalf("%v is learnt twice", pair)
					}
					now[pair], learnt[pair] = true, true
				}
			}
			if len(now) == 0 || len(now) == len(links.Of[graph.Train]) {
				t.Errorf("%d pairs are learnt in super-epoch %d", len(now), super)
			}
			for _, l := range all {
				traintest.IsolatedOf(l).EndSteps()
			}
		}
		if len(learnt) != len(links.Of[graph.Train]) {
			t.Errorf("%d of %d pairs are learnt in a sweep", len(learnt), len(links.Of[graph.Train]))
		}
	}
}

// In a step of pairs only gradients travel, and between switches rows of features.
func TestOnlyGradientsOfPairsTravel(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for _, model := range []string{"gcn", "sage"} {
		r := linking(traintest.Small(model), "period=2", "swept=1")
		r.Batch, r.Epochs, r.EvalEvery = 300, 4, 1<<20
		_, reports := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).MustRun(t, r, shards, isolation(train.Options{Threads: 1}))
		for i, e := range reports[0] {
			for kind, bytes := range e.Sent.Bytes {
				switch k := peer.Kind(kind); {
				case k == peer.Topology && i == 0: // all edges, at the start
				case k == peer.Control, k == peer.Gradient && bytes > 0, k == peer.Shard && (bytes > 0) == (i%2 == 0):
				case bytes != 0:
					t.Errorf("%s: epoch %d sends %d bytes of %s", model, e.Epoch, bytes, k)
				}
			}
		}
	}
}

// Whatever settings say, hashes are the same on any number of nodes, losses are means over the pairs
// that are learnt, and all edges that messages may pass along are seen in the end.
func TestLinksOfGroupsAreLearnt(t *testing.T) {
	shards := traintest.Communities(t, 900)
	for name, settings := range map[string][]string{
		"halo": {"period=1"}, "strict": {"period=1", "loader=strict", "groups=5", "swept=1"}, "phases": {"period=2", "groups=5", "phases=3"},
		"plateau": {"period=1", "switch=plateau", "swept=1"}, "sampled": {"period=1", "loader=halo-sampled", "cap=60"}, "message": {"period=1", "loader=strict", "correction=message"},
	} {
		r := linking(traintest.Small("sage"), settings...)
		r.Batch, r.Epochs, r.Sharing.Deterministic = 300, 6, true
		_, one := traintest.MustRun(t, r, shards, isolation(train.Options{Threads: 1}))
		for _, nodes := range []int{2, 3} {
			if _, all := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)).MustRun(t, r, shards, isolation(train.Options{Threads: 1})); traintest.Learnt(all[1]) != traintest.Learnt(one) {
				t.Errorf("%s on %d nodes:\n%s\nand on one\n%s", name, nodes, traintest.Learnt(all[1]), traintest.Learnt(one))
			}
		}
		l, sum, pairs := traintest.Started(t, r, shards, isolation(train.Options{Threads: 1})), 0.0, 0
		for step := range l.Run.Batches.Steps {
			loss, err := traintest.StepOnce(t.Context(), l, 1, step)
			if err != nil {
				t.Fatal(err)
			}
			sum, pairs = sum+loss, pairs+l.Run.Batches.Slots[0].Pairs.Count()
		}
		if want := sum / float64(pairs); pairs == 0 || pairs == len(l.Run.Data.Training) || math.Abs(one[0].Loss-want) > 1e-9 {
			t.Errorf("%s: the first epoch has a loss of %g, and its %d pairs of %g", name, one[0].Loss, pairs, want)
		}
		if name != "halo" {
			continue
		}
		if one[5].Seen != 1 {
			t.Errorf("%g of edges are seen", one[5].Seen)
		}
		if _, there := traintest.MustRun(t, r, shards, traintest.Abroad(isolation(train.Options{Threads: 2}), nil)); traintest.Learnt(there) != traintest.Learnt(one) {
			t.Errorf("on a device with memory of its own:\n%sand here:\n%s", traintest.Learnt(there), traintest.Learnt(one))
		}
	}
}

// The gradient of a step is that of a mean, written down here, over the pairs both of whose vertices
// lie in the shards of a group: embeddings are of a layer of GraphSAGE, and neighbours those that
// training sees but for the step's own pairs.
func TestTheLossIsAMeanOverPairsInside(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	r := linking(traintest.ExactRecipe("sage"), "groups=3", "swept=1")
	r.Model.Layers, r.Model.Dropout, r.Model.InputDropout, r.Fanouts, r.Features, r.Batch = 1, 0, 0, nil, "none", 40
	l := traintest.Started(t, r, shards, isolation(traintest.Wide(train.Options{Threads: 1})))
	loss, err := traintest.StepOnce(t.Context(), l, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, data, s := traintest.IsolatedOf(l), l.Run.Data, l.Run.Batches.Slots[0]
	shard := func(v uint32) int {
		return slices.IndexFunc(shards, func(s *graph.Shard) bool { return v < s.First+uint32(s.Vertices) })
	}
	var pairs []link.Pair
	own := map[[2]uint32]bool{}
	for _, at := range s.Roots {
		pair := data.Links.Of[graph.Train][at]
		g := shard(pair.Source) / 2
		if to := shard(pair.Target); to/2 == g || slices.Contains(n.Schedule.Swept(g, 0), to) {
			pairs = append(pairs, pair)
			own[[2]uint32{pair.Source, pair.Target}], own[[2]uint32{pair.Target, pair.Source}] = true, true
		}
	}
	negatives := map[link.Pair][]uint32{}
	for i := range s.Groups {
		g := &s.Groups[i]
		var of link.Pair
		for w := g.Labels; len(w) > 0; w = w[link.WordsOfPair:] {
			if u, v := g.Roots[w[0]], g.Roots[w[1]]; w[2] == 1 {
				of = link.Pair{Source: u, Target: v}
				negatives[of] = []uint32{}
			} else {
				negatives[of] = append(negatives[of], v)
			}
		}
	}
	if len(pairs) != len(negatives) || len(pairs) < 10 || len(pairs) > 35 {
		t.Fatalf("%d pairs lie inside, and %d are learnt", len(pairs), len(negatives))
	}
	x := func(v uint32, column int) float64 {
		of := shards[shard(v)]
		return float64(of.Dense[int(v-of.First)*of.Features+column])
	}
	const width = 3
	columns := shards[0].Features
	means := map[uint32][]float64{}
	mean := func(v uint32) []float64 {
		if means[v] == nil {
			means[v] = make([]float64, columns)
			sources, _ := data.Topology.Row(int(v))
			sources = slices.DeleteFunc(slices.Clone(sources), func(u int32) bool { return own[[2]uint32{uint32(u), v}] })
			for _, u := range sources {
				for c := range means[v] {
					means[v][c] += x(uint32(u), c) / float64(len(sources))
				}
			}
		}
		return means[v]
	}
	plain := func(w []float64) (sum float64) {
		z := func(v uint32) (row [width]float64) {
			m := mean(v)
			for j := range row {
				row[j] = w[2*columns*width+j]
				for c := range columns {
					row[j] += m[c]*w[c*width+j] + x(v, c)*w[(columns+c)*width+j]
				}
			}
			return row
		}
		for _, pair := range pairs {
			u := z(pair.Source)
			for i, v := range append([]uint32{pair.Target}, negatives[pair]...) {
				to, logit := z(v), 0.0
				for j := range to {
					logit += u[j] * to[j]
				}
				if i > 0 {
					logit = -logit
				}
				sum += math.Log1p(math.Exp(-logit)) / 3
			}
		}
		return sum
	}
	w := traintest.Initial(t, l.Model, r.Seed)
	if want := plain(w); math.Abs(loss-want) > 1e-9*want {
		t.Errorf("the loss is %v, and the sum %v", loss, want)
	}
	want := make([]float64, len(w))
	for i := range w {
		const h = 1e-5
		was := w[i]
		w[i] = was + h
		want[i] = plain(w)
		w[i] = was - h
		want[i] = (want[i] - plain(w)) / (2 * h * float64(len(pairs)))
		w[i] = was
	}
	if d := traintest.Distance(traintest.GradientOf(l), want); !(d < 1e-7) {
		t.Errorf("the gradient is %g off", d)
	}
}

// Notes say how many pairs groups learn. A job that would learn no pair is refused on all nodes.
func TestPairsThatGroupsDoNotLearn(t *testing.T) {
	shards := traintest.Tiny(t, 90, 6)
	noted := func(r recipe.Recipe, shards []*graph.Shard) string {
		t.Helper()
		return strings.Join(traintest.Started(t, r, shards, isolation(train.Options{Threads: 1})).Run.Notes, "; ")
	}
	r := linking(traintest.Small("sage"), "groups=3", "period=1", "swept=1")
	r.Batch, r.Epochs = 40, 4
	all := noted(r, shards)
	r.Epochs = 2
	some := noted(r, shards)
	r.Sharing = apart("groups=3", "sweep=off")
	never := noted(r, shards)
	r.Sharing = apart("groups=1")
	one := noted(r, shards)
	var of, now, reached, supers int
	if _, err := fmt.Sscanf(all, "groups learn the training pairs both of whose vertices they have: of %d about %d in a super-epoch, and %d in %d of them", &of, &now, &reached, &supers); err != nil || now >= of || reached != of || supers != 4 {
		t.Errorf("%v: %s", err, all)
	}
	some, _, _ = strings.Cut(some, "; ") // the next says that they are too few for a sweep
	if _, err := fmt.Sscanf(some, "groups learn the training pairs both of whose vertices they have: of %d about %d in a super-epoch, and %d in %d of them", &of, &now, &reached, &supers); err != nil || reached >= of || reached <= now || supers != 2 {
		t.Errorf("%v: %s", err, some)
	}
	if _, err := fmt.Sscanf(never, "groups learn %d of %d training pairs, those both of whose vertices they have, and never the others", &now, &of); err != nil || now >= of {
		t.Errorf("%v: %s", err, never)
	}
	if one != "" {
		t.Error(one)
	}
	apartOnly := between(traintest.Tiny(t, 90, 2))
	r.Sharing, r.Batch = apart("groups=2", "sweep=off"), 5
	for _, nodes := range []int{1, 2} {
		m := traintest.NewMesh(nodes, []int{0, 1 % nodes})
		for node, err := range traintest.Ends(t, m, apartOnly, func(_ int, to *recipe.Recipe, _ []*graph.Shard, o *train.Options) {
			*to, *o = r, isolation(*o)
		}) {
			if err == nil || !strings.Contains(err.Error(), "no group has both vertices of a training pair in super-epoch 1, so that nothing would be learnt: choose fewer {grappa.groups}") {
				t.Errorf("node %d of %d: %v", node, nodes, err)
			}
		}
	}
	r.Sharing = apart("groups=2", "period=1")
	if notes := noted(r, apartOnly); notes != "" {
		t.Error(notes)
	}
}

// between leaves edges out that do not lie between shards.
func between(shards []*graph.Shard) (all []*graph.Shard) {
	for _, s := range shards {
		of := *s
		of.Indptr, of.Indices = []int64{0}, nil
		for v := range s.Vertices {
			for _, u := range s.Indices[s.Indptr[v]:s.Indptr[v+1]] {
				if uint32(u) < s.First || uint32(u) >= s.First+uint32(s.Vertices) {
					of.Indices = append(of.Indices, u)
				}
			}
			of.Indptr = append(of.Indptr, int64(len(of.Indices)))
		}
		all = append(all, &of)
	}
	return all
}
