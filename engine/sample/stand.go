package sample

// stand scales the values of one sampled row so that its entries stand for the whole row
// of the graph. values[0] belongs to the added self-loop, if there is one. The others
// hold the weights of the drawn entries, whose positions in the row are in positions.
func (r *row) stand(values []float32, p *part, at uint32, positions []uint32, mean bool) {
	drawn := values[len(values)-int(r.drawn):]
	scale := float32(1)
	if mean {
		// A mean divides by the number of entries, but should divide by the degree.
		loop := len(values) - len(drawn)
		entries, degree := int64(len(values)), int64(int(p.degrees[at])+loop)
		if loop > 0 {
			values[0] = float32(float64(entries) / float64(degree))
		}
		if r.drawn > 0 {
			scale = float32(float64(entries*int64(r.held)) / float64(degree*int64(r.drawn)))
		}
	}
	times := p.times[r.from:][:r.held]
	if r.drawn < r.held {
		for j, at := range positions[:r.drawn] {
			drawn[j] *= scale * times[at]
		}
		return
	}
	for j, f := range times {
		drawn[j] *= scale * f
	}
}
