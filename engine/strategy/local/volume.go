package local

import (
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/forecast"
)

// volume returns what a step sends: rows of features, and the losses; and after every few
// steps weights and moments, which are averaged.
func volume(s *forecast.Step) forecast.Volume {
	v := forecast.Rows(s)
	v.Rounds = 1
	columns := 0
	if s.Last || (s.Index+1)%of(s.Settings).average == 0 {
		columns, v.Rounds = (1+s.Moments)*s.Model.Size(), 2
	}
	sum, busiest := exchange.Volume(s.Nodes, columns, s.Number, nil)
	v.All.Add(sum)
	v.Exposed, v.Asked = busiest, v.Rounds*(s.Nodes-1)
	return v
}
