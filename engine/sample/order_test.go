package sample

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestOrderNeverChanges(t *testing.T) {
	for _, c := range []struct {
		seed, epoch uint64
		want        []uint32
	}{
		{0, 0, []uint32{2, 17, 30, 1, 11, 8, 9, 4, 5, 6}},
		{0, 1, []uint32{6, 2, 8, 17, 30, 11, 4, 9, 1, 5}},
		{1, 0, []uint32{30, 11, 4, 1, 2, 9, 6, 8, 5, 17}},
	} {
		got := []uint32{9, 2, 11, 30, 4, 5, 6, 17, 8, 1}
		if Order(c.seed, c.epoch, got); !slices.Equal(got, c.want) {
			t.Errorf("seed %d, epoch %d: %v", c.seed, c.epoch, got)
		}
	}
}

func TestOrderDependsOnTheSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	a := distinct(r, 5000, 1000)
	b := slices.Clone(a)
	slices.Reverse(b)
	Order(3, 4, a)
	if Order(3, 4, b); !slices.Equal(a, b) {
		t.Error("the order depends on that before")
	}
	Order(3, 5, b)
	if slices.Equal(a, b) {
		t.Error("two epochs have one order")
	}
	slices.Sort(a)
	if slices.Sort(b); !slices.Equal(a, b) {
		t.Error("vertices were lost")
	}
	Order(1, 1, nil)
}

// TestOrderIsUniform counts how often each vertex comes at each place.
func TestOrderIsUniform(t *testing.T) {
	const n, epochs = 8, 40000
	var count [n][n]int
	for epoch := range uint64(epochs) {
		a := []uint32{0, 1, 2, 3, 4, 5, 6, 7}
		Order(1, epoch, a)
		for i, v := range a {
			count[i][v]++
		}
	}
	chi := 0.0
	for _, row := range count {
		for _, got := range row {
			d := float64(got) - epochs/n
			chi += d * d / (epochs / n)
		}
	}
	if chi < 15 || chi > 100 { // 49 degrees of freedom
		t.Errorf("chi-square is %v", chi)
	}
}
