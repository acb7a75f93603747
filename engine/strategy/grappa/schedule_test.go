package grappa

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func schedule(t testing.TB, shards int, o Settings, seed uint64) *Schedule {
	t.Helper()
	s, err := NewSchedule(shards, &o, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cases are ways to group shards: some with slots that are not full, and groups that
// are not of a size.
var cases = []struct{ groups, shards, swept int }{
	{4, 4, 1}, {16, 16, 1}, {4, 16, 1}, {4, 16, 4}, {4, 16, 5}, {3, 12, 7}, {2, 64, 32}, {8, 64, 3}, {5, 35, 28}, {6, 12, 9},
	{3, 10, 2}, {4, 7, 0}, {5, 64, 0}, {2, 3, 1}, {1, 8, 0}, {1, 1, 0},
}

func TestASweepShowsEachShardOnce(t *testing.T) {
	for _, c := range cases {
		for _, sweep := range []string{SweepKeyed, SweepPublished} {
			o := given("sweep=" + sweep)
			o.Groups, o.Swept = c.groups, c.swept
			s := schedule(t, c.shards, o, 9)
			name := fmt.Sprintf("%v, %q", c, sweep)
			even := c.shards%c.groups == 0
			for sweep := range 3 {
				met := map[Pair]int{}
				for k := range s.Slots() {
					readers := map[int]int{}
					for g := range s.Groups() {
						some := s.Swept(g, sweep*s.Slots()+k)
						if !slices.IsSorted(some) || len(slices.Compact(slices.Clone(some))) != len(some) {
							t.Fatalf("%s: group %d has %v at once", name, g, some)
						}
						for _, shard := range some {
							if s.Of(shard) == g {
								t.Fatalf("%s: group %d is shown its own shard %d", name, g, shard)
							}
							met[Pair{g, shard}]++
							readers[shard]++
						}
					}
					own := c.shards / c.groups
					for shard, n := range readers {
						if most := (s.swept + own - 1) / own; even && n > most {
							t.Errorf("%s: %d groups meet shard %d at once, and at most %d should", name, n, shard, most)
						}
					}
				}
				pairs := 0
				for g := range s.Groups() {
					first, end := s.Base(g)
					pairs += c.shards - (end - first)
				}
				for pair, n := range met {
					if n != 1 {
						t.Errorf("%s: %v meet %d times", name, pair, n)
					}
				}
				if len(met) != pairs {
					t.Errorf("%s: %d pairs meet of %d", name, len(met), pairs)
				}
			}
		}
	}
}

func TestEachShardIsInOneBase(t *testing.T) {
	for _, c := range cases {
		o := given()
		o.Groups, o.Swept = c.groups, c.swept
		s := schedule(t, c.shards, o, 0)
		next := 0
		for g := range s.Groups() {
			first, end := s.Base(g)
			if first != next || end <= first || end-first > c.shards/c.groups+1 {
				t.Fatalf("%v: the base of group %d is %d to %d, after %d", c, g, first, end, next)
			}
			for shard := first; shard < end; shard++ {
				if s.Of(shard) != g {
					t.Fatalf("%v: shard %d is in group %d, not %d", c, shard, s.Of(shard), g)
				}
			}
			next = end
		}
		if next != c.shards {
			t.Fatalf("%v: bases end at %d", c, next)
		}
	}
}

// The published order is that in which shards follow a group's own; ours differs from
// sweep to sweep and from seed to seed.
func TestTheOrderOfSweeps(t *testing.T) {
	tour := func(o Settings, seed uint64, sweep int) string {
		s, all := schedule(t, 16, o, seed), ""
		for k := range s.Slots() {
			all += fmt.Sprint(s.Swept(2, sweep*s.Slots()+k))
		}
		return all
	}
	published := given("groups=16", "sweep=published")
	const want = "[3][4][5][6][7][8][9][10][11][12][13][14][15][0][1]"
	if got := tour(published, 1, 0); got != want {
		t.Errorf("published is %s, and should be %s", got, want)
	}
	if tour(published, 1, 0) != tour(published, 2, 5) {
		t.Error("the published order depends on the seed, or on the sweep")
	}
	keyed := given("groups=16")
	all := []string{tour(keyed, 1, 0), tour(keyed, 1, 1), tour(keyed, 2, 0), want}
	slices.Sort(all)
	if len(slices.Compact(all)) != 4 {
		t.Errorf("sweeps are alike: %v", all)
	}
}

// TestTheOrderNeverChanges holds a sweep that was drawn once.
func TestTheOrderNeverChanges(t *testing.T) {
	even, uneven := schedule(t, 12, given("groups=3", "swept=3"), 5), schedule(t, 7, given("groups=3"), 5)
	got := ""
	for g := range 3 {
		for super := range 3 {
			got += fmt.Sprint(even.Swept(g, super), uneven.Swept(g, super), " ")
		}
	}
	const frozen = "[4 5 7] [3 5 6] [6 9 11] [2 4] [8 10] [2 4 5] [8 9 11] [0 1 4] [1 3 10] [5 6] [0 2] [4 5 6] [0 1 3] [1 2 3] [2 5 7] [0] [4 6] [0 1 3] "
	if got != frozen {
		t.Errorf("sweeps are\n%s and should be\n%s", got, frozen)
	}
}

func TestNothingIsSweptWhereNothingCanBe(t *testing.T) {
	for name, s := range map[string]*Schedule{
		"off":       schedule(t, 8, given("groups=4", "sweep=off"), 1),
		"one group": schedule(t, 8, given("groups=1"), 1),
	} {
		for super := range 9 {
			for g := range s.Groups() {
				if some := s.Swept(g, super); len(some) > 0 {
					t.Errorf("%s: group %d is shown %v", name, g, some)
				}
			}
		}
		if s.Slots() != 1 {
			t.Errorf("%s: a sweep has %d slots", name, s.Slots())
		}
	}
}

// A run that ends before its sweep does says what it leaves out.
func TestWhatAShortRunLeavesOut(t *testing.T) {
	// As the published runs: 500 epochs of 50 in each super-epoch.
	o := given("groups=16")
	s := schedule(t, 16, o, 3)
	if s.Slots() != 15 {
		t.Fatalf("%d slots", s.Slots())
	}
	for supers, want := range map[int]int{0: 16 * 15, 10: 16 * 5, 14: 16, 15: 0, 40: 0} {
		unseen := s.Unseen(supers)
		if len(unseen) != want {
			t.Errorf("%d super-epochs leave out %d pairs, and should %d", supers, len(unseen), want)
		}
		for _, p := range unseen {
			for super := range supers {
				if slices.Contains(s.Swept(p.Group, super), p.Shard) {
					t.Errorf("%v meet in super-epoch %d of %d", p, super, supers)
				}
			}
		}
	}
	off := schedule(t, 6, given("groups=3", "sweep=off"), 1)
	if got := len(off.Unseen(100)); got != 3*4 {
		t.Errorf("without sweeps %d pairs are left out", got)
	}
}

func TestSchedulesThatThereAreNot(t *testing.T) {
	for want, c := range map[string]struct {
		shards int
		o      Settings
	}{
		"a graph of 0 shards has no groups":                  {0, given()},
		"grappa.groups=5: each needs a shard of its own":     {4, given("groups=5")},
		"grappa.swept=4: a group has at least 1 of the data": {4, given("groups=4", "swept=4")},
	} {
		if _, err := NewSchedule(c.shards, &c.o, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
