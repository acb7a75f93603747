package metric

import (
	"encoding/binary"
	"fmt"
)

// Exported returns the number of bytes that Export appends.
func (j *Scorer) Exported() int { return 3 * 8 * len(j.right) }

// Export appends the counts, for another scorer to Merge: for each class, how many
// vertices were predicted correctly, how many have it and how many were predicted.
func (j *Scorer) Export(to []byte) []byte {
	for _, counts := range [][]int{j.right, j.labelled, j.predicted} {
		for _, n := range counts {
			to = binary.LittleEndian.AppendUint64(to, uint64(n))
		}
	}
	return to
}

// Merge adds the exported counts of another scorer with the same classes and at most most
// vertices. If they are invalid it returns an error and adds nothing.
func (j *Scorer) Merge(from []byte, most int) error {
	classes := len(j.right)
	if len(from) != j.Exported() {
		return fmt.Errorf("%d bytes of counts for %d classes, which take %d", len(from), classes, j.Exported())
	}
	at := func(what, class int) uint64 { return binary.LittleEndian.Uint64(from[8*(what*classes+class):]) }
	labelled, predicted := uint64(0), uint64(0)
	for c := range classes {
		right, is, said := at(0, c), at(1, c), at(2, c)
		if is > uint64(most) || said > uint64(most) || right > is || right > said {
			return fmt.Errorf("class %d was predicted correctly %d times, of %d labels and %d predictions, of %d vertices", c, right, is, said, most)
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
