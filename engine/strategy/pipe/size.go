package pipe

// Memory is what the memory of a node depends on, beside its passes.
type Memory struct {
	Number int
	Widths []int // columns of the rows that each of its layers sees of others
	Rows   int   // of its ways, and mirrors
	Own    int   // vertices of its ways
	Late   int   // rows of others whose gradients are kept for the next epoch
	Input  int   // columns that come from the stage before
	// History says that there are histories.
	History bool
}

// Kept is the bytes of rows that live as long as training: those that layers see, their
// gradients and histories, and what comes in.
func (m Memory) Kept() (bytes int) {
	for _, width := range m.Widths {
		rows := 2 * m.Rows
		if m.History {
			rows += m.Rows
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
		if w.keepsLate() {
			m.Late += len(g.rows) - g.active
		}
		m.Own += len(g.vertices)
	}
	m.History = w.Shape.Positions() > 1
	if w.first > 0 {
		m.Input = w.infos[w.first].In + w.infos[w.first].CarryIn
	}
	const ends = 64 // each matrix begins at a whole line
	of := 2         // matrices of a grain
	if w.keepsLate() {
		of += len(m.Widths)
	}
	return m.Kept() + ends*(of*len(w.grains)+4*len(w.ways)*len(m.Widths)) +
		w.slots()*(w.Model.Size()*m.Number+ends)
}

// Bytes is what the worker takes once it is open and has trained, features aside. entries
// is how many a row of sparse features has; 0: they are dense.
func (w *Worker) Bytes(entries float64) uint64 {
	w.entries = entries
	return w.load().bytes()
}

// load is what the worker has to do.
func (w *Worker) load() *load {
	l := &load{
		model: w.Model, number: w.Device.Type().Bytes(), entries: w.entries, shape: w.Shape, mirrors: w.seen,
		seats: w.Seats, stage: w.stage, first: w.first, end: w.end,
		recompute: w.Recompute, leaves: w.Histories != Made, policy: w.Halo.Policy, nodes: w.nodes(),
	}
	for _, way := range w.ways {
		l.ways = append(l.ways, way.number)
		for p := range way.at {
			for _, g := range way.at[p] {
				of := w.counts(g, p)
				if g.trunk != nil {
					of.first = 1
				}
				if w.keepsLate() {
					of.late = len(g.rows) - g.active
				}
				l.parts = append(l.parts, of)
			}
		}
	}
	for _, way := range w.ways { // as they are numbered
		for p := range way.trunks {
			for _, g := range way.trunks[p] {
				of := w.counts(g, p)
				of.end = 1
				l.parts = append(l.parts, of)
			}
		}
	}
	return l
}

// counts are of what the worker computes of a grain at a position.
func (w *Worker) counts(g *grain, position int) part {
	return part{position: position, shard: g.shard, vertices: len(g.vertices), sources: len(g.rows), entries: g.block.Entries(), first: w.first, end: w.end}
}
