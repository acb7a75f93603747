package bench

// This file fixes what grappa is compared with centric on. Nothing here depends on what
// is measured.

// isolatedFanouts are those that grappa is published with, of models of three and four
// layers.
var isolatedFanouts = [][]int{{15, 10, 5}, {20, 15, 10, 5}}

// What those models are otherwise: of the published width, with a quarter of the
// published batch on each of four nodes.
const (
	isolatedHidden = 128
	isolatedBatch  = 1024
)

// isolatedBeside are cases with other fan-outs and narrower layers.
var isolatedBeside = []load{
	{"sage", 16, []int{10, 10, 10}, 512},
	{"gcn", 16, []int{5, 5, 5, 5}, 512},
}

// isolatedLoads are all cases, each of which is trained at both widths of features.
func isolatedLoads() (loads []load) {
	for _, model := range timedModels {
		for _, fanouts := range isolatedFanouts {
			loads = append(loads, load{model, isolatedHidden, fanouts, isolatedBatch})
		}
	}
	return append(loads, isolatedBeside...)
}

// What its authors say of how much faster than others it is: on average, and at best.
// The bar is the former.
const (
	isolatedMean = 4
	isolatedBest = 13
)

// Sweeping is timed over one super-epoch and the switch that ends it.
const (
	sweptPeriod = 50
	sweptMost   = 0.1 // of the time without
)

// sweptLoads are what it is timed with: one with wide features and one with narrow ones.
var sweptLoads = []struct {
	load
	width int
}{
	{load{"sage", isolatedHidden, isolatedFanouts[0], isolatedBatch}, widths[1]},
	{load{"gcn", isolatedHidden, isolatedFanouts[1], isolatedBatch}, widths[0]},
}
