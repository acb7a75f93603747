package auto

import (
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// An Outline is what a plan knows of a job, before any node has opened a shard.
type Outline struct {
	Recipe *recipe.Recipe
	About  dataset.About
	Sparse bool   // features
	Bytes  uint64 // of the files of all shards
	Memory uint64 // that a node may use which trains by itself; 0: no bound
}

const (
	// wide is how many times longer than an epoch on one node questions and gradients alone must
	// take several nodes, for one to train by itself. The former is an upper bound, and the latter a
	// lower one: of two nodes that compute in no time.
	wide = 1.5
	// longest is how many seconds such a job may take. If its node is lost, another one begins anew.
	longest = 60
)

// Alone reports whether a node that holds all shards surely trains a job faster by itself than with
// others, and why. It follows from the outline alone, at the same rates everywhere, and does not
// depend on how many other nodes there are: so it stays true while nodes come and go.
func Alone(o *Outline) (why string, alone bool) {
	r := o.Recipe
	if r.Links != nil || r.EmbeddingsAt == recipe.AtOwners || r.Split >= len(o.About.Splits) || o.About.Splits[r.Split].Train == 0 || o.About.Vertices == 0 || r.Epochs < 1 || r.EvalEvery < 1 {
		return "", false
	}
	var one, several sum
	weights, arena := 0, 0
	for _, variant := range r.Models() {
		model, err := nn.New(variant.Model, o.About.Features, o.About.Classes)
		if err != nil {
			return "", false
		}
		rows := o.rows(model.Hops())
		one.add(o.computes(model, rows))
		weights += model.Size()
		several.layers = max(several.layers, model.Hops())
		inputs, blocks := rows.sizes()
		bytes, beside := model.Forecast(nn.InputSize{Rows: inputs, Sparse: o.Sparse, Entries: int(o.entries() * float64(inputs))}, blocks)
		arena = max(arena, bytes+beside)
	}
	rates := assumed(weights)
	batch := o.batch()
	steps := float64((int(o.About.Splits[r.Split].Train) + batch - 1) / batch)
	evaluations := 1 / float64(r.EvalEvery)
	alike := steps*(one.step+stepTime) + evaluations*one.evaluation
	rounds, came := exchange.Rounds(2, numberBytes*weights)
	// An evaluation asks for the rows of each layer, and for scores; an epoch's end asks once.
	least := steps*(float64(rounds)*rates.RoundTrip+came/rates.Bandwidth) + rates.RoundTrip*(1+evaluations*float64(several.layers+1))
	if least < wide*alike || alike*float64(r.Epochs) > longest || o.Memory > 0 && o.takes(weights, arena) > o.Memory/2 {
		return "", false
	}
	return fmt.Sprintf("one node holds all shards and takes about %s an epoch by formula, where what several send each other takes %s", duration(alike), duration(least)), true
}

// A sum is what the models of a job take.
type sum struct {
	step, evaluation float64 // seconds
	layers           int
}

func (s *sum) add(o sum) { s.step, s.evaluation = s.step+o.step, s.evaluation+o.evaluation }

func (o *Outline) batch() int {
	train := int(o.About.Splits[o.Recipe.Split].Train)
	if o.Recipe.Batch > 0 {
		return min(train, o.Recipe.Batch)
	}
	return train
}

// entries returns how many numbers a row of features has, or more.
func (o *Outline) entries() float64 {
	columns := float64(o.About.Features)
	if !o.Sparse {
		return columns
	}
	// In files an entry takes six bytes or more, an edge four, and a vertex two offsets.
	const entry, edge, vertex = 6, 4, 16
	rest := float64(o.Bytes) - edge*float64(o.About.Edges) - vertex*float64(o.About.Vertices)
	return min(columns, max(1, rest/entry/float64(o.About.Vertices)))
}

// A reach is about how many rows and edges a batch has, from the roots outwards: no fewer, unless
// its vertices have more than twice as many neighbours as others.
type reach struct{ rows, edges []float64 }

func (o *Outline) rows(hops int) (all reach) {
	const crowded = 2
	vertices, edges := float64(o.About.Vertices), float64(o.About.Edges)
	all.rows, all.edges = []float64{float64(o.batch())}, []float64{0}
	for h := range hops {
		last, each := all.rows[h], crowded*edges/vertices
		if h < len(o.Recipe.Fanouts) && o.Recipe.Fanouts[h] > 0 {
			each = float64(o.Recipe.Fanouts[h])
		}
		some := min(edges, last*each)
		all.edges, all.rows = append(all.edges, some+last), append(all.rows, min(vertices, last+some))
	}
	return all
}

// sizes returns the sizes of blocks, the outermost first.
func (r *reach) sizes() (inputs int, blocks []nn.Size) {
	for h := len(r.rows) - 1; h > 0; h-- {
		blocks = append(blocks, nn.Size{Targets: int(r.rows[h-1]), Sources: int(r.rows[h]), Entries: int(r.edges[h])})
	}
	return int(r.rows[len(r.rows)-1]), blocks
}

// The time of computing, on two cores of any current machine.
const (
	pace     = 2e10 // operations on numbers a second
	edgeTime = 2e-9 // seconds of an edge, beside its numbers
	stepTime = 5e-5 // seconds of a step, beside its rows
)

// computes returns what a step of a model and an evaluation take, or more.
func (o *Outline) computes(m *nn.Model, r reach) (s sum) {
	vertices, edges := float64(o.About.Vertices), float64(o.About.Edges)
	at := len(r.rows) - 1 // hops beyond the roots
	for i, stage := range m.Stages() {
		numbers, columns := 0.0, float64(min(stage.In, stage.Out))
		passes := 6.0 // a product and a sum: forward, and for the errors of weights and of rows
		for _, p := range m.Params() {
			if !strings.HasPrefix(p.Name, stage.Name+".") {
				continue
			}
			if i == 0 && p.Rows == o.About.Features {
				numbers += o.entries() * float64(p.Cols)
			} else {
				numbers += float64(p.Rows) * float64(p.Cols)
			}
		}
		if i == 0 {
			passes = 4 // features have no errors
			columns = min(o.entries(), float64(stage.Out))
		}
		s.step += passes * r.rows[at] * numbers / pace
		s.evaluation += 2 * vertices * numbers / pace
		if stage.Hops > 0 {
			edge := edgeTime + 2*columns/pace
			s.step += 2 * r.edges[at] * edge
			s.evaluation += (edges + vertices) * edge
			at--
		}
	}
	return s
}

// takes returns the memory of a node that trains alone, or more.
func (o *Outline) takes(weights, arena int) uint64 {
	const (
		rows  = 16 // of weights: moments, sums, the best ones, and what is written
		ahead = 5  // batches, each no larger than what is computed of it
		wider = 3  // layers of exact inference
	)
	width := max(o.Recipe.Model.Hidden*max(1, o.Recipe.Model.Heads), o.About.Classes, int(o.entries()))
	table := embedding.Bytes(o.About.Vertices, 0, o.Recipe.Embeddings, o.Recipe.Optimizer)
	return table + budget.Program + o.Bytes + rows*numberBytes*uint64(weights) + ahead*uint64(arena) + wider*numberBytes*uint64(width)*o.About.Vertices
}
