package nn

import (
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Step describes one step of a model in words, for whoever computes with its weights
// elsewhere.
type Step struct {
	Name     string   `json:"name"` // "edges", or that of a stage
	Equation string   `json:"equation"`
	Tensors  []string `json:"tensors"` // in the order in which they are used
	In       int      `json:"in"`      // columns
	Out      int      `json:"out"`
}

// Worded is a Conv that describes in sentences how it computes y of each vertex from rows
// x. What its edges are worth stands in the step "edges". It gets the whole name of a
// weight, and notes that it is used, from use.
type Worded interface {
	Words(use func(weight string) string) string
}

// edgesInWords describes what the in-edges of a vertex are, and their values.
func edgesInWords(f sample.Form) string {
	text := "An edge (u, v) carries rows from its source u to its target v. Edges from u to v that stand twice are one, with the sum of their weights; an edge without a weight weighs 1."
	if f.SelfLoops {
		text += " Each vertex without an edge to itself gets one of weight 1 (self-loops on)."
	} else {
		text += " No edges from vertices to themselves are added (self-loops off)."
	}
	switch f.Weighting {
	case sample.Sums:
		text += " The value of an edge is its weight."
	case sample.Symmetric:
		text += " The degree of a vertex is the sum of the weights of its in-edges, the self-loop among them. The value of an edge (u, v) is its weight / sqrt(degree(u) * degree(v)), or 0 where a degree is 0."
	default:
		text += " Weights do not count."
	}
	if f.Relations > 0 {
		text += fmt.Sprintf(" Each edge has one of %d relations, numbered as the dataset lists them; edges of different relations from u to v stay apart.", f.Relations)
	}
	if f.EdgeFeatures > 0 {
		text += fmt.Sprintf(" Each edge has a row e of %d features; those of edges that stand twice are averaged.", f.EdgeFeatures)
		if f.SelfLoops {
			text += " That of an added self-loop is the mean of those of the other in-edges, or zeros."
		}
	}
	if f.Ends != "" {
		text += " Relation i ends at vertices of the ith of these types, which are numbered as the dataset lists them: " + f.Ends + "."
	}
	return text
}

// wording collects the sentences of a step.
type wording struct {
	step      *Step
	sentences []string
}

func (w *wording) say(format string, values ...any) {
	w.sentences = append(w.sentences, fmt.Sprintf(format, values...))
}

// use notes that a tensor is used, and returns its name.
func (w *wording) use(name string) string {
	w.step.Tensors = append(w.step.Tensors, name)
	return name
}

// params uses two weights that follow each other.
func (w *wording) params(m *Model, first int) (a, b string) {
	return w.use(m.params[first].Name), w.use(m.params[first+1].Name)
}

func (w *wording) norm(m *Model, of string, first int) {
	gamma, beta := w.params(m, first)
	w.say("%s = (%s - mean) / sqrt(variance + 1e-5) * %s + %s, with mean and variance of each row (LayerNorm).", of, of, gamma, beta)
}

func (w *wording) activate(of string, a tensor.Activation) {
	switch a {
	case tensor.ReLU:
		w.say("%s = max(%s, 0) (ReLU).", of, of)
	case tensor.ELU:
		w.say("%s = %s where it is above 0, else exp(%s) - 1 (ELU).", of, of, of)
	}
}

func (w *wording) dropout(of string, p float64) {
	if p > 0 {
		w.say("In training alone: dropout of %v of %s.", p, of)
	}
}

// inWords describes a stage of a model, in the order of stage.answer.
func inWords(m *Model, s *stage) Step {
	step := Step{Name: s.info.Name, Tensors: []string{}, In: s.info.In, Out: s.info.Out}
	w := &wording{step: &step}
	switch s.jump {
	case JumpCat:
		step.In = s.info.CarryIn
		w.say("x = the results of all layers side by side, that of the first one first.")
	case JumpMax:
		w.say("x = the largest of the results of all layers, in each column.")
	}
	if s == m.stages[0] {
		w.dropout("x", m.spec.InputDropout)
	}
	if s.skip {
		w.say("x0 = x.")
	}
	if s.before {
		if s.preNorm >= 0 {
			w.norm(m, "x", s.preNorm)
		}
		if s.preRelu {
			w.activate("x", tensor.ReLU)
		}
		w.dropout("x", s.preDrop)
	}
	name := func(weight string) string { return w.use(s.info.Name + "." + weight) }
	if conv, ok := s.conv.(Worded); ok {
		w.say("%s", conv.Words(name))
	} else {
		var list []string
		for _, weight := range s.conv.Weights() {
			if weight.Name != Bias {
				list = append(list, name(weight.Name))
			}
		}
		w.say("y = the convolution %s of x, with %s.", m.spec.Model, strings.Join(list, ", "))
	}
	if s.bias >= 0 {
		w.say("y = y + %s.", w.use(m.params[s.bias].Name))
	}
	if s.skip {
		w.say("y = y + x0.")
	}
	if s.residual >= 0 {
		weight, bias := w.params(m, s.residual)
		w.say("y = y + x * %s + %s.", weight, bias)
	}
	if s.norm >= 0 {
		w.norm(m, "y", s.norm)
	}
	w.activate("y", s.activate)
	w.dropout("y", s.drop)
	step.Equation = strings.Join(w.sentences, " ")
	return step
}
