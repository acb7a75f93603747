package pipe

// Memory is what the memory of a node depends on, beside its passes.
type Memory struct {
	Number int
	Widths []int // columns of the rows that each of its layers sees of others
	Rows   int   // of its ways, and mirrors
	// Own counts the vertices of its ways, and Sources the rows that all its grains see.
	Own, Sources int
	Input        int // columns that come from the stage before
	History      bool
	Recompute    bool
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
		m.Own += len(g.vertices)
	}
	m.History, m.Recompute = w.Shape.Positions() > 1, w.Recompute
	if w.first > 0 {
		m.Input = w.infos[w.first].In + w.infos[w.first].CarryIn
	}
	const ends = 64 // each matrix begins at a whole line
	return m.Kept() + ends*(len(w.grains)*(2+len(m.Widths))+4*len(w.ways)*len(m.Widths)) +
		w.most()*(w.Model.Size()*m.Number+ends)
}

// Bytes is what the worker takes once it is open and has trained, features aside. entries
// is how many a row of sparse features has; 0: they are dense.
func (w *Worker) Bytes(entries float64) uint64 {
	w.entries = entries
	return w.load().bytes()
}

// load is what the worker has to do.
func (w *Worker) load() *load {
	shards := len(w.Shape.firsts) - 1
	l := &load{
		model: w.Model, number: w.Device.Type().Bytes(), entries: w.entries, shape: w.Shape, mirrors: w.seen,
		census: &Census{Firsts: w.Shape.firsts, Sources: make([]int, shards), Entries: make([]int, shards)},
		seats:  w.Seats, stage: w.stage, first: w.first, end: w.end,
		recompute: w.Recompute, policy: w.Halo.Policy, nodes: w.nodes(),
	}
	for _, way := range w.ways {
		l.ways = append(l.ways, way.number)
	}
	for _, g := range w.grains {
		l.census.Sources[g.shard] += len(g.rows)
		l.census.Entries[g.shard] += g.block.Entries()
	}
	return l
}
