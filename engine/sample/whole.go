package sample

// WholeRows reads the rows of vertices whose edges are here, with all their entries, as
// blocks of a form have them. It needs nothing of vertices whose edges are elsewhere. It
// is safe for concurrent use.
type WholeRows struct {
	t       *Topology
	form    Form
	degrees *degrees
}

// NewWholeRows returns a reader of a topology that is not restricted.
func NewWholeRows(t *Topology, form Form) *WholeRows {
	t = t.formed(form)
	return &WholeRows{t: t, form: form, degrees: t.degreesOf(form)}
}

// Entries returns how many entries the row of v has, with the self-loop that is added.
func (r *WholeRows) Entries(v uint32) int {
	n := r.t.Degree(int(v))
	if r.loop(v) {
		n++
	}
	return n
}

// loop reports whether a self-loop is added to the row of v.
func (r *WholeRows) loop(v uint32) bool {
	if !r.form.SelfLoops {
		return false
	}
	part := r.t.of(v)
	return r.degrees.lacks(part, v-r.t.parts[part].first)
}

// Row returns the row of v: whether it begins with a self-loop of weight 1 that is added,
// then its sources, and their weights, nil if all are 1. The slices lie in the shard.
func (r *WholeRows) Row(v uint32) (loop bool, sources []int32, weights []float32) {
	sources, weights = r.t.Row(int(v))
	return r.loop(v), sources, weights
}

// Valued reports whether entries have values.
func (r *WholeRows) Valued() bool { return r.form.Valued() }

// Rooted reports whether values are to be multiplied by 1/sqrt(degree) of both ends of the
// edge.
func (r *WholeRows) Rooted() bool { return r.form.Weighting == Symmetric }

// Inverses returns 1/sqrt(degree) of the vertices of a shard, from v on, where rows are
// rooted. The signs are to be ignored.
func (r *WholeRows) Inverses(v uint32) []float32 {
	part := r.t.of(v)
	return r.degrees.inverse[part][v-r.t.parts[part].first:]
}

// Plain reports whether rows are as shards have them: without values, and without
// self-loops that are added.
func (r *WholeRows) Plain() bool { return r.form == Form{} }

// Run returns the rows of n vertices of a shard from v on, as the shard has them.
func (r *WholeRows) Run(v uint32, n int) (indptr []int64, sources []int32) {
	p := &r.t.parts[r.t.of(v)]
	return p.indptr[v-p.first:][:n+1], p.indices
}
