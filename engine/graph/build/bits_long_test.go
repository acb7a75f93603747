//go:build long

package build

import (
	"runtime"
	"testing"
)

func TestSameBitsOnAnyThreadsAndMemory(t *testing.T) {
	for i, s := range shapes[2:] {
		for _, partitioner := range []string{random, stream, multilevel} {
			o := Options{Partitioner: partitioner, Undirected: i%2 == 0, Shards: 3, Seed: 3}
			first, _ := build(t, s.source(1), o, nil)
			for _, threads := range []int{1, 3} {
				before := runtime.GOMAXPROCS(threads)
				m := s.source(1)
				m.batch = 7 * threads
				second, _ := build(t, m, o, func(p *plan) {
					small(p)
					p.records += 1000 * (threads - 1)
				})
				runtime.GOMAXPROCS(before)
				if digests(first) != digests(second) {
					t.Errorf("%+v with %s: other bits on %d threads with little memory", s, partitioner, threads)
				}
			}
			if i > 0 {
				continue
			}
			o.Seed++
			if other, _ := build(t, s.source(1), o, nil); digests(first) == digests(other) {
				t.Errorf("%+v with %s: another seed cuts the same", s, partitioner)
			}
		}
	}
}
