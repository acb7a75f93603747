package nn

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// hetero makes a convolution for each relation out of one, as PyG's HeteroConv does: each has
// weights of its own and sees the edges of its relation alone. A vertex' row is the sum or the mean
// over the relations that end at its type, or their sum by attention: each vertex weighs its
// relations, much as in HAN (Wang et al., 2019, arXiv 1903.07293), whose weights are alike for all.
//
// The weights of all relations lie one below another. A relation is computed for all targets,
// whichever types they have, so that the size of a block says what memory it takes at most; one that
// reaches no target is left out. Price: products also for targets of other types.
type hetero struct {
	each      Conv
	own       []Weight // of each
	relations int
	across    tensor.Aggregation
	attends   bool // in place of across
	columns   int  // of a row
}

// The ways to join relations.
const (
	AcrossSum    = "sum"
	AcrossMean   = "mean"
	AcrossAttend = "attention"
)

// heteroPrefix begins the names of such models.
const heteroPrefix = "hetero:"

// apartBy returns a kind with a convolution of another kind for each relation. Edges of a
// relation lead from other vertices and have no weights: there are no self-loops.
func apartBy(k Kind) Kind {
	one := k.New
	k.New = func(s Spec, p Place) Conv {
		l := &hetero{each: one(s, p), relations: max(1, s.Relations), across: tensor.Sum}
		l.own = l.each.Weights()
		if s.Across == AcrossMean {
			l.across = tensor.Mean
		}
		l.attends, l.columns = s.Across == AcrossAttend, p.Out
		return l
	}
	k.SelfLoops, k.Weighting = false, sample.Ones
	k.frame, k.related, k.apart = projected, true, true
	return k
}

func (l *hetero) Weights() []Weight {
	var all []Weight
	for _, w := range l.own {
		all = append(all, Weight{"relations." + w.Name, l.relations * w.Rows, w.Cols, w.Initial})
	}
	if l.attends {
		all = append(all, Weight{acrossName, 1, l.columns, Glorot(1, l.columns)})
	}
	return all
}

// acrossName is the name of the weight of attention across relations. It is the last one.
const acrossName = "across.attention"

func (l *hetero) Words(use func(string) string) string {
	words := "For each relation r, with the rth of the equal parts that stand one below another in each weight, in place of the weight, and with the in-edges of that relation alone, each with the value 1: " +
		l.each.(Worded).Words(func(name string) string { return use("relations." + name) })
	if l.bias() >= 0 {
		words += " y = y + " + use("relations."+Bias) + "."
	}
	if l.attends {
		return words + fmt.Sprintf(" That is y[r]. The score of a relation = leaky(y[r] . %s), with leaky(s) = s where it is above 0, else %v * s. The shares of the relations that end at the type of a vertex = softmax of their scores. Then y of the vertex = the sum of share * y[r] over these relations, 0 where it has no in-edges at all.", use(acrossName), Slope)
	}
	how := "the sum"
	if l.across == tensor.Mean {
		how = "the mean"
	}
	return words + " That is y[r]. Then y of a vertex = " + how + " of y[r] over the relations that end at its type, 0 where it has no in-edges at all."
}

// bias returns the place of the bias among the weights of each, or -1.
func (l *hetero) bias() int {
	for i, w := range l.own {
		if w.Name == Bias {
			return i
		}
	}
	return -1
}

// related is the call of one relation.
type related struct {
	Call
	block sample.Block
}

// begin makes the calls of the relations, with nothing kept. A block that is only counted has no
// arrays.
func (l *hetero) begin(c *Call) {
	if len(c.by.calls) != l.relations {
		c.by.calls = make([]related, l.relations)
	}
	for r := range c.by.calls {
		w := &c.by.calls[r]
		w.Call = *c
		w.by = byRelation{relation: r, count: l.relations}
		w.block = sample.Block{Own: c.Block.Own, Vertices: c.Block.Vertices}
		if c.Block.Apart != nil {
			w.block.CSR = c.Block.Apart[r]
		} else {
			w.block.CSR = tensor.CSR{Rows: c.Block.Rows, Cols: c.Block.Cols, There: &tensor.There{Entries: c.Block.Entries()}}
		}
		w.Block = &w.block
	}
}

// idle reports whether a relation reaches no target, so that its rows are not read.
func (l *hetero) idle(c *Call, relation int) bool {
	return c.Block.Idle != nil && c.Block.Idle[relation]
}

// reach returns the matrix that joins the rows of relations.
func (l *hetero) reach(c *Call) *tensor.CSR {
	if c.Block.Reach != nil {
		return c.Block.Reach
	}
	rows := c.targets * l.relations
	return &tensor.CSR{Rows: c.targets, Cols: rows, There: &tensor.There{Entries: rows}}
}

func (l *hetero) Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue) {
	l.begin(c)
	all, bias := c.New(l.relations*c.targets, y.Cols), l.bias()
	for r := range c.by.calls {
		if l.idle(c, r) {
			if l.attends { // a gradient of 0 multiplies them
				c.Device.Zero(all.RowRange(r*c.targets, c.targets))
			}
			continue
		}
		w := &c.by.calls[r].Call
		w.conv = tensor.Epilogue{}
		if bias >= 0 {
			w.conv.Bias = w.Weight(bias)
		}
		l.each.Forward(w, all.RowRange(r*c.targets, c.targets), orNone(&w.conv))
	}
	if l.attends {
		l.attend(c, y, all, e)
		return
	}
	c.Device.Aggregate(y, l.reach(c), tensor.Matrix{}, all, l.across, false, e)
	c.Free(all)
}

// attend joins the rows of relations by attention: the edges of reach lead from a relation to a
// vertex, which has no term of its own in a score.
func (l *hetero) attend(c *Call, y, all tensor.Matrix, e *tensor.Epilogue) {
	scores, none, stats := c.New(all.Rows, 1), c.New(c.targets, 1), c.New(c.targets, 2)
	c.Device.HeadDot(scores, all, c.Weight(len(l.own)))
	c.Device.Zero(none)
	c.Device.Attend(y, stats, l.reach(c), all, scores, none, Slope, tensor.Dropout{}, 0)
	if e != nil {
		c.Device.Apply(y, y, e)
	}
	c.Kept[0], c.Kept[1], c.Kept[2], c.Kept[3] = all, scores, none, stats
}

// attendBack is the inverse of attend: it sets the gradient at the rows of relations.
func (l *hetero) attendBack(c *Call, dall, dy tensor.Matrix) {
	all, scores, none, stats := c.Kept[0], c.Kept[1], c.Kept[2], c.Kept[3]
	dscores, dnone := c.New(all.Rows, 1), c.New(c.targets, 1)
	c.Device.AttendBack(dall, dscores, dnone, l.reach(c), dy, stats, all, scores, none, Slope, tensor.Dropout{}, 0)
	c.Device.HeadDotBack(dall, c.Gradient(len(l.own)), dscores, all, c.Weight(len(l.own)))
	c.Free(dscores, dnone)
}

func (l *hetero) Backward(c *Call, dx, dy tensor.Matrix) {
	all, bias := c.New(l.relations*c.targets, dy.Cols), l.bias()
	if l.attends {
		l.attendBack(c, all, dy)
	} else {
		c.Device.AggregateBack(all, l.reach(c), tensor.Matrix{}, dy, l.across, false)
	}
	part := tensor.Matrix{}
	if !dx.None() && l.relations > 1 {
		part = c.New(dx.Rows, dx.Cols)
	}
	written := false // dx, by the first relation that is not left out
	for r := range c.by.calls {
		if l.idle(c, r) {
			continue
		}
		w, dy, to := &c.by.calls[r].Call, all.RowRange(r*c.targets, c.targets), dx
		if bias >= 0 {
			c.Device.ColumnSums(w.Gradient(bias), dy)
		}
		if written {
			to = part
		}
		l.each.Backward(w, to, dy)
		if written && !dx.None() {
			c.Device.Combine(dx, 1, dx, 1, part)
		}
		written = true
	}
	if !written && !dx.None() {
		c.Device.Zero(dx)
	}
	c.Free(all, part)
}
