package partition

import (
	"slices"
	"testing"
)

// orderPlanted is k parts in groups of some, groups in halves: parts of a group
// have most in common. Who is in which group is shuffled.
func orderPlanted(k, group int, seed uint64) (weights []uint64, groupOf []int) {
	shuffle := newRandomShuffle(uint32(k), seed)
	groupOf = make([]int, k)
	for p := range k {
		groupOf[p] = int(shuffle.of(uint32(p))) / group
	}
	weights = make([]uint64, k*k)
	groups := (k + group - 1) / group
	for a := range k {
		for b := range k {
			w := randomMix(seed, uint64(a*k+b)) % 8
			if 2*groupOf[a]/groups == 2*groupOf[b]/groups {
				w += 10
			}
			if groupOf[a] == groupOf[b] {
				w += 50
			}
			weights[a*k+b] = w
		}
		weights[a*k+a] = 1 << 40 // what is inside a part says nothing
	}
	return weights, groupOf
}

func TestOrderKeepsNeighboursTogether(t *testing.T) {
	for _, c := range []struct{ k, group int }{{16, 4}, {64, 8}, {64, 4}, {128, 16}, {48, 6}} {
		weights, groupOf := orderPlanted(c.k, c.group, 3)
		number := Order(c.k, weights, 9)
		at := make([]int, c.k)
		for p, n := range number {
			at[n] = groupOf[p]
		}
		for i := range at {
			if at[i] != at[i-i%c.group] {
				t.Errorf("%d parts in groups of %d stand as %v", c.k, c.group, at)
				break
			}
		}
		half := func(i int) int { return 2 * at[i] / (c.k / c.group) }
		for i := range c.k {
			if half(i) != half(i/(c.k/2)*(c.k/2)) {
				t.Errorf("%d parts: the halves are mixed: %v", c.k, at)
				break
			}
		}
		if !slices.Equal(number, Order(c.k, weights, 9)) {
			t.Error("the same seed gives two orders")
		}
	}
}

func TestOrderNumbersEachPartOnce(t *testing.T) {
	for _, k := range []int{0, 1, 2, 3, 5, 7, 12, 33, 100} {
		for _, empty := range []bool{true, false} {
			weights := make([]uint64, k*k)
			if !empty {
				weights, _ = orderPlanted(k, 3, uint64(k))
			}
			number := Order(k, weights, 1)
			slices.Sort(number)
			for i, n := range number {
				if int(n) != i {
					t.Fatalf("%d parts are numbered %v", k, number)
				}
			}
			if len(number) != k {
				t.Fatalf("%d numbers for %d parts", len(number), k)
			}
		}
	}
}

// What is between two parts may stand in either entry.
func TestOrderSumsBothDirections(t *testing.T) {
	weights := make([]uint64, 16)
	weights[0*4+3], weights[2*4+1] = 5, 7 // 0 with 3, 1 with 2
	if n := Order(4, weights, 0); n[0]/2 != n[3]/2 || n[1]/2 != n[2]/2 {
		t.Errorf("order %v", n)
	}
}

// The best bisection of a ring is known: 2 of its edges.
func TestExchangeFindsTheRing(t *testing.T) {
	const k = 32
	weights := make([]uint64, k*k)
	shuffle := newRandomShuffle(k, 4)
	for i := range uint32(k) {
		weights[shuffle.of(i)*k+shuffle.of((i+1)%k)] = 1
	}
	number := Order(k, weights, 1)
	for span := k / 2; span >= 2; span /= 2 {
		cut := 0
		for i := range uint32(k) {
			if int(number[shuffle.of(i)])/span != int(number[shuffle.of((i+1)%k)])/span {
				cut++
			}
		}
		if cut != k/span {
			t.Errorf("runs of %d: %d edges between them, want %d", span, cut, k/span)
		}
	}
}

// From the worst beginning, too.
func TestExchangeParts(t *testing.T) {
	const k = 20
	o := orderer{k: k, weights: make([]float64, k*k), gain: make([]float64, k), right: make([]bool, k)}
	var order []int
	for a := range k {
		order = append(order, a)
		for b := range k {
			if a != b {
				o.weights[a*k+b] = float64(1 + 9*((a+b+1)%2)) // even with even, odd with odd
			}
		}
	}
	o.exchange(order, k/2)
	if cut := o.cut(order, k/2); cut != k*k/4 {
		t.Errorf("a cut of %v: %v", cut, order)
	}
}

// No exchange of two parts makes the cut between the halves smaller.
func TestOrderIsLocallyBest(t *testing.T) {
	const k = 40
	for seed := range uint64(5) {
		weights := make([]uint64, k*k)
		for i := range weights {
			weights[i] = randomMix(seed, uint64(i)) % 1000
		}
		number := Order(k, weights, seed)
		cut := func() (sum uint64) {
			for a := range k {
				for b := range k {
					if number[a] < k/2 && number[b] >= k/2 {
						sum += weights[a*k+b] + weights[b*k+a]
					}
				}
			}
			return sum
		}
		least := cut()
		for a := range k {
			for b := range a {
				number[a], number[b] = number[b], number[a]
				if got := cut(); got < least {
					t.Fatalf("seed %d: a cut of %d, and %d with %d and %d exchanged", seed, least, got, a, b)
				}
				number[a], number[b] = number[b], number[a]
			}
		}
	}
}

func BenchmarkOrder(b *testing.B) {
	weights, _ := orderPlanted(MaxParts, 32, 1)
	for b.Loop() {
		Order(MaxParts, weights, 1)
	}
}
