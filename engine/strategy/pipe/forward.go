package pipe

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// forward computes the grains at one place of the order through the worker's layers, side
// by side: each layer reads the rows of all of them.
func (w *Worker) forward(place int) error {
	p := w.order[place]
	w.beginPasses(p)
	if err := w.boundary[forwards].receive(place); err != nil {
		return err
	}
	for _, way := range w.ways {
		for _, g := range way.at[p] {
			if w.multiplies() {
				g.x = way.products(g)
				w.enter(g, productsAt)
			} else {
				w.show(g, way, w.first)
			}
		}
	}
	for s := w.begins(); s < w.end; s++ {
		if err := w.layer(s, p); err != nil {
			return err
		}
	}
	w.traced(forwardDone, place)
	w.boundary[forwards].send(p)
	return nil
}

func (w *Worker) traced(e event, place int) {
	if w.trace != nil {
		w.trace(e, place)
	}
}

// beginPasses gives each grain of a position a fresh pass.
func (w *Worker) beginPasses(position int) {
	n := 0
	for _, way := range w.ways {
		for _, grains := range [2][]*grain{way.at[position], way.trunks[position]} {
			for _, g := range grains {
				g.place = g.number
				if w.Recompute {
					g.place = n
				}
				n++
				w.arenas[g.place].Reset()
				g.pass = w.passes[g.place]
				g.pass.Begin()
				// Gradients tell the pass to keep what backward needs.
				g.pass.Gradients = w.rooms[0]
				g.x, g.carry = g.input, g.carried
			}
		}
	}
}

// show stores the rows that a layer reads of a grain, and gives the pieces that are
// complete with it to the ways that mirror them.
func (w *Worker) show(g *grain, of *way, s int) {
	w.enter(g, s)
	l := of.levels[s-w.first]
	if l == nil {
		return
	}
	w.Device.Combine(g.rowsOf(l.rows), 1, g.entering, 0, tensor.Matrix{})
	for _, q := range g.gives {
		w.halo.give(q, s)
	}
}

// layer computes one of the model's stages. Grains that read no other ways' rows come
// first, while those rows are on their way. What the next layer reads of a grain is sent
// meanwhile.
func (w *Worker) layer(s, position int) error {
	for _, way := range w.ways {
		if err := w.compute(way, way.at[position][:way.inner[position]], s); err != nil {
			return err
		}
	}
	if w.meets(s) {
		if err := w.halo.rows(s, position); err != nil {
			return err
		}
	}
	for _, way := range w.ways {
		if err := w.compute(way, way.at[position][way.inner[position]:], s); err != nil {
			return err
		}
	}
	return nil
}

// compute takes some grains of a way through a stage, and on to the next.
func (w *Worker) compute(of *way, grains []*grain, s int) error {
	for _, g := range grains {
		if err := w.see(g, of, s); err != nil {
			return err
		}
		if s+1 < w.end {
			w.show(g, of, s+1)
		}
	}
	return nil
}

// gather sets y to some rows of x.
func (w *Worker) gather(y, x tensor.Matrix, rows []int32) {
	w.part[0].X = x
	w.Device.Gather(y, w.part[:], unsigned(rows))
}

// enter makes what a layer reads of the grain's own rows.
func (w *Worker) enter(g *grain, s int) {
	if s > 0 {
		g.entering = g.pass.Enter(s, g.x, g.vertices)
	}
}

// see computes the grain's next rows from what its layer reads.
func (w *Worker) see(g *grain, of *way, s int) (err error) {
	if s == 0 && g.trunk != nil {
		return w.branch(g, of)
	}
	var in nn.Input
	var block *sample.Block
	seen := g.entering
	if w.infos[s].Hops > 0 {
		block = g.block
	}
	l := of.levels[s-w.first]
	if l != nil {
		seen = g.pass.Seen(s, block)
		w.gather(seen, l.rows, g.rows)
	}
	if s == 0 {
		if in, err = w.input(g); err != nil {
			return err
		}
	}
	g.x = g.pass.Layer(s, block, in, seen, g.carry)
	if l != nil && !g.pass.Reads(s) {
		g.pass.Drop(seen)
	}
	if s == 0 && w.infos[s].CarryOut > 0 {
		g.carry = g.x
	}
	return nil
}

// input returns the features that the first stage reads for a grain.
func (w *Worker) input(g *grain) (nn.Input, error) {
	vertices := g.vertices
	if w.infos[0].Hops > 0 {
		vertices = g.block.Vertices
	}
	return w.Features.Input(g.place, g.number, vertices)
}

// branch takes a grain's rows from its trunk, which is computed with the first of its
// grains or, for a history, where nothing is kept, with each.
func (w *Worker) branch(g *grain, of *way) error {
	t := g.trunk
	if w.halo.early {
		t.pass, t.place = g.pass, g.place
	}
	if g.from == 0 || w.halo.early {
		if err := w.see(t, of, 0); err != nil {
			return err
		}
	}
	g.x = t.x.RowRange(g.from, len(g.vertices))
	return nil
}

// again computes the pass of a grain once more: the rows that its layers read are still
// there.
func (w *Worker) again(g *grain, of *way) error {
	if w.multiplies() {
		g.x = of.products(g)
	}
	for s := w.begins(); s < w.end; s++ {
		w.enter(g, s)
		if err := w.see(g, of, s); err != nil {
			return err
		}
	}
	return nil
}

// multiply multiplies the features of all vertices, for all ways that read them.
func (w *Worker) multiply() error {
	if !w.multiplies() {
		return nil
	}
	for _, way := range w.ways {
		for _, g := range way.grains {
			if err := w.product(g, way); err != nil {
				return err
			}
			w.show(g, way, productsAt)
		}
	}
	for p := range w.Shape.Positions() {
		if err := w.halo.rows(productsAt, p); err != nil {
			return err
		}
	}
	return nil
}

// product computes that of a grain.
func (w *Worker) product(g *grain, of *way) error {
	w.restart(g)
	if !w.Recompute {
		g.place = g.number // where sparse features stay
	}
	return w.see(g, of, 0)
}

// products returns a grain's own.
func (w *way) products(g *grain) tensor.Matrix { return g.rowsOf(w.levels[productsAt].rows) }
