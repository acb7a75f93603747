package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/nodetest"
)

var (
	first  = flag.Uint64("first", 0, "the first seed")
	count  = flag.Uint64("seeds", 0, "how many seeds; 0: as many as -cpu allows")
	cpu    = flag.Duration("cpu", 30*time.Second, "the processor time after which no other seed begins")
	only   = flag.String("only", "", "the numbers of the faults that happen, such as 1,4,7; all others do not")
	fewest = flag.Bool("shrink", false, "look for the fewest faults with which a seed that fails still fails")
)

// leastSeeds run however long they take.
const leastSeeds = 5

// TestChaos lets the histories of some seeds happen. What fails prints the command that
// repeats it.
func TestChaos(t *testing.T) {
	begin, last := spent(t), *first+*count
	if *count == 0 {
		last = ^uint64(0)
	}
	done, faults := 0, 0
	for seed := *first; seed < last; seed++ {
		if *count == 0 && done >= leastSeeds && spent(t)-begin > *cpu {
			break
		}
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { run(t, seed) })
		done++
		faults += len(draw(seed).Faults)
	}
	t.Logf("%d histories of %d faults took %.0f s of processor time", done, faults, (spent(t) - begin).Seconds())
}

func run(t *testing.T, seed uint64) {
	h := draw(seed)
	if *only != "" {
		h = h.only(numbers(t, *only))
	}
	want := undisturbed(t, h.Strategy)
	open := descriptors(t)
	defer func() {
		if t.Failed() {
			t.Logf("%s\nto repeat it: go test ./node/nodetest/chaos -run TestChaos -first %d -seeds 1 -v; to find the fewest faults: add -shrink", h, seed)
		}
	}()
	if *fewest {
		t.Logf("the fewest faults: -only %s", listed(shrink(len(h.Faults), func(keep []int) bool { return fails(t, seed, keep) })))
		return
	}
	nodetest.Virtual(t, 0, func(t *testing.T, c *nodetest.Cluster) {
		w := begin(c, h)
		w.happen()
		w.recover()
		w.check(want)
	})
	// Timers of connections that are gone may hold some for a moment.
	runtime.GC()
	if now := descriptors(t); now > open+2 {
		t.Errorf("%d descriptors before, and %d after", open, now)
	}
}

// fails reports whether a history with some of its faults fails in one of three runs,
// each in a process of its own.
func fails(t *testing.T, seed uint64, keep []int) bool {
	if len(keep) == 0 {
		return false
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		err := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestChaos$",
			"-first", strconv.FormatUint(seed, 10), "-seeds", "1", "-only", listed(keep)).Run()
		cancel()
		if err != nil {
			t.Logf("fails with %s", listed(keep))
			return true
		}
	}
	return false
}

func listed(list []int) string {
	var all []string
	for _, n := range list {
		all = append(all, strconv.Itoa(n))
	}
	return strings.Join(all, ",")
}

func numbers(t *testing.T, s string) (list []int) {
	for n := range strings.SplitSeq(s, ",") {
		i, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, i)
	}
	return list
}

// references are the weights of jobs that nothing happens to, by strategy.
var (
	references   = map[string][]string{}
	referencesMu sync.Mutex
)

func undisturbed(t *testing.T, strategy string) []string {
	referencesMu.Lock()
	defer referencesMu.Unlock()
	if references[strategy] == nil {
		nodetest.Virtual(t, 0, func(_ *testing.T, c *nodetest.Cluster) {
			w := begin(c, history{Strategy: strategy})
			w.recover()
			references[strategy] = weights(w.jobOn(w.member(), w.job))
		})
		if n := len(references[strategy]); n != epochs {
			t.Fatalf("a job of %s that nothing happens to has %d epochs", strategy, n)
		}
	}
	return references[strategy]
}

// spent is the processor time of this process.
func spent(t *testing.T) time.Duration { return spentBy(t, syscall.RUSAGE_SELF) }

func spentBy(t *testing.T, who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestHistories(t *testing.T) {
	disks, kinds := 0, map[string]int{}
	seeds := 54 * uint64(len(trained))
	for seed := range seeds {
		h := draw(seed)
		if fmt.Sprint(h) != fmt.Sprint(draw(seed)) {
			t.Fatalf("seed %d has two histories", seed)
		}
		if len(h.Faults) < faultsAtLeast {
			t.Errorf("seed %d has %d faults", seed, len(h.Faults))
		}
		if h.Disk {
			disks++
		}
		for _, f := range h.Faults {
			kinds[f.Kind]++
		}
	}
	if uint64(disks) != seeds/3 || len(kinds) != len(odds) {
		t.Errorf("%d of %d have damaged files; kinds are %v", disks, seeds, kinds)
	}
	h := draw(1)
	all, some := time.Duration(0), time.Duration(0)
	for _, f := range h.Faults[:6] {
		all += f.After
	}
	for _, f := range h.only([]int{2, 5}).Faults {
		some += f.After
	}
	if all != some {
		t.Errorf("fault 5 happens after %s, and after %s if others are left out", all, some)
	}
}

func TestShrink(t *testing.T) {
	for _, needed := range [][]int{{3}, {0, 9}, {2, 3, 7}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		asked := 0
		got := shrink(10, func(keep []int) bool {
			asked++
			for _, n := range needed {
				if !slices.Contains(keep, n) {
					return false
				}
			}
			return true
		})
		if !slices.Equal(got, needed) || asked > 60 {
			t.Errorf("%v came to %v after %d runs", needed, got, asked)
		}
	}
}
