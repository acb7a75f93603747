package gather

import "math"

// Count sets r as Gather would, without asking anybody: r.Far has no rows. The source
// must be ready.
func (s *Source) Count(r *Rows, sets [][]uint32, o Options) error { return s.lay(r, sets, o) }

// RowBytes returns the size of a row of features on the wire: of sparse ones the mean
// of some local ones; 0, if there are none.
func (s *Source) RowBytes() float64 {
	const most = 256
	if s.store.Learnt() {
		return 0 // none is asked for
	}
	var row []byte
	rows, bytes := 0, 0
	for shard, first := range s.layout.Firsts[:len(s.layout.Owners)] {
		for v := first; v < s.layout.Firsts[shard+1] && s.store.Reads(v) && rows < most; v++ {
			row = s.store.Append(row[:0], s.form, v)
			rows, bytes = rows+1, bytes+len(row)
		}
	}
	if rows == 0 {
		return 0
	}
	return float64(bytes) / float64(rows)
}

// Questions returns how many questions it takes to ask one node for so many rows of so
// many bytes each.
func Questions(rows int, bytes float64) int {
	per := float64(mostQuestion / 4)
	if bytes > 0 {
		per = max(1, min(per, math.Floor(mostAnswer/bytes)))
	}
	return int(math.Ceil(float64(rows) / per))
}
