package nn_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// What weights are called, and their order, never changes: checkpoints hold them.
func TestNamesAreFrozen(t *testing.T) {
	for _, c := range []struct {
		model  string
		change func(s *nn.Spec)
		want   string
	}{
		{"gcn", nil, "layers.0.weight 7x5, layers.0.bias 1x5, layers.1.weight 5x3, layers.1.bias 1x3"},
		{"gcn", func(s *nn.Spec) { s.Residual, s.Norm = true, nn.NormLayer },
			"layers.0.weight 7x5, layers.0.bias 1x5, layers.0.residual.weight 7x5, layers.0.residual.bias 1x5, layers.0.norm.weight 1x5, layers.0.norm.bias 1x5, layers.1.weight 5x3, layers.1.bias 1x3"},
		{"sage", nil, "layers.0.weight 7x5, layers.0.root.weight 7x5, layers.0.bias 1x5, layers.1.weight 5x3, layers.1.root.weight 5x3, layers.1.bias 1x3"},
		{"sage", func(s *nn.Spec) { s.Aggregator, s.Head, s.Jump = "gcn", nn.HeadLinear, nn.JumpCat },
			"layers.0.weight 7x5, layers.0.bias 1x5, layers.1.weight 5x5, layers.1.bias 1x5, head.weight 10x3, head.bias 1x3"},
		{"gat", func(s *nn.Spec) { s.Heads, s.OutHeads = 2, 4 },
			"layers.0.weight 7x10, layers.0.attention.source 1x10, layers.0.attention.target 1x10, layers.0.bias 1x10, layers.1.weight 10x12, layers.1.attention.source 1x12, layers.1.attention.target 1x12, layers.1.bias 1x3"},
		{"gat", func(s *nn.Spec) { s.Heads, s.Head, s.Layers = 2, nn.HeadLinear, 1 },
			"layers.0.weight 7x10, layers.0.attention.source 1x10, layers.0.attention.target 1x10, head.weight 10x3, head.bias 1x3"},
		{"gat", func(s *nn.Spec) { s.Heads, s.Version, s.Layers = 2, 2, 1 },
			"layers.0.source.weight 7x3, layers.0.target.weight 7x3, layers.0.attention 1x3, layers.0.source.bias 1x3, layers.0.target.bias 1x3, layers.0.bias 1x3"},
		{"gin", func(s *nn.Spec) { s.Layers = 1 }, "layers.0.inner.weight 7x5, layers.0.inner.bias 1x5, layers.0.weight 5x3, layers.0.bias 1x3"},
		{"gcnii", func(s *nn.Spec) { s.Layers = 2 },
			"encoder.weight 7x5, encoder.bias 1x5, layers.0.weight 5x5, layers.1.weight 5x5, head.weight 5x3, head.bias 1x3"},
		{"resgcn", func(s *nn.Spec) { s.Layers = 2 },
			"encoder.weight 7x5, encoder.bias 1x5, layers.0.weight 5x5, layers.0.root.weight 5x5, layers.0.bias 1x5, layers.1.weight 5x5, layers.1.root.weight 5x5, layers.1.bias 1x5, layers.1.norm.weight 1x5, layers.1.norm.bias 1x5, head.weight 5x3, head.bias 1x3, head.norm.weight 1x5, head.norm.bias 1x5"},
		{"rgcn", func(s *nn.Spec) { s.Layers, s.Relations = 1, 2 },
			"encoder.weight 7x5, encoder.bias 1x5, layers.0.weight 10x3, layers.0.root.weight 5x3, layers.0.bias 1x3"},
		{"hetero:sage", func(s *nn.Spec) { s.Layers, s.Relations = 1, 2 },
			"encoder.weight 7x5, encoder.bias 1x5, layers.0.relations.weight 10x3, layers.0.relations.root.weight 10x3, layers.0.relations.bias 2x3"},
		{"hetero:gcn", func(s *nn.Spec) { s.Layers, s.Relations = 1, 2 },
			"encoder.weight 7x5, encoder.bias 1x5, layers.0.relations.weight 10x3, layers.0.relations.bias 2x3"},
		{"hetero:gat", func(s *nn.Spec) { s.Layers, s.Relations, s.Heads, s.OutHeads = 1, 2, 2, 2 },
			"encoder.weight 7x10, encoder.bias 1x10, layers.0.relations.weight 20x6, layers.0.relations.attention.source 2x6, layers.0.relations.attention.target 2x6, layers.0.relations.bias 2x3"},
		{"mlp", nil, "layers.0.weight 7x5, layers.0.bias 1x5, layers.1.weight 5x3, layers.1.bias 1x3"},
	} {
		s := nn.Defaults(c.model)
		s.Hidden = 5
		if c.change != nil {
			c.change(&s)
		}
		m := newModel(t, s, 7)
		var got []string
		offset := 0
		for _, p := range m.Params() {
			got = append(got, fmt.Sprintf("%s %dx%d", p.Name, p.Rows, p.Cols))
			if p.Offset != offset {
				t.Errorf("%s: %s starts at %d and not at %d", c.model, p.Name, p.Offset, offset)
			}
			offset += p.Rows * p.Cols
		}
		if strings.Join(got, ", ") != c.want || m.Size() != offset {
			t.Errorf("%s, %d weights:\n%s\nwant %d:\n%s", c.model, m.Size(), strings.Join(got, ", "), offset, c.want)
		}
	}
}

func TestStages(t *testing.T) {
	s := nn.Defaults("sage")
	s.Layers, s.Hidden, s.Head, s.Jump = 3, 5, nn.HeadLinear, nn.JumpCat
	for _, c := range []struct {
		spec nn.Spec
		want string
	}{
		{s, "[{layers.0 1 7 5 0 5} {layers.1 1 5 5 5 10} {layers.2 1 5 5 10 15} {head 0 5 3 15 0}]"},
		{nn.Defaults("gat"), "[{layers.0 1 7 64 0 0} {layers.1 1 64 3 0 0}]"},
		{nn.Spec{Model: "gcnii", Layers: 2, Hidden: 4, Norm: "none", Head: "linear", Jump: "none", SelfLoops: "auto"},
			"[{encoder 0 7 4 0 4} {layers.0 1 4 4 4 4} {layers.1 1 4 4 4 0} {head 0 4 3 0 0}]"},
		{nn.Defaults("mlp"), "[{layers.0 0 7 64 0 0} {layers.1 0 64 3 0 0}]"},
	} {
		m := newModel(t, c.spec, 7)
		if got := fmt.Sprint(m.Stages()); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.spec.Model, got, c.want)
		}
		hops := 0
		for _, st := range m.Stages() {
			hops += st.Hops
		}
		if m.Hops() != hops {
			t.Errorf("%s: %d hops and not %d", c.spec.Model, m.Hops(), hops)
		}
	}
}

func TestForms(t *testing.T) {
	for _, c := range []struct {
		model, aggregator, loops string
		want                     sample.Form
	}{
		{"gcn", "", "auto", sample.Form{SelfLoops: true, Weighting: sample.Symmetric}},
		{"gcn", "", "off", sample.Form{Weighting: sample.Symmetric}},
		{"gcnii", "", "auto", sample.Form{SelfLoops: true, Weighting: sample.Symmetric}},
		{"resgcn", "", "auto", sample.Form{}},
		{"resgcn", "", "on", sample.Form{SelfLoops: true}},
		{"gat", "", "auto", sample.Form{SelfLoops: true}},
		{"sage", "mean", "auto", sample.Form{}},
		{"sage", "mean", "on", sample.Form{SelfLoops: true}},
		{"sage", "gcn", "auto", sample.Form{SelfLoops: true}},
		{"gin", "", "auto", sample.Form{Weighting: sample.Sums}},
	} {
		s := nn.Defaults(c.model)
		s.SelfLoops, s.Aggregator = c.loops, c.aggregator
		if got := newModel(t, s, 3).Form(); got != c.want {
			t.Errorf("%s %s, self-loops %s: %v and not %v", c.model, c.aggregator, c.loops, got, c.want)
		}
	}
}

// Each weight begins within its bound, and fills it.
func TestInitial(t *testing.T) {
	for _, c := range []struct {
		model, name string
		fill, bound float64
	}{
		{"gcn", "layers.0.weight", 0, math.Sqrt(6.0 / (300 + 64))},
		{"gcn", "layers.0.bias", 0, 0},
		{"gcn", "layers.0.residual.weight", 0, 1 / math.Sqrt(300)},
		{"gcn", "layers.0.residual.bias", 0, 1 / math.Sqrt(300)},
		{"gcn", "layers.0.norm.weight", 1, 0},
		{"gcn", "layers.0.norm.bias", 0, 0},
		{"sage", "layers.0.weight", 0, 1 / math.Sqrt(300)},
		{"sage", "layers.0.root.weight", 0, 1 / math.Sqrt(300)},
		{"sage", "layers.0.bias", 0, 1 / math.Sqrt(300)},
		{"gat", "layers.0.weight", 0, math.Sqrt(6.0 / (300 + 512))},
		{"gat", "layers.0.attention.source", 0, math.Sqrt(6.0 / (8 + 64))},
		{"gat", "layers.0.bias", 0, 0},
		{"gin", "layers.0.inner.weight", 0, 1 / math.Sqrt(300)},
		{"gcnii", "layers.0.weight", 0, 1 / math.Sqrt(64)},
		{"gcnii", "head.weight", 0, 1 / math.Sqrt(64)},
		{"mlp", "layers.1.weight", 0, 1 / math.Sqrt(64)},
	} {
		s := nn.Defaults(c.model)
		s.Hidden, s.Norm = 64, nn.NormLayer
		s.Residual = true
		m := newModel(t, s, 300)
		w := initial(t, m, 7)
		for _, p := range m.Params() {
			if p.Name != c.name {
				continue
			}
			x := w[p.Offset:][:p.Rows*p.Cols]
			low, high := slices.Min(x)-c.fill, slices.Max(x)-c.fill
			if low < -c.bound || high > c.bound || c.bound > 0 && (low > -0.85*c.bound || high < 0.85*c.bound) {
				t.Errorf("%s %s is from %v to %v around %v, and not up to %v", c.model, c.name, low, high, c.fill, c.bound)
			}
			c.name = ""
		}
		if c.name != "" {
			t.Errorf("a %s has no %s", c.model, c.name)
		}
	}
}

// The first weights of a seed are these, on every machine.
func TestInitialIsFrozen(t *testing.T) {
	m := newModel(t, nn.Defaults("gcn"), 300)
	want := []float64{-0.0795437795253554, -0.10611086347669509, -0.09286848097784588}
	if got := initial(t, m, 1)[:3]; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if slices.Equal(initial(t, m, 1), initial(t, m, 2)) {
		t.Error("another seed begins alike")
	}
	// What a matrix begins with does not depend on the sizes of others.
	wide := newModel(t, nn.Spec{Model: "gcn", Layers: 2, Hidden: 64, Norm: "none", Head: "none", Jump: "none", SelfLoops: "auto"}, 9)
	a, b := m.Params()[2], wide.Params()[2]
	if !slices.Equal(initial(t, m, 1)[a.Offset:], initial(t, wide, 1)[b.Offset:]) {
		t.Error("the second layer depends on the size of the first")
	}
}

func initial(t testing.TB, m *nn.Model, seed uint64) []float64 {
	t.Helper()
	w, err := m.Initial(t.Context(), seed)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Who stops a run does not wait until the weights of a large model are made.
func TestInitialLooksAtItsContext(t *testing.T) {
	why := errors.New("it was stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if w, err := newModel(t, nn.Defaults("gcn"), 3000).Initial(ctx, 1); w != nil || !errors.Is(err, why) {
		t.Errorf("%d weights, %v", len(w), err)
	}
	if _, err := newModel(t, nn.Defaults("gcn"), 300).Initial(ctx, 1); err != nil {
		t.Errorf("those of a small one take no time: %v", err)
	}
}
