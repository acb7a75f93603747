package partition

import (
	"runtime"
	"testing"
)

// allocated is how many bytes a function allocates, also those that it leaves for the collector.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestMultilevelMemory(t *testing.T) {
	for name, g := range map[string]*Graph{
		"grid": gridGraph(300), "dense": uniformGraph(10000, 500000, 1), "one weight": weighed(gridGraph(300), func(int) uint32 { return 1 }),
	} {
		n, m := uint32(g.vertices()), uint64(len(g.Indices))
		forecast := MultilevelMemory(n, m, g.Constraints)
		size := uint64(8*len(g.Indptr) + 4*len(g.Indices) + 4*len(g.Weights))
		all := size + allocated(func() { multilevel(t, g, Options{Parts: 8, Threads: 2}) })
		// What lives to the end, however early the collector comes.
		held := size + 4*uint64(n) + allocated(func() {
			newHierarchy(newCrew(t.Context(), 2), g)
			newRefiner(newCrew(t.Context(), 2), g, 8, g.totals(), make([]bool, g.Constraints))
		})
		if forecast < held || forecast < all*9/10 {
			t.Errorf("%s: %d bytes are forecast, %d allocated, %d of them held", name, forecast, all, held)
		}
		first := min(m, max(thinLeast, m/thinShare))*80 + 4<<20
		if float64(forecast-first) > 1.1*float64(held) {
			t.Errorf("%s: %d bytes are forecast beside the first partition, %d held", name, forecast-first, held)
		}
	}
}
