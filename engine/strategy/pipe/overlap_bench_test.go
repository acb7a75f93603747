package pipe

import (
	"fmt"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// What an epoch of graph takes on two nodes whose answers take a while, and how much of it
// is waited for, where what ways see of each other is brought while they compute or not.
// Of each shard, edges lead to the next.
func BenchmarkOverlap(b *testing.B) {
	sizes := make([]int, 16)
	for i := range sizes {
		sizes[i] = 200
	}
	w := newWorld(b, 1, sizes, func(from, to int) bool { return from == to || (from+1)%len(sizes) == to })
	for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
		for _, apart := range []bool{true, false} {
			b.Run(fmt.Sprintf("%v/ahead=%v", delay, !apart), func(b *testing.B) {
				spec := deep("gcnii", 8)
				spec.Hidden = 64
				s := newSetup(spec, 1, 2, 2)
				s.apart, s.Recompute = apart, false
				s.device = func() tensor.Device { return cpu.New(1) }
				j := w.start(b, s)
				j.net.Delay = delay
				epoch, waited := 0, time.Duration(0)
				for b.Loop() {
					epoch++
					j.epoch(b, epoch)
					waited += j.nodes[0].Waited()
				}
				b.ReportMetric(float64(waited.Microseconds())/1000/float64(b.N), "ms-waited/op")
			})
		}
	}
}
