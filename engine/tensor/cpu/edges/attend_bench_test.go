package edges

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkAttend(b *testing.B) {
	graphs := []shape{{rows: 2708, cols: 2708, degree: 6}, {rows: 60000, cols: 60000, degree: 15}}
	for _, s := range graphs {
		for _, h := range [][2]int{{8, 8}, {1, 64}, {4, 64}, {1, 256}} {
			for _, p := range []float32{0, 0.6} {
				o := s.attended(rand.New(rand.NewPCG(1, 2)), h[0], h[1], p)
				for _, f := range families() {
					for kind, run := range map[string]func(*Edges){"": o.first, "V2": o.second} {
						b.Run(fmt.Sprintf("%s%d vertices/%d heads of %d/dropout %g/%s", kind, s.rows, h[0], h[1], p, f), func(b *testing.B) {
							e := edgesOn(b, f, 1)
							run(e)
							start := cpuTime()
							for b.Loop() {
								run(e)
							}
							b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N*o.g.Entries()), "ns/edge")
						})
					}
				}
			}
		}
	}
}
