package nn_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// changed returns the defaults of a model, changed.
func changed(model string, change func(*nn.Spec)) nn.Spec {
	s := nn.Defaults(model)
	if change != nil {
		change(&s)
	}
	return s
}

// Each tensor is named once, in the step that uses it, by every kind and option.
func TestStepsNameAllTensors(t *testing.T) {
	all := func(s *nn.Spec) { s.Residual, s.Norm = true, nn.NormLayer }
	for _, s := range []nn.Spec{
		changed("gcn", nil), changed("gcn", all), changed("sage", nil), changed("sage", func(s *nn.Spec) { s.Aggregator = "max" }),
		changed("sage", func(s *nn.Spec) { s.Aggregator = "gcn" }), changed("gat", nil), changed("gat", all),
		changed("gat", func(s *nn.Spec) { s.Head, s.Jump = nn.HeadLinear, nn.JumpMax }),
		changed("gat", func(s *nn.Spec) { s.Version = 2 }), changed("gat", func(s *nn.Spec) { s.Version, s.Head = 2, nn.HeadLinear }),
		changed("gin", nil), changed("gin", func(s *nn.Spec) { s.Head, s.Jump = nn.HeadLinear, nn.JumpCat }),
		changed("gcnii", nil), changed("gcnii", all), changed("resgcn", nil), changed("mlp", nil), changed("contrast", nil),
		changed("rgcn", func(s *nn.Spec) { s.Relations = 3 }), changed("rgcn", func(s *nn.Spec) { s.Relations, s.Bases = 3, 2 }),
		changed("hetero:sage", func(s *nn.Spec) { s.Relations = 3 }), changed("hetero:gin", func(s *nn.Spec) { s.Relations = 3 }),
		changed("hetero:gat", func(s *nn.Spec) { s.Relations, s.Version = 3, 2 }), changed("hetero:gcn", func(s *nn.Spec) { s.Relations = 3 }),
	} {
		m, err := nn.New(s, 10, 3)
		if err != nil {
			t.Fatal(err)
		}
		var used, want []string
		for _, step := range m.Steps() {
			for _, name := range step.Tensors {
				whole := regexp.MustCompile(regexp.QuoteMeta(name) + `([ ,):\[]|\.( |$))`)
				if n := len(whole.FindAllString(step.Equation, -1)); n != 1 {
					t.Errorf("%+v: %s names %s %d times: %s", s, step.Name, name, n, step.Equation)
				}
				if !strings.HasPrefix(name, step.Name+".") {
					t.Errorf("%s uses %s", step.Name, name)
				}
			}
			used = append(used, step.Tensors...)
		}
		for _, p := range m.Params() {
			want = append(want, p.Name)
		}
		slices.Sort(used)
		slices.Sort(want)
		if !slices.Equal(used, want) {
			t.Errorf("%+v\nuses %v\nand has %v", s, used, want)
		}
	}
}

// A step says what is computed in the order in which it is.
func TestWordsOfSteps(t *testing.T) {
	const (
		norm    = "(y - mean) / sqrt(variance + 1e-5) * layers.0.norm.weight + layers.0.norm.bias, with mean and variance of each row (LayerNorm). "
		value   = "The value of an edge (u, v) is its weight / sqrt(degree(u) * degree(v)), or 0 where a degree is 0."
		dropped = "In training alone: dropout of 0.5 of "
	)
	for _, c := range []struct {
		spec nn.Spec
		step string
		want string
	}{
		{changed("gcn", func(s *nn.Spec) { s.Residual, s.Norm = true, nn.NormLayer }), "layers.0",
			dropped + "x. z = x * layers.0.weight. y of a vertex = the sum of value * z of the source over its in-edges. y = y + layers.0.bias. " +
				"y = y + x * layers.0.residual.weight + layers.0.residual.bias. y = " + norm + "y = max(y, 0) (ReLU). " + dropped + "y."},
		{changed("gcn", nil), "layers.1",
			"z = x * layers.1.weight. y of a vertex = the sum of value * z of the source over its in-edges. y = y + layers.1.bias."},
		{changed("resgcn", nil), "layers.1",
			"x0 = x. x = (x - mean) / sqrt(variance + 1e-5) * layers.1.norm.weight + layers.1.norm.bias, with mean and variance of each row (LayerNorm). " +
				"x = max(x, 0) (ReLU). " + dropped + "x. a = the mean of x of the sources of a vertex' in-edges, 0 where it has none. " +
				"y = a * layers.1.weight + x * layers.1.root.weight, x being the vertex' own row. y = y + layers.1.bias. y = y + x0."},
		{changed("mlp", func(s *nn.Spec) { s.Head, s.Jump = nn.HeadLinear, nn.JumpMax }), "head",
			"x = the largest of the results of all layers, in each column. y = x * head.weight. y = y + head.bias."},
		{changed("gat", nil), "layers.1",
			"z = x * layers.1.weight: 1 head of 3 columns. The score of an edge (u, v) in a head = leaky(z(u) . layers.1.attention.source + z(v) . layers.1.attention.target), " +
				"the products being those of the head's columns. Here leaky(s) = s where it is above 0, else 0.2 * s. The shares of a vertex' in-edges = softmax of their scores, in each head. " +
				dropped + "the shares. y of a head = the sum of share * z of the source over the in-edges, 0 where there are none. y = the mean of the heads. y = y + layers.1.bias."},
		{changed("hetero:sage", func(s *nn.Spec) { s.Relations, s.Across = 3, nn.AcrossMean }), "layers.1",
			"For each relation r, with the rth of the equal parts that stand one below another in each weight, in place of the weight, and with the in-edges of that relation alone, each with the value 1: " +
				"a = the mean of x of the sources of a vertex' in-edges, 0 where it has none. y = a * layers.1.relations.weight + x * layers.1.relations.root.weight, x being the vertex' own row. " +
				"y = y + layers.1.relations.bias. That is y[r]. Then y of a vertex = the mean of y[r] over the relations that end at its type, 0 where it has no in-edges at all."},
		{changed("hetero:gcn", func(s *nn.Spec) { s.Relations = 3 }), "layers.1",
			"For each relation r, with the rth of the equal parts that stand one below another in each weight, in place of the weight, and with the in-edges of that relation alone, each with the value 1: " +
				"z = x * layers.1.relations.weight. y of a vertex = the mean of z of the sources of its in-edges, 0 where it has none. " +
				"y = y + layers.1.relations.bias. That is y[r]. Then y of a vertex = the sum of y[r] over the relations that end at its type, 0 where it has no in-edges at all."},
		{changed("gcnii", nil), "encoder", dropped + "x. y = x * encoder.weight. y = y + encoder.bias. y = max(y, 0) (ReLU)."},
	} {
		if c.spec.Residual { // Resolve is for those who change a spec
			c.spec.InputDropout = 0.5
		}
		m, err := nn.New(c.spec, 10, 3)
		if err != nil {
			t.Fatal(err)
		}
		steps := m.Steps()
		i := slices.IndexFunc(steps, func(s nn.Step) bool { return s.Name == c.step })
		if i < 0 || steps[i].Equation != c.want {
			t.Errorf("%s of %s: %+v\nwant %s", c.step, c.spec.Model, steps, c.want)
		}
		if edges := steps[0]; (edges.Name == "edges") != (c.spec.Model != "mlp") ||
			strings.Contains(edges.Equation, value) != (c.spec.Model == "gcn" || c.spec.Model == "gcnii") {
			t.Errorf("%s begins with %+v", c.spec.Model, edges)
		}
	}
}

func TestResolvedSpecsHaveNoAuto(t *testing.T) {
	for _, c := range []struct {
		spec nn.Spec
		want string
	}{
		{changed("gcn", nil), nn.LoopsOn},
		{changed("gcn", func(s *nn.Spec) { s.SelfLoops = nn.LoopsOff }), nn.LoopsOff},
		{changed("sage", nil), nn.LoopsOff},
		{changed("sage", func(s *nn.Spec) { s.SelfLoops = nn.LoopsOn }), nn.LoopsOn},
		{changed("sage", func(s *nn.Spec) { s.Aggregator = "gcn" }), nn.LoopsOn},
		{changed("resgcn", nil), nn.LoopsOff},
	} {
		m, err := nn.New(c.spec, 10, 3)
		if err != nil {
			t.Fatal(err)
		}
		got := m.Resolved()
		again, err := nn.New(got, 10, 3)
		if err != nil || got.SelfLoops != c.want || again.Form() != m.Form() || m.Spec() != c.spec {
			t.Errorf("%+v: %+v (%v), want %s", c.spec, got, err, c.want)
		}
		loops := strings.Contains(m.Steps()[0].Equation, "self-loops on")
		if loops != (c.want == nn.LoopsOn) {
			t.Errorf("%+v: %s", c.spec, m.Steps()[0].Equation)
		}
	}
}
