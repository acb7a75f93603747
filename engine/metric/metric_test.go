package metric

import (
	"math"
	"math/rand/v2"
	"testing"
)

// naive scores by the definitions, in the plainest way.
func naive(logits [][]float32, labels []int32, classes int) (Scores, float64) {
	predicted := make([]int, len(labels))
	s := Scores{Count: len(labels)}
	for i, row := range logits {
		for c := range row {
			if row[c] > row[predicted[i]] {
				predicted[i] = c
			}
		}
		if predicted[i] == int(labels[i]) {
			s.Accuracy += 1 / float64(len(labels))
		}
	}
	f1, occurring, auc, ranked := 0.0, 0, 0.0, 0
	for c := range classes {
		tp, fp, fn, wins, pairs := 0.0, 0.0, 0.0, 0.0, 0.0
		for i := range labels {
			is, said := int(labels[i]) == c, predicted[i] == c
			switch {
			case is && said:
				tp++
			case said:
				fp++
			case is:
				fn++
			}
			for k := range labels {
				if is && int(labels[k]) != c {
					pairs++
					if logits[i][c] > logits[k][c] {
						wins++
					} else if logits[i][c] == logits[k][c] {
						wins += 0.5
					}
				}
			}
		}
		if tp+fp+fn > 0 {
			f1 += 2 * tp / (2*tp + fp + fn)
			occurring++
		}
		if pairs > 0 {
			auc += wins / pairs
			ranked++
		}
	}
	s.MacroF1 = f1 / float64(occurring)
	if ranked > 0 {
		auc /= float64(ranked)
	}
	return s, auc
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestScores(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	j := New(5)
	for n := 1; n < 60; n++ {
		j.Reset()
		var logits [][]float32
		var labels []int32
		for range n {
			row := make([]float32, 5)
			for c := range row {
				row[c] = float32(r.IntN(8)) / 4 // ties happen
			}
			logits, labels = append(logits, row), append(labels, int32(r.IntN(4))) // class 4 has no vertex
			j.Add(row, labels[len(labels)-1])
		}
		got := j.Scores()
		want, auc := naive(logits, labels, 5)
		if got.Count != want.Count || !near(got.Accuracy, want.Accuracy) || !near(got.MacroF1, want.MacroF1) {
			t.Fatalf("%d vertices: %+v, by definition %+v", n, got, want)
		}
		ranking := rankingOf(t, logits, labels, 5, 7)
		ranks := compared(t, 5, 3, ranking)
		if got, _ := Area(ranks, ranking.Counts()); !near(got, auc) {
			t.Fatalf("%d vertices: an area of %v, by definition %v", n, got, auc)
		}
		precision := 0.0
		for c, sum := range naivePrecisions(logits, labels, 5) {
			if with := ranking.Counts()[c][With]; with > 0 {
				precision += sum / float64(with)
			}
		}
		if got, ok := Precision(ranks, ranking.Counts()); !ok || !near(got, precision/occurring(labels)) {
			t.Fatalf("%d vertices: an average precision of %v, by definition %v", n, got, precision/occurring(labels))
		}
	}
}

// occurring counts the classes that vertices have.
func occurring(labels []int32) float64 {
	all := map[int32]bool{}
	for _, label := range labels {
		all[label] = true
	}
	return float64(len(all))
}

func TestNothingToJudge(t *testing.T) {
	j := New(3)
	if got := j.Scores(); got != (Scores{}) {
		t.Errorf("of nothing: %+v", got)
	}
	j.Add([]float32{0, 1, 0}, 1)
	if got := j.Scores(); got.Accuracy != 1 || got.MacroF1 != 1 {
		t.Errorf("of one vertex: %+v", got)
	}
	if _, ok := Area(make([]Ranks, 2), []Sides{{0, 1}, {1, 0}}); ok {
		t.Error("classes without a pair have an area")
	}
	if _, ok := Precision(make([]Ranks, 2), []Sides{{0, 0}, {1, 0}}); ok {
		t.Error("classes that no vertex has have a precision")
	}
	j.Reset()
	nan := float32(math.NaN())
	for label := range int32(3) {
		j.Add([]float32{nan, nan, nan}, label)
	}
	if got := j.Scores(); got.Count != 3 || math.IsNaN(got.MacroF1) {
		t.Errorf("of no numbers: %+v", got)
	}
}

func TestJudgingAgainAllocatesNothing(t *testing.T) {
	j := New(4)
	row := []float32{1, 2, 3, 4}
	if n := testing.AllocsPerRun(10, func() {
		j.Reset()
		for i := range int32(100) {
			j.Add(row, i%4)
		}
		j.Scores()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
