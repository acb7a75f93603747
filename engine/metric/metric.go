// Package metric scores predictions against labels.
package metric

// Scores are the scores of some vertices' predictions.
type Scores struct {
	Count    int
	Accuracy float64 // equals micro-F1, as each vertex has one label
	MacroF1  float64 // mean over the classes that occur in labels or predictions
}

// A Scorer accumulates predictions row by row, and reuses its memory.
type Scorer struct {
	count     int
	right     []int // per class, by label: predicted correctly
	labelled  []int
	predicted []int
}

// New returns a scorer for this many classes.
func New(classes int) *Scorer {
	return &Scorer{right: make([]int, classes), labelled: make([]int, classes), predicted: make([]int, classes)}
}

// Reset discards all predictions.
func (j *Scorer) Reset() {
	j.count = 0
	clear(j.right)
	clear(j.labelled)
	clear(j.predicted)
}

// Add adds the logits of one vertex and its label, which must be a valid class. Ties are
// predicted as the first class.
func (j *Scorer) Add(logits []float32, label int32) {
	best := 0
	for c, z := range logits {
		if z > logits[best] {
			best = c
		}
	}
	j.count++
	j.labelled[label]++
	j.predicted[best]++
	if best == int(label) {
		j.right[best]++
	}
}

// Scores returns the scores of the added predictions; all are 0 if there are none.
func (j *Scorer) Scores() Scores {
	s := Scores{Count: j.count}
	if j.count == 0 {
		return s
	}
	right, occurring := 0, 0
	for c := range j.right {
		right += j.right[c]
		if both := j.labelled[c] + j.predicted[c]; both > 0 {
			occurring++
			s.MacroF1 += 2 * float64(j.right[c]) / float64(both)
		}
	}
	s.Accuracy = float64(right) / float64(j.count)
	s.MacroF1 /= float64(occurring)
	return s
}
