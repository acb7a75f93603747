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

// isolatedBeside is a case with other fan-outs and narrower layers for each width of
// features.
var isolatedBeside = map[int]load{
	widths[0]: {"gcn", 16, []int{5, 5, 5, 5}, 512},
	widths[1]: {"sage", 16, []int{10, 10, 10}, 512},
}

// isolatedLoads are all cases with features of a width.
func isolatedLoads(width int) (loads []load) {
	for _, model := range timedModels {
		for _, fanouts := range isolatedFanouts {
			loads = append(loads, load{model, isolatedHidden, fanouts, isolatedBatch})
		}
	}
	return append(loads, isolatedBeside[width])
}

// What its authors say of how much faster than others it is: on average, and at best.
// The bar is the former.
const (
	isolatedMean = 4
	isolatedBest = 13
)

// Sweeping is timed over one super-epoch and the switch that ends it, with the cases
// beside: where epochs are short, a switch counts most.
const (
	sweptPeriod = 50
	sweptMost   = 0.1 // of the time without
)
