package sample

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkSample says how many edges a second are drawn on the graph that the
// bounds are for.
func BenchmarkSample(b *testing.B) {
	t := topology(b, rmat(b, 1<<20, 1<<24))
	for _, fanouts := range [][]int{{25, 10}, {15, 10, 5}} {
		for _, form := range []Form{{}, {SelfLoops: true, Weighting: Symmetric}} {
			for _, table := range []string{"dense", "sparse", "own"} {
				for threads := 1; threads <= 2; threads++ {
					name := fmt.Sprintf("%v/loops=%v/table=%v/threads=%d", fanouts, form.SelfLoops, table, threads)
					b.Run(name, func(b *testing.B) {
						order := make([]uint32, t.Vertices())
						for v := range order {
							order[v] = uint32(v)
						}
						Order(1, 1, order)
						samplers, batches := make([]*Sampler, threads), make([]Batch, threads)
						for i := range samplers {
							samplers[i] = New(t, Options{Fanouts: fanouts, Form: form, Seed: 1})
							if table != "own" {
								samplers[i] = newSampler(t, samplers[i].o, table == "dense")
							}
						}
						edges, step := 0, 0
						var lock sync.Mutex
						for b.Loop() {
							var all sync.WaitGroup
							for i, s := range samplers {
								first := step
								step += 16
								all.Go(func() {
									drawn := 0
									for n := first; n < first+16; n++ {
										at := n % 1024 * 1024
										if err := s.Sample(b.Context(), &batches[i], 0, uint64(n), order[at:at+1024]); err != nil {
											b.Error(err)
										}
										for _, block := range batches[i].Blocks {
											drawn += block.Entries()
										}
									}
									lock.Lock()
									edges += drawn
									lock.Unlock()
								})
							}
							all.Wait()
						}
						b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
					})
				}
			}
		}
	}
}

// BenchmarkTranspose says how many entries a second are transposed.
func BenchmarkTranspose(b *testing.B) {
	t := topology(b, rmat(b, 1<<20, 1<<24))
	s := New(t, Options{Fanouts: []int{15, 10, 5}})
	roots := make([]uint32, 1024)
	for i := range roots {
		roots[i] = uint32(i * 1021)
	}
	var batch Batch
	if err := s.Sample(b.Context(), &batch, 0, 0, roots); err != nil {
		b.Fatal(err)
	}
	entries := 0
	for b.Loop() {
		for i := range batch.Blocks {
			batch.Blocks[i].Transpose()
			entries += batch.Blocks[i].Entries()
		}
	}
	b.ReportMetric(float64(entries)/b.Elapsed().Seconds()/1e6, "Medges/s")
}
