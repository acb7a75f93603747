package metric

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// Scorers of some rows each, merged in any order, score as one of all rows does.
func TestMergedIsTheWhole(t *testing.T) {
	const classes = 4
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 30 {
		whole, merged := New(classes), New(classes)
		parts := []*Scorer{New(classes), New(classes), New(classes)}
		for range round * 7 {
			row := make([]float32, classes)
			for c := range row {
				row[c] = float32(r.IntN(6))
			}
			label, part := int32(r.IntN(3)), r.IntN(2) // the third has none
			whole.Add(row, label)
			parts[part].Add(row, label)
		}
		for _, p := range r.Perm(len(parts)) {
			if err := merged.Merge(parts[p].Export(nil), round*7); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := merged.Scores(), whole.Scores(); got != want {
			t.Errorf("round %d: merged %+v, and the whole %+v", round, got, want)
		}
	}
}

func TestCountsThatCannotBeAreRefused(t *testing.T) {
	good := func() []uint64 { return []uint64{1, 0, 2, 1, 1, 2} } // right, labelled, predicted
	encode := func(counts []uint64) (b []byte) {
		for _, n := range counts {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return b
	}
	j := New(2)
	if err := j.Merge(encode(good()), 3); err != nil || j.Scores().Count != 3 || j.Scores().Accuracy != 1.0/3 {
		t.Errorf("%v, then %+v", err, j.Scores())
	}
	for name, change := range map[string]func(n []uint64) []uint64{
		"too short":             func(n []uint64) []uint64 { return n[:5] },
		"too long":              func(n []uint64) []uint64 { return append(n, 0) },
		"more than there are":   func(n []uint64) []uint64 { n[2], n[5] = 3, 3; return n },
		"right without labels":  func(n []uint64) []uint64 { n[1] = 2; return n },
		"right but not said":    func(n []uint64) []uint64 { n[0], n[4], n[5] = 2, 1, 2; return n },
		"fewer said than there": func(n []uint64) []uint64 { n[5] = 1; return n },
		"huge":                  func(n []uint64) []uint64 { n[2], n[5] = 1<<63, 1<<63; return n },
	} {
		count, right := j.count, slices.Clone(j.right)
		if err := j.Merge(encode(change(good())), 3); err == nil {
			t.Errorf("%s is merged", name)
		}
		if j.count != count || !slices.Equal(j.right, right) {
			t.Errorf("%s: what is refused is added", name)
		}
	}
}

func FuzzMerge(f *testing.F) {
	j := New(2)
	j.Add([]float32{1, 2}, 1)
	j.Add([]float32{2, 1}, 1)
	f.Add(j.Export(nil), 2)
	f.Add([]byte{}, 0)
	f.Add(make([]byte, 47), 5)
	f.Add(slices.Repeat([]byte{0xff}, 48), 1<<40)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		most = max(0, most&(1<<40-1))
		j := New(2)
		if err := j.Merge(b, most); err != nil {
			return
		}
		s := j.Scores()
		if s.Count > most || s.Accuracy < 0 || s.Accuracy > 1 || s.MacroF1 < 0 || s.MacroF1 > 1 || s.Count > 0 && !slices.Equal(j.Export(nil), b) {
			t.Errorf("%x of %d gives %+v", b, most, s)
		}
	})
}
