package train

import "math"

// A Schedule is how the learning rate changes.
type Schedule struct {
	Kind   string  `json:"kind"`             // constant, step, cosine or plateau
	Warmup int     `json:"warmup,omitempty"` // epochs of linear rise before it
	Every  int     `json:"every,omitempty"`  // step: epochs; plateau: evaluations
	Factor float64 `json:"factor,omitempty"` // step and plateau
	Least  float64 `json:"least,omitempty"`  // cosine and plateau: never below
}

// The kinds of schedules.
const (
	Constant = "constant"
	Step     = "step"
	Cosine   = "cosine"
	Plateau  = "plateau"
)

// usualEvery and usualFactor are what a schedule has that lowers the rate, unless
// somebody says something else.
var usualEvery = map[string]int{Step: 50, Plateau: 10}

const usualFactor = 0.5

// choose sets the kind, and what it must know that nobody has said yet. What the kind
// chosen before had for want of words goes with it.
func (s *Schedule) choose(kind string) {
	if s.lowers() && s.Every == usualEvery[s.Kind] {
		s.Every = 0
	}
	if s.lowers() && s.Factor == usualFactor {
		s.Factor = 0
	}
	s.Kind = kind
	if !s.lowers() {
		return
	}
	if s.Every == 0 {
		s.Every = usualEvery[kind]
	}
	if s.Factor == 0 {
		s.Factor = usualFactor
	}
}

// lowers says whether the schedule lowers the rate now and then.
func (s *Schedule) lowers() bool { return s.Kind == Step || s.Kind == Plateau }

// rate is that of an epoch, from 1, out of so many. falls is how often a plateau
// has brought it down before.
func (s *Schedule) rate(base float64, epoch, epochs, falls int) float64 {
	if epoch <= s.Warmup {
		return base * float64(epoch) / float64(s.Warmup)
	}
	since := float64(epoch - 1 - s.Warmup)
	switch s.Kind {
	case Step:
		return base * math.Pow(s.Factor, math.Floor(since/float64(s.Every)))
	case Cosine:
		// From the base at first; what would follow the last epoch has the least.
		whole := float64(epochs - s.Warmup)
		return s.Least + (base-s.Least)*(1+math.Cos(math.Pi*since/whole))/2
	case Plateau:
		return max(s.Least, base*math.Pow(s.Factor, float64(falls)))
	}
	return base
}
