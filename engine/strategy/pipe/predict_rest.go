package pipe

// begins is how long rows and gradients take to be set to what an epoch begins with.
func (d *draft) begins() float64 {
	most := 0
	for stage := range d.seats.Stages {
		for _, node := range d.seats.Members(stage) {
			most = max(most, d.numbers(stage, node))
		}
	}
	passes := 1.0
	if d.positions > 1 {
		passes = 2
	}
	return passes * float64(most) * d.Costs.Row
}

// numbers counts those of the rows that the layers of a node see.
func (d *draft) numbers(stage, node int) (n int) {
	for way := range d.shape.Ways() {
		if d.seats.Node(stage, way) != node {
			continue
		}
		first, end, _, _ := d.shape.Of(way)
		for s := d.cuts[stage]; s < d.cuts[stage+1]; s++ {
			if s > 0 && d.infos[s].Hops > 0 {
				n += (int(end-first) + len(d.mirrors.of[way])) * d.infos[s].In
			}
		}
	}
	return n
}

// sums is how long it takes to add up the gradients of a stage, and to update its weights:
// all wait for the slowest stage.
func (d *draft) sums() (took float64) {
	for stage := range d.seats.Stages {
		from, to := columnsOf(d.Model, d.cuts[stage], d.cuts[stage+1])
		columns, members := float64(to-from), float64(len(d.seats.Members(stage)))
		shards := 0
		for p := range d.positions {
			shards += d.shards(stage, p)
		}
		of := columns * (d.Costs.Sum*float64(shards) + d.Costs.Step/float64(d.Model.Size()) + d.Costs.Row)
		if members > 1 {
			const trips = 2 // pieces, and what they add up to
			of += trips * (d.Network.RoundTrip + (members-1)/members*columns*float64(d.Number)/d.Network.Bandwidth)
		}
		took = max(took, of)
	}
	if d.Layout.Nodes > 1 {
		took += d.Network.RoundTrip // losses
	}
	if d.Judged > 0 && parted(d.seats, d.Layout.Nodes) {
		others := float64(d.Model.Size()) * float64(d.Number) // about: a stage has little of all
		took += (d.Network.RoundTrip + others/d.Network.Bandwidth) / float64(d.Judged)
	}
	return took
}

// history is how long it takes to make one: stages work one after the other.
func (d *draft) history() (took float64) {
	for stage := range d.seats.Stages {
		for p := range d.positions {
			for s := d.cuts[stage]; s < d.cuts[stage+1]; s++ {
				compute, halo := d.layer(stage, s, p, forwards)
				took += compute + halo
			}
			if stage > 0 {
				travels, handed := d.edge(stage, p)
				took += travels - d.Network.RoundTrip + 2*handed
			}
		}
		if stage > 0 {
			took += d.Network.RoundTrip
		}
	}
	return took
}
