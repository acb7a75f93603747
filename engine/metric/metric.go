// Package metric judges predictions.
package metric

import (
	"cmp"
	"slices"
)

// Scores judge the predictions of some vertices.
type Scores struct {
	Count    int
	Accuracy float64 // which is micro-F1, where each vertex has one label
	MacroF1  float64 // the mean over the classes that occur, in labels or predictions
	AUC      float64 // the area under the ROC curve of each class against the rest, mean over those that have both
}

// A Judge gathers predictions, row by row, and keeps its memory between uses.
type Judge struct {
	auc       bool
	count     int
	right     []int // of each class, by label: told rightly
	labelled  []int
	predicted []int
	logits    []float32 // of all rows, with auc
	labels    []int32
	order     []int32
}

// New makes a judge of this many classes. Only with auc does it keep all logits,
// and say the area.
func New(classes int, auc bool) *Judge {
	return &Judge{auc: auc, right: make([]int, classes), labelled: make([]int, classes), predicted: make([]int, classes)}
}

// Reset forgets all predictions.
func (j *Judge) Reset() {
	j.count = 0
	clear(j.right)
	clear(j.labelled)
	clear(j.predicted)
	j.logits, j.labels = j.logits[:0], j.labels[:0]
}

// Add takes the logits of one vertex and its label, which is one of the classes. Of
// equal logits the first is the prediction.
func (j *Judge) Add(logits []float32, label int32) {
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

// Scores judges what was added. Of nothing, all are 0.
func (j *Judge) Scores() Scores {
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

// area is the mean over classes of the chance that a vertex of the class has a
// larger logit than one of another class, ties counting half.
func (j *Judge) area() float64 {
	classes := len(j.right)
	sum, judged := 0.0, 0
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
		pairs, below := 0.0, 0.0 // negatives below the rows at hand
		for from := 0; from < len(j.order); {
			to, of := from, [2]float64{}
			for ; to < len(j.order) && logit(j.order[to]) == logit(j.order[from]); to++ {
				if j.labels[j.order[to]] == int32(c) {
					of[1]++
				} else {
					of[0]++
				}
			}
			if to == from { // not a number: equal to nothing
				from++
				continue
			}
			pairs += of[1] * (below + of[0]/2)
			below += of[0]
			from = to
		}
		sum += pairs / (float64(positive) * float64(negative))
		judged++
	}
	if judged == 0 {
		return 0
	}
	return sum / float64(judged)
}
