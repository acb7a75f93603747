package sample_test

import (
	"testing"
	"fmt"
	"sort"
	"os"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/sample/twin"
)

func TestTmpCPU(b *testing.T) {
	t, err := sample.NewTopology(sample.RMAT(b, 1<<20, 1<<24))
	if err != nil { b.Fatal(err) }
	w, err := twin.Build(b.Context(), t)
	if err != nil { b.Fatal(err) }
	defer w.Close()
	roots := make([]uint32, t.Vertices())
	for v := range roots { roots[v] = uint32(v) }
	sample.Order(1, 1, roots)
	for _, fanouts := range [][]int{{25, 10}, {15, 10, 5}} {
		work := twin.Work{Fanouts: fanouts, Seed: 1, Epoch: 1, Roots: roots[:1<<15], Batch: 1024, Threads: 1}
		var o, th []float64
		for range 15 {
			a, err := twin.Ours(t, work)
			if err != nil { b.Fatal(err) }
			o = append(o, float64(a.Edges)/a.CPU/1e6)
			if os.Getenv("NOTWIN") == "" {
			c, err := w.Run(b.Context(), work)
			if err != nil { b.Fatal(err) }
			th = append(th, float64(c.Edges)/c.CPU/1e6)
			} else { th = append(th, 1) }
		}
		sort.Float64s(o); sort.Float64s(th)
		fmt.Printf("%v ours %.1f (max %.1f) theirs %.1f (max %.1f) ratio %.2f\n", fanouts, o[7], o[14], th[7], th[14], o[7]/th[7])
	}
}
