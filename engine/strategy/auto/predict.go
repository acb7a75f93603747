package auto

import (
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy/p3"
)

// facts are what all nodes of a job know alike.
type facts struct {
	nodes   int
	steps   int  // of an epoch
	epochs  int  // remaining
	once    bool // all epochs have the same single batch, which is prepared once
	weights float64
	row     float64 // bytes of a row of features on the wire
	// Of p3: columns of the first layer's sum, bytes of the weights in front of it, and
	// bytes of the features of all vertices.
	sum, front, features float64
	resample             bool // nodes sample each other's blocks, and send none
	sources              bool // the sum has a row for each source of the outermost block
}

// idBytes is the size of a vertex in a question, and numberBytes that of a number.
const (
	idBytes     = 4
	numberBytes = 4
)

// A tried strategy was counted: it has the load of each node, over so many steps.
type tried struct {
	name  string
	looks int
	loads []Load // of the nodes
}

// A cost is the predicted cost of a strategy's steps.
type cost struct {
	name string
	// Of all nodes together, in bytes: rows of features and neighbours, and p3's
	// activations in place of rows. Sums of gradients and models are in busiest alone:
	// they hardly differ.
	features, topology, activations float64
	rows                            float64 // computed by the node with most rows
	drawn                           float64 // and rows that are sampled there
	busiest                         float64 // bytes that come to the node to which most come
	hidden                          float64 // of those: what overlaps with computing
	seconds                         float64 // of an epoch
}

// sent returns the bytes that a strategy sends in a step, as users see them.
func (c *cost) sent() float64 { return c.features + c.topology + c.activations }

// predict returns the cost of a strategy. All nodes wait for the slowest in each step,
// and which one that is changes from step to step: so the most rows and the most bytes
// are taken together, whichever nodes have them. Therefore a slower network never
// favours a strategy with more bytes to hide (see
// TestASlowerNetworkNeverFavoursMoreBytes).
func (f *facts) predict(t *tried, r *Rates) cost {
	if t.name == p3.Name {
		return f.predictP3(t, r)
	}
	c := cost{name: t.name}
	looks, most := float64(t.looks), 0.0
	for i := range t.loads {
		l := &t.loads[i]
		features, once := l.features(f, looks)
		topology := float64(l.Topology) / looks
		c.features += features + once/float64(f.steps*max(1, f.epochs))
		most = max(most, once)
		c.topology += topology
		models := max(0, float64(l.Slots)/looks-1) * f.weights // a slot's model comes while another is used
		c.hidden = max(c.hidden, features+topology+models)
		c.rows = max(c.rows, float64(l.Rows)/looks)
	}
	c.drawn = c.rows
	rounds, gradients := f.gradients(f.weights)
	f.time(&c, r, gradients, rounds, most)
	return c
}

// predictP3 is predict for p3. No rows travel, but blocks do, ahead, unless each node
// samples those of all. Partial sums and their errors can't hide. Columns of features
// are fetched once.
func (f *facts) predictP3(t *tried, r *Rates) cost {
	c := cost{name: t.name}
	looks, n := float64(t.looks), float64(f.nodes)
	var inputs, first, edges, rows float64
	for i := range t.loads {
		l := &t.loads[i]
		inputs, first, edges = inputs+float64(l.Inputs)/looks, first+float64(l.First)/looks, edges+float64(l.Edges)/looks
		rows += f.summed(l) / looks
	}
	activations := 0.0
	for i := range t.loads {
		l := &t.loads[i]
		own := f.summed(l) / looks
		blocks := idBytes * (inputs + edges + 2*first - float64(l.Inputs+l.Edges+2*l.First)/looks)
		if f.resample {
			blocks = 0
			c.drawn += float64(l.Rows) / looks
		}
		c.topology += blocks
		c.hidden = max(c.hidden, blocks)
		// Partial sums of its own rows come from all others, errors of theirs from each.
		came := numberBytes * f.sum * ((n-1)*own + rows - own)
		c.activations += came
		activations = max(activations, came)
		// All nodes compute the first layer together.
		c.rows = max(c.rows, (float64(l.Rows)-float64(l.Inputs))/looks+inputs/n)
	}
	if !f.resample {
		c.drawn = c.rows
	}
	rounds, gradients := f.gradients(f.weights - f.front)
	exposed := activations + gradients + (n-1)/n*f.front
	const before = 3 // rounds: of partial sums, of errors, of the weights in front
	f.time(&c, r, exposed, before+rounds, (n-1)/n*f.features/n)
	return c
}

// summed returns how many rows of a node's first layers are summed by p3.
func (f *facts) summed(l *Load) float64 {
	if f.sources {
		return float64(l.Inputs)
	}
	return float64(l.First)
}

// gradients returns the rounds of a sum over all, and the bytes that come to a node for it.
func (f *facts) gradients(bytes float64) (rounds, came float64) {
	n, came := exchange.Rounds(f.nodes, int(bytes))
	return float64(n), came
}

// time sets the time of an epoch, with exposed bytes in so many rounds of each step,
// and bytes that come once.
func (f *facts) time(c *cost, r *Rates, exposed, rounds, once float64) {
	c.busiest = c.hidden + exposed
	ahead := 0.0
	if f.once {
		once += c.hidden
	} else {
		ahead = c.drawn*r.Sample/r.Hands + c.hidden/r.Bandwidth
	}
	if ahead > 0 && c.hidden > 0 {
		ahead += r.RoundTrip
	}
	step := max(c.rows*r.Compute, ahead) + exposed/r.Bandwidth + rounds*r.RoundTrip
	c.seconds = step*float64(f.steps) + once/r.Bandwidth/float64(max(1, f.epochs))
}
