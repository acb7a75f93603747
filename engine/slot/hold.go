package slot

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// Hold copies to the device what it is to hold: edges, to be sampled as drawing returns,
// and features, with kept ones of other nodes. If the device's memory has been taken by
// others since, they stay on the host, which the notes say.
func (f *Uploader) Hold(h *Holdings, data *dataset.Graph, kept *features.Far, drawing func(summed bool) sample.ResidentOptions) (notes []string) {
	if h.Features > 0 {
		var err error
		if f.Held, err = f.Device.NewArena(int(h.Features)); err != nil {
			notes = append(notes, fmt.Sprintf("the graph's features stay in the host's memory: %v", err))
		} else {
			f.keep(data, kept)
			f.Holds.Features = h.Features
		}
	}
	if h.Edges.Graph > 0 {
		summed := h.Summed && f.Store != nil
		resident, err := f.Device.(sample.Holder).Hold(data.Topology, drawing(summed))
		if err != nil {
			notes = append(notes, fmt.Sprintf("the graph's edges stay in the host's memory: %v", err))
			return notes
		}
		f.Resident, f.Summed, f.How = resident, summed, h.How
		f.Holds.Edges, f.Holds.Summed, f.Holds.How = h.Edges, summed, h.How
	}
	return notes
}

// keep copies the local features, and the cached ones of other nodes.
func (f *Uploader) keep(data *dataset.Graph, kept *features.Far) {
	f.Store = data.Features.There(f.Device, f.Held)
	if kept != nil {
		f.Kept = &features.Far{}
		kept.Bring(f.Kept, f.Held, f.Write)
	}
}
