package pipe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Choose finds how many stages and ways take least time, of those that the settings allow
// and that nodes have memory for, with the layers cut by what they cost. It is a function
// of the facts alone. ways, if not 0, are those that the job has: what is learnt depends on
// them, so that a job which goes on keeps them.
func (f *Facts) Choose(ctx context.Context, ways int) (*Plan, error) {
	var all []Prediction
	for _, w := range f.ways(ways) {
		shape, err := f.shape(w)
		if err != nil {
			return nil, err
		}
		m, known := NewMirrors(shape, f.Census.topology), newLayers()
		for _, s := range f.stages(shape) {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("choose stages and ways: %w", context.Cause(ctx))
			}
			p := f.draft(s, shape, m, known, f.Settings.Strategy == strategy.Pipe && f.Settings.Pipe.Again).predict()
			if !p.Fits && MayRecompute(f.Settings) {
				p = f.draft(s, shape, m, known, true).predict()
			}
			all = append(all, p)
		}
	}
	// Those that fit come first, and then what is fastest: where none does, what needs least,
	// which is refused in the words of who looks after memory.
	slices.SortStableFunc(all, func(a, b Prediction) int {
		switch {
		case a.Fits != b.Fits && a.Fits:
			return -1
		case a.Fits != b.Fits:
			return 1
		case !a.Fits:
			return cmp.Compare(a.Memory, b.Memory)
		}
		return cmp.Compare(a.Seconds, b.Seconds)
	})
	return &Plan{Stages: all[0].Stages, Ways: all[0].Ways, Cuts: all[0].cuts, Tried: all}, nil
}

// ways are those to look at.
func (f *Facts) ways(kept int) (all []int) {
	s, nodes := f.Settings, f.Layout.Nodes
	switch {
	case kept > 0:
		return []int{kept}
	case s.Pipe.Ways != strategy.Asked:
		return []int{s.Pipe.WaysOf(s.Strategy, nodes)}
	case s.Deterministic:
		return []int{1} // the same on any number of nodes
	}
	most := len(f.Layout.Owners)
	if s.Strategy == strategy.Pipe {
		most = s.Pipe.ChunksOf(s.Strategy, nodes, most)
	}
	if s.Pipe.Stages > 0 {
		most = min(most, max(1, nodes/s.Pipe.Stages))
	}
	for w := 1; w <= min(nodes, most); w++ {
		all = append(all, w)
	}
	return all
}

// stages are those to look at beside the ways of a shape. No stage is without a layer, nor
// are there more than chunks of a way can keep busy.
func (f *Facts) stages(shape *Shape) (all []int) {
	s, nodes, units := f.Settings, f.Layout.Nodes, len(Units(f.Model.Stages()))-1
	if s.Strategy == strategy.Graph || s.Pipe.Stages != strategy.Asked {
		given := s.Pipe
		given.Ways = shape.Ways()
		return []int{min(units, given.StagesOf(s.Strategy, nodes, units))}
	}
	for n := 1; n <= max(1, min(nodes/shape.Ways(), units, shape.Chunks())); n++ {
		all = append(all, n)
	}
	return all
}

// Why says what speaks for a plan, with the seconds that the best of the others would take:
// none, where nothing was looked at beside it.
func (p *Plan) Why() string {
	if len(p.Tried) < 2 {
		return ""
	}
	best := &p.Tried[0]
	why := fmt.Sprintf("%s of %s: about %s an epoch%s", counted(best.Stages, "stage"), counted(best.Ways, "way"), seconds(best.Seconds), best.parts())
	const few = 2
	var others []string
	for i := range p.Tried[1:min(len(p.Tried), 1+few)] {
		o := &p.Tried[1+i]
		said := fmt.Sprintf("%dx%d %s", o.Stages, o.Ways, seconds(o.Seconds))
		if !o.Fits {
			said = fmt.Sprintf("%dx%d lacks memory", o.Stages, o.Ways)
		}
		others = append(others, said)
	}
	return why + "; " + strings.Join(others, ", ")
}

// parts names the largest of what a prediction is the sum of.
func (p *Prediction) parts() string {
	all := []struct {
		name    string
		seconds float64
	}{
		{"computing", p.Compute}, {"rows of other ways", p.Halo}, {"rows between stages", p.Boundary},
		{"idle", p.Bubble}, {"sums", p.Sum}, {"histories", p.History},
	}
	slices.SortStableFunc(all, func(a, b struct {
		name    string
		seconds float64
	}) int {
		return cmp.Compare(b.seconds, a.seconds)
	})
	var named []string
	for _, part := range all[:3] {
		if part.seconds > 0 {
			named = append(named, part.name+" "+seconds(part.seconds))
		}
	}
	if named == nil {
		return ""
	}
	return " (" + strings.Join(named, ", ") + ")"
}

// Table says of each that was looked at what it would take, a sentence each, the best
// first, as far as there is room for.
func (p *Plan) Table(most int) (all []string) {
	for i := range p.Tried[:min(len(p.Tried), most)] {
		t := &p.Tried[i]
		said := fmt.Sprintf("%s of %s would take about %s an epoch: computing %s, rows of other ways %s, rows between stages %s, idle %s, sums %s, histories %s; and %.1f MiB on the node that has most to keep",
			counted(t.Stages, "stage"), counted(t.Ways, "way"), seconds(t.Seconds), seconds(t.Compute), seconds(t.Halo), seconds(t.Boundary), seconds(t.Bubble), seconds(t.Sum), seconds(t.History), float64(t.Memory)/(1<<20))
		if !t.Fits {
			said += ", which some node lacks"
		}
		all = append(all, said)
	}
	return all
}
