package gather

// Count sets what Gather would of r, without asking anybody: r.Far has no rows. The
// source is ready.
func (s *Source) Count(r *Rows, sets [][]uint32, o Options) error { return s.lay(r, sets, o) }

// RowBytes is what a row of features takes on its way: of sparse ones the mean of some
// that are here; 0, if none are.
func (s *Source) RowBytes() float64 {
	const most = 256
	var row []byte
	rows, bytes := 0, 0
	for shard, first := range s.layout.Firsts[:len(s.layout.Owners)] {
		for v := first; v < s.layout.Firsts[shard+1] && s.store.Has(v) && rows < most; v++ {
			row = s.store.Append(row[:0], s.form, v)
			rows, bytes = rows+1, bytes+len(row)
		}
	}
	if rows == 0 {
		return 0
	}
	return float64(bytes) / float64(rows)
}
