package graph

import (
	"fmt"
	"math"
)

// Targets is what the vertices of a graph have to be learnt.
type Targets string

// The targets. Those of classes are one for each vertex; the others have columns, and any of
// them may be missing.
const (
	OneClass Targets = ""           // the zero value, which shard files leave out
	YesOrNo  Targets = "multilabel" // 0 or 1 in each column
	Numbers  Targets = "regression" // a number in each column
)

// Columns are the targets of vertices, one row after another, in one of these two; of OneClass
// there are none.
type Columns struct {
	YesOrNo []uint8
	Numbers []float32
}

// Missing is the byte of a missing target of YesOrNo. A missing number is any NaN.
const Missing uint8 = 255

// MaxTargets bounds the columns of targets.
const MaxTargets = 1 << 12

// Words returns how many 32-bit words the targets of a vertex are for those who learn them.
func (t Targets) Words(columns int) int {
	if t == OneClass {
		return 1
	}
	return columns
}

// CheckTargets returns an error unless a graph may have so many classes, or columns of such
// targets.
func CheckTargets(t Targets, columns int) error {
	switch {
	case columns < 0 || columns > MaxVertices:
		return fmt.Errorf("it has %d classes", columns)
	case t == OneClass:
		return nil
	case t != YesOrNo && t != Numbers:
		return fmt.Errorf("its targets are %q, which this program does not know", string(t))
	case columns < 1 || columns > MaxTargets:
		return fmt.Errorf("it has %d columns of targets, and there may be 1 to %d", columns, MaxTargets)
	}
	return nil
}

// HasTargets reports whether the targets of the shard's vertices are here.
func (s *Shard) HasTargets() bool {
	if s.Targets == OneClass {
		return s.Labels != nil
	}
	return s.Labels != nil && (s.YesOrNo != nil || s.Numbers != nil)
}

// AppendTarget appends the target of a row as words: its class; or of each column the bits of a
// float32. A missing one is NoLabel. HasTargets must be true.
func (s *Shard) AppendTarget(to []int32, row int) []int32 {
	switch s.Targets {
	case YesOrNo:
		for _, cell := range s.YesOrNo[row*s.Classes:][:s.Classes] {
			if cell == Missing {
				to = append(to, NoLabel)
			} else {
				to = append(to, int32(math.Float32bits(float32(cell))))
			}
		}
	case Numbers:
		for _, cell := range s.Numbers[row*s.Classes:][:s.Classes] {
			if cell != cell {
				to = append(to, NoLabel)
			} else {
				to = append(to, int32(math.Float32bits(cell)))
			}
		}
	default:
		to = append(to, s.Labels[row])
	}
	return to
}

// loadTargets reads targets with columns, and finds out which rows have any.
func (s *Shard) loadTargets() (err error) {
	has := make([]bool, s.Vertices)
	if s.Targets == YesOrNo {
		if s.YesOrNo, err = view[uint8](s, "targets", s.Vertices, s.Classes); err != nil {
			return err
		}
		for i, cell := range s.YesOrNo {
			if cell > 1 && cell != Missing {
				return fmt.Errorf("row %d has the target %d, and there are 0, 1 and %d, which is missing", i/s.Classes, cell, Missing)
			}
			has[i/s.Classes] = has[i/s.Classes] || cell != Missing
		}
	} else {
		if s.Numbers, err = view[float32](s, "targets", s.Vertices, s.Classes); err != nil {
			return err
		}
		for i, cell := range s.Numbers {
			if math.IsInf(float64(cell), 0) {
				return fmt.Errorf("row %d has an infinite target", i/s.Classes)
			}
			has[i/s.Classes] = has[i/s.Classes] || cell == cell
		}
	}
	s.Labels = make([]int32, s.Vertices)
	for row := range has {
		if !has[row] {
			s.Labels[row] = NoLabel
		}
	}
	return nil
}
