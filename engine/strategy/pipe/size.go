package pipe

import "github.com/hopmesh/hopmesh/engine/nn"

// Memory is what the memory of a node depends on, beside its passes.
type Memory struct {
	Number int
	Widths []int // columns of the rows that each of its layers sees of others
	Rows   int   // of its ways, and mirrors
	// Own counts the vertices of its ways, Sources the rows that all its grains see, and
	// Late those whose gradients are kept for the next epoch.
	Own, Sources, Late int
	Input              int // columns that come from the stage before
	History            bool
	Recompute          bool
}

// Kept is the bytes of rows that live as long as training: those that layers see, their
// gradients and histories, what comes in and, where passes are made again, what they saw.
func (m Memory) Kept() (bytes int) {
	for _, width := range m.Widths {
		rows := 2 * m.Rows
		if m.History {
			rows += m.Rows
		}
		if m.Recompute {
			rows += m.Sources
		}
		rows += m.Late
		bytes += rows * width * m.Number
	}
	return bytes + m.Own*m.Input*m.Number
}

// keeps is how many bytes the arena of what is kept holds.
func (w *Worker) keeps() int {
	m := Memory{Number: w.Device.Type().Bytes()}
	for s := w.first; s < w.end; s++ {
		if w.sees(s) {
			m.Widths = append(m.Widths, w.infos[s].In)
		}
	}
	for _, way := range w.ways {
		m.Rows += way.all()
	}
	for _, g := range w.grains {
		m.Sources += len(g.rows)
		if w.keepsLate() {
			m.Late += len(g.rows) - g.active
		}
		m.Own += len(g.vertices)
	}
	m.History, m.Recompute = w.Shape.Positions() > 1, w.Recompute
	if w.first > 0 {
		m.Input = w.infos[w.first].In + w.infos[w.first].CarryIn
	}
	const ends = 64 // each matrix begins at a whole line
	return m.Kept() + ends*(len(w.grains)*(2+2*len(m.Widths))+4*len(w.ways)*len(m.Widths)) +
		w.most()*(w.Model.Size()*m.Number+ends)
}

// Bytes is what the worker takes once it is open and has trained, features aside. entries
// is how many a row of sparse features has; 0: they are dense.
func (w *Worker) Bytes(entries float64) (bytes uint64) {
	number := w.Device.Type().Bytes()
	bytes = uint64(w.keeps() + 3*w.Model.Size()*number)
	if w.refreshes() {
		bytes += uint64(w.Model.Size() * number)
	}
	passes, live := make([]uint64, len(w.grains)), uint64(0)
	for _, g := range w.grains {
		passes[g.number] = uint64(w.passBytes(g, entries))
		bytes += uint64(16*len(g.rows) + 16*g.block.Entries()) // its block
	}
	for p := range w.Shape.Positions() {
		sum := uint64(0)
		for _, way := range w.ways {
			for _, g := range way.at[p] {
				sum += passes[g.number]
			}
		}
		if !w.Recompute {
			live += sum
		} else {
			live = max(live, sum)
		}
	}
	bytes += live + uint64(w.sends()*number)
	if w.ways != nil {
		from, to := w.columns(w.first, w.end)
		bytes += uint64((len(w.grains) + 6) * (to - from) * number)
	}
	return bytes
}

// passBytes is what a grain's pass takes.
func (w *Worker) passBytes(g *grain, entries float64) int {
	in, rows := nn.InputSize{Sparse: entries > 0}, len(g.vertices)
	if w.infos[0].Hops > 0 {
		rows = len(g.rows)
	}
	in.Entries = int(float64(rows) * entries)
	return w.Model.ForecastPart(w.first, w.end, in, nn.Size{Targets: len(g.vertices), Sources: len(g.rows), Entries: g.block.Entries()})
}

// sends is how many numbers lie where others take them, and where what they send comes.
func (w *Worker) sends() (n int) {
	for _, way := range w.ways {
		if w.first > 0 {
			n += 2 * way.own() * (w.infos[w.first].In + w.infos[w.first].CarryIn)
		}
		if w.end < len(w.infos) {
			n += 3 * way.own() * (w.infos[w.end].In + w.infos[w.end].CarryIn)
		}
		for s := w.first; s < w.end; s++ {
			if w.sees(s) {
				n += 4 * len(way.mirrors) * w.infos[s].In
			}
		}
	}
	return n
}
