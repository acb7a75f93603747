package generate

import "math"

// The distances between classes and between communities, in standard deviations of the
// noise. One vertex's features say a little about its class; its neighbours' features
// together say nearly everything.
const (
	classSignal     = 2.0
	communitySignal = 1.0
)

// features generates rows: noise plus the direction of the vertex's class plus that of
// its community. A direction is a row of signs, with all entries of equal size. It is
// rehashed for each use, so none is stored.
type features struct {
	columns           int
	class             func(vertex uint64) int // nil: no classes
	community         func(vertex uint64) int
	noise             uint64
	prototypes, parts uint64
}

// fill writes the rows of the vertices starting at first.
func (f *features) fill(first uint64, rows []float32) {
	scale := 1 / math.Sqrt(float64(f.columns))
	class, community := float32(classSignal*scale), float32(communitySignal*scale)
	for ; len(rows) > 0; first, rows = first+1, rows[f.columns:] {
		row := rows[:f.columns]
		random := at(f.noise, first)
		for i := range row {
			row[i] = normal(random.next())
		}
		if f.class != nil {
			add(row, at(f.prototypes, uint64(f.class(first))), class)
		}
		if f.community != nil {
			add(row, at(f.parts, uint64(f.community(first))), community)
		}
	}
}

// add adds ±size to each entry, with random signs.
func add(row []float32, signs sequence, size float32) {
	var word uint64
	value := math.Float32bits(size)
	for i := range row {
		if i%64 == 0 {
			word = signs.next()
		}
		row[i] += math.Float32frombits(value | uint32(word&1)<<31)
		word >>= 1
	}
}
