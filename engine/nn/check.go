package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// Bounds on a model: far above what anyone trains, far below where sizes overflow.
const (
	maxLayers = 1024
	maxWidth  = 1 << 16
	maxHeads  = 256
	maxSize   = 1<<31 - 1

	maxRelations = 8192
)

// check returns an error that names the invalid settings, if any.
func (s *Spec) check(features, classes int) error {
	if _, known := kinds[s.Model]; !known {
		return fmt.Errorf("there is no model %q: {model} is %s", s.Model, either(Models()))
	}
	if features < 1 {
		return fmt.Errorf("the dataset has no features, and a model needs one at least")
	}
	if classes < 1 {
		return fmt.Errorf("the dataset has no classes, and a model needs one at least")
	}
	for _, f := range []func() error{s.checkSizes, s.checkDropout, s.checkWords, s.checkOwn, s.checkTogether} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) checkSizes() error {
	for _, n := range []struct {
		name       string
		value, max int
	}{{"{layers}", s.Layers, maxLayers}, {"{hidden}", s.Hidden, maxWidth}} {
		if n.value < 1 || n.value > n.max {
			return fmt.Errorf("%s is %d, but must be from 1 to %d", n.name, n.value, n.max)
		}
	}
	if s.typed() && s.Heads > 0 && s.Heads <= maxHeads && s.Hidden%s.Heads != 0 {
		return fmt.Errorf("{hidden} is %d, which %d heads of %s can't share: give a multiple of {heads}", s.Hidden, s.Heads, s.Named())
	}
	if s.each() != "gat" && !s.typed() {
		if s.Heads > 1 || s.Heads < 0 {
			return fmt.Errorf("{heads} is %d, but %s has no heads: that setting is for gat, hetero:gat and hgt", s.Heads, s.Named())
		}
		return nil
	}
	if s.Heads < 1 || s.Heads > maxHeads {
		return fmt.Errorf("{heads} is %d, but must be from 1 to %d", s.Heads, maxHeads)
	}
	if s.width() > maxWidth {
		return fmt.Errorf("{hidden} %d times {heads} %d is %d columns, but at most %d may be", s.Hidden, s.Heads, s.width(), maxWidth)
	}
	if s.each() == "gat" && s.Head == HeadNone && (s.OutHeads < 1 || s.OutHeads > maxHeads) {
		return fmt.Errorf("{gat.out_heads} is %d, but must be from 1 to %d", s.OutHeads, maxHeads)
	}
	return nil
}

func (s *Spec) checkDropout() error {
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"{dropout}", s.Dropout},
		{"{" + keyInputDropout + "}", s.InputDropout},
		{"{" + keyAttentionDropout + "}", s.AttentionDropout},
	} {
		if !(p.value >= 0 && p.value < 1) {
			return fmt.Errorf("%s is %v, but must be at least 0 and below 1", p.name, p.value)
		}
	}
	return nil
}

func (s *Spec) checkWords() error {
	for _, w := range []struct {
		name, value string
		may         []string
	}{
		{"{norm}", s.Norm, []string{NormNone, NormLayer}},
		{"{model.head}", s.Head, []string{HeadNone, HeadLinear}},
		{"{model.jump}", s.Jump, []string{JumpNone, JumpCat, JumpMax}},
		{"{model.self_loops}", s.SelfLoops, []string{LoopsAuto, LoopsOn, LoopsOff}},
	} {
		if !slices.Contains(w.may, w.value) {
			return fmt.Errorf("%s is %q, but may be %s", w.name, w.value, either(w.may))
		}
	}
	return nil
}

// checkOwn checks the settings of a single model.
func (s *Spec) checkOwn() error {
	switch {
	case s.each() == "sage" && !slices.Contains([]string{"mean", "max", "gcn"}, s.Aggregator):
		return fmt.Errorf("{sage.aggregator} is %q, but may be mean, max or gcn", s.Aggregator)
	case s.Model == "mpnn" && s.Aggregator != "mean" && s.Aggregator != "sum":
		return fmt.Errorf("{mpnn.aggregator} is %q, but may be mean or sum", s.Aggregator)
	case s.Edges != "" && s.Edges != LoopsOn && s.Edges != LoopsOff:
		return fmt.Errorf("{model.edges} is %q, but may be on or off", s.Edges)
	case s.Edges == LoopsOn && s.EdgeFeatures == 0:
		return fmt.Errorf("{model.edges} is on, and the edges of the dataset have no features that %s reads: import it with {dataset.edge_features}, or leave it out", s.Named())
	case s.EdgeFeatures < 0 || s.EdgeFeatures > maxWidth || s.EdgeFeatures > 0 && kinds[s.Model].along == nil:
		return fmt.Errorf("%s reads no features of edges, and the recipe has %d", s.Named(), s.EdgeFeatures)
	case s.EdgeFeatures > 0 && s.each() == "gat" && s.Version == 2:
		return errors.New("{gat.version} 2 reads no features of edges: leave one of it and {model.edges} out")
	case s.each() == "gat" && s.Version != 1 && s.Version != 2:
		return fmt.Errorf("{gat.version} is %d, but may be 1 or 2", s.Version)
	case s.Related() && (s.Relations < 1 || s.Relations > maxRelations):
		return fmt.Errorf("%s tells the relations of edges apart, and the dataset has none: choose another {model}, or import a typed graph", s.Named())
	case s.Related() && (s.Bases < 0 || s.Bases > maxRelations):
		return fmt.Errorf("{rgcn.bases} is %d, but must be from 1 to %d", s.Bases, maxRelations)
	case (s.Related() || s.Model == Program && s.Relations > 0) && s.SelfLoops == LoopsOn:
		return fmt.Errorf("%s tells the relations of edges apart, and self-loops have none: leave out {model.self_loops}=on", s.Named())
	case s.apart() && s.Aggregator == "gcn":
		return fmt.Errorf("{sage.aggregator}=gcn averages each vertex with its neighbours, and a relation has no self-loops: choose mean or max for %s", s.Named())
	case s.apart() && s.Across != AcrossSum && s.Across != AcrossMean && s.Across != AcrossAttend:
		return fmt.Errorf("{hetero.across} is %q, but may be sum, mean or attention", s.Across)
	case (s.apart() || s.typed()) && endsOf(s, s.Ends) != nil:
		return fmt.Errorf("the recipe does not say at which types relations end: %w: train it on the dataset that it was made for", endsOf(s, s.Ends))
	case s.typed() && endsOf(s, s.Starts) != nil:
		return fmt.Errorf("the recipe does not say at which types relations begin: %w: train it on the dataset that it was made for", endsOf(s, s.Starts))
	case s.Model == "gcnii" && !(s.Alpha >= 0 && s.Alpha <= 1):
		return fmt.Errorf("{gcnii.alpha} is %v, but must be from 0 to 1", s.Alpha)
	case s.Model == "gcnii" && (!(s.Theta >= 0) || math.IsInf(s.Theta, 1)):
		return fmt.Errorf("{gcnii.theta} is %v, but must be a number of at least 0", s.Theta)
	}
	return nil
}

// endsOf returns an error unless a text says at which types the relations of a spec end.
func endsOf(s *Spec, text string) error {
	_, err := sample.ParseEnds(text, s.Relations)
	return err
}

// checkTogether checks for settings that exclude each other.
func (s *Spec) checkTogether() error {
	switch {
	case (s.encoded() || s.typed()) && s.Head != HeadLinear:
		return fmt.Errorf("%s always ends in a linear head: leave out {model.head}=%s", s.Named(), s.Head)
	case s.projects() && s.Jump != JumpNone:
		return fmt.Errorf("%s has no jumping knowledge: leave out {model.jump}=%s", s.Named(), s.Jump)
	case s.preActivated() && s.Norm != NormLayer:
		return fmt.Errorf("a %s has LayerNorm before each layer: leave out {norm} %s", s.Model, s.Norm)
	case s.Jump != JumpNone && s.Head != HeadLinear:
		return fmt.Errorf("{model.jump}=%s is what a head sees: add {model.head}=linear", s.Jump)
	case s.Model == "sage" && s.Aggregator == "gcn" && s.SelfLoops == LoopsOff:
		return fmt.Errorf("{sage.aggregator}=gcn averages each vertex with its neighbours: leave out {model.self_loops}=off")
	}
	return nil
}
