package metric

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Exported is how many bytes Export appends.
func (j *Judge) Exported() int { return 3 * 8 * len(j.right) }

// Export appends what was counted, for a judge elsewhere to Merge: of each class, how
// many were told rightly, how many have it, how many were said to. Logits that are
// kept for the area are not among it.
func (j *Judge) Export(to []byte) []byte {
	for _, counts := range [][]int{j.right, j.labelled, j.predicted} {
		for _, n := range counts {
			to = binary.LittleEndian.AppendUint64(to, uint64(n))
		}
	}
	return to
}

// Merge adds what another judge of as many classes has exported, of most vertices at
// most. What can't be is refused, and nothing is added then.
func (j *Judge) Merge(from []byte, most int) error {
	classes := len(j.right)
	if len(from) != j.Exported() {
		return fmt.Errorf("%d bytes of counts for %d classes, which take %d", len(from), classes, j.Exported())
	}
	at := func(what, class int) uint64 { return binary.LittleEndian.Uint64(from[8*(what*classes+class):]) }
	labelled, predicted := uint64(0), uint64(0)
	for c := range classes {
		right, is, said := at(0, c), at(1, c), at(2, c)
		if is > uint64(most) || said > uint64(most) || right > is || right > said {
			return fmt.Errorf("class %d is told rightly %d times of %d that have it and %d that were said to, of %d vertices", c, right, is, said, most)
		}
		labelled, predicted = labelled+is, predicted+said
	}
	if labelled != predicted || labelled > uint64(most) {
		return fmt.Errorf("%d labels and %d predictions, of %d vertices", labelled, predicted, most)
	}
	j.count += int(labelled)
	for c := range classes {
		j.right[c] += int(at(0, c))
		j.labelled[c] += int(at(1, c))
		j.predicted[c] += int(at(2, c))
	}
	return nil
}

// Logits are those kept for the area so far, row by row in the order in which they
// were added. They hold until Reset.
func (j *Judge) Logits() []float32 { return j.logits }

// Room keeps more rows for the area, which Merge counts: it takes their labels, each
// one of the classes, and returns where their logits are to be put. In which order
// rows are kept does not matter.
func (j *Judge) Room(labels []int32) []float32 {
	from, n := len(j.logits), len(labels)*len(j.right)
	j.logits = slices.Grow(j.logits, n)[:from+n]
	j.labels = append(j.labels, labels...)
	return j.logits[from:]
}
