package local

import "github.com/hopmesh/hopmesh/engine/forecast"

// volume returns what a step sends: rows of features, and the losses; and after every few
// steps weights and moments, which are averaged.
func volume(s *forecast.Step) forecast.Volume {
	v := forecast.Rows(s)
	columns := 0
	if s.Last || (s.Index+1)%of(s.Settings).average == 0 {
		columns = (1 + s.Moments) * s.Model.Size()
	}
	v.AddSum(s, columns, nil)
	return v
}
