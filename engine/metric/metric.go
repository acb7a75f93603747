// Package metric scores predictions against labels.
package metric

import (
	"cmp"
	"slices"
)

// Scores are the scores of some vertices' predictions.
type Scores struct {
	Count    int
	Accuracy float64 // equals micro-F1, as each vertex has one label
	MacroF1  float64 // mean over the classes that occur in labels or predictions
	AUC      float64 // area under the ROC curve of each class against the rest, averaged over classes that have both
}

// A Scorer accumulates predictions row by row, and reuses its memory.
type Scorer struct {
	auc       bool
	count     int
	right     []int // per class, by label: predicted correctly
	labelled  []int
	predicted []int
	logits    []float32 // of all rows, only with auc
	labels    []int32
	order     []int32
}

// New returns a scorer for this many classes. With auc it keeps all logits and computes
// the AUC.
func New(classes int, auc bool) *Scorer {
	return &Scorer{auc: auc, right: make([]int, classes), labelled: make([]int, classes), predicted: make([]int, classes)}
}

// Reset discards all predictions.
func (j *Scorer) Reset() {
	j.count = 0
	clear(j.right)
	clear(j.labelled)
	clear(j.predicted)
	j.logits, j.labels = j.logits[:0], j.labels[:0]
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
	if j.auc {
		j.logits, j.labels = append(j.logits, logits...), append(j.labels, label)
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
	if j.auc {
		s.AUC = j.area()
	}
	return s
}

// area returns the mean over classes of the probability that a vertex of the class has a
// larger logit than one of another class, ties counting half.
func (j *Scorer) area() float64 {
	classes := len(j.right)
	sum, ranked := 0.0, 0
	for c, positive := range j.labelled {
		negative := j.count - positive
		if positive == 0 || negative == 0 {
			continue
		}
		j.order = j.order[:0]
		for row := range j.labels {
			j.order = append(j.order, int32(row))
		}
		logit := func(row int32) float32 { return j.logits[int(row)*classes+c] }
		slices.SortFunc(j.order, func(a, b int32) int { return cmp.Compare(logit(a), logit(b)) })
		pairs, below := 0.0, 0.0 // negatives below the current rows
		for from := 0; from < len(j.order); {
			to, of := from, [2]float64{}
			for ; to < len(j.order) && logit(j.order[to]) == logit(j.order[from]); to++ {
				if j.labels[j.order[to]] == int32(c) {
					of[1]++
				} else {
					of[0]++
				}
			}
			if to == from { // NaN: equal to nothing
				from++
				continue
			}
			pairs += of[1] * (below + of[0]/2)
			below += of[0]
			from = to
		}
		sum += pairs / (float64(positive) * float64(negative))
		ranked++
	}
	if ranked == 0 {
		return 0
	}
	return sum / float64(ranked)
}
