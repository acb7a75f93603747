package generate

import "math"

// How far apart classes and communities are, in deviations of the noise: one
// vertex' features say a little about its class, those of its neighbours together
// nearly all.
const (
	classSignal     = 2.0
	communitySignal = 1.0
)

// features makes rows: noise, plus the direction of the vertex's class, plus that
// of its community. A direction is a row of signs, all entries alike in size, and
// is hashed anew each time, so that none is kept.
type features struct {
	columns           int
	labels            []int32 // nil: no classes
	community         func(vertex uint64) int
	noise             uint64
	prototypes, parts uint64
}

// fill writes the rows of the vertices from first on.
func (f *features) fill(first uint64, rows []float32) {
	scale := 1 / math.Sqrt(float64(f.columns))
	class, community := float32(classSignal*scale), float32(communitySignal*scale)
	for ; len(rows) > 0; first, rows = first+1, rows[f.columns:] {
		row := rows[:f.columns]
		random := at(f.noise, first)
		for i := range row {
			row[i] = normal(random.next())
		}
		if f.labels != nil {
			add(row, at(f.prototypes, uint64(f.labels[first])), class)
		}
		if f.community != nil {
			add(row, at(f.parts, uint64(f.community(first))), community)
		}
	}
}

// add adds size to each entry, with signs at random.
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
