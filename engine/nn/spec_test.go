package nn_test

import (
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
)

func TestBadSpecs(t *testing.T) {
	for _, c := range []struct {
		model  string
		change func(s *nn.Spec)
		want   string
	}{
		{"cnn", nil, `there is no model "cnn": {model} is contrast, gat, gcn, gcnii, gin, hetero:gat, hetero:gcn, hetero:gin, hetero:sage, mlp, resgcn, rgcn or sage`},
		{"gcn", func(s *nn.Spec) { s.Layers = 0 }, "{layers} is 0, but must be from 1 to 1024"},
		{"gcn", func(s *nn.Spec) { s.Hidden = 0 }, "{hidden} is 0, but must be from 1 to 65536"},
		{"gcn", func(s *nn.Spec) { s.Hidden = -3 }, "{hidden} is -3, but must be from 1 to 65536"},
		{"gcn", func(s *nn.Spec) { s.Hidden, s.Layers = 1<<16, 9 }, "lower {hidden} or {layers}"},
		{"gcn", func(s *nn.Spec) { s.Heads = 4 }, "{heads} is 4, but a gcn has no heads: that setting is for gat"},
		{"gat", func(s *nn.Spec) { s.Heads = 0 }, "{heads} is 0, but must be from 1 to 256"},
		{"gat", func(s *nn.Spec) { s.Hidden = 1 << 14 }, "{hidden} 16384 times {heads} 8 is 131072 columns, but at most 65536 may be"},
		{"gat", func(s *nn.Spec) { s.OutHeads = 0 }, "{gat.out_heads} is 0, but must be from 1 to 256"},
		{"gat", func(s *nn.Spec) { s.Version = 3 }, "{gat.version} is 3, but may be 1 or 2"},
		{"gat", func(s *nn.Spec) { s.AttentionDropout = 1 }, "{gat.attention_dropout} is 1, but must be at least 0 and below 1"},
		{"gcn", func(s *nn.Spec) { s.Dropout = 1 }, "{dropout} is 1, but must be at least 0 and below 1"},
		{"gcn", func(s *nn.Spec) { s.Dropout = math.NaN() }, "{dropout} is NaN, but must be at least 0 and below 1"},
		{"gcn", func(s *nn.Spec) { s.InputDropout = -1 }, "{model.input_dropout} is -1, but must be at least 0 and below 1"},
		{"gcn", func(s *nn.Spec) { s.Norm = "batch" }, `{norm} is "batch", but may be none or layer`},
		{"gcn", func(s *nn.Spec) { s.Head = "mlp" }, `{model.head} is "mlp", but may be none or linear`},
		{"gcn", func(s *nn.Spec) { s.Jump = "sum" }, `{model.jump} is "sum", but may be none, cat or max`},
		{"gcn", func(s *nn.Spec) { s.SelfLoops = "yes" }, `{model.self_loops} is "yes", but may be auto, on or off`},
		{"gcn", func(s *nn.Spec) { s.Jump = "cat" }, "{model.jump}=cat is what a head sees: add {model.head}=linear"},
		{"sage", func(s *nn.Spec) { s.Aggregator = "lstm" }, `{sage.aggregator} is "lstm", but may be mean, max or gcn`},
		{"sage", func(s *nn.Spec) { s.Aggregator, s.SelfLoops = "gcn", "off" }, "{sage.aggregator}=gcn averages each vertex with its neighbours: leave out {model.self_loops}=off"},
		{"hetero:sage", func(s *nn.Spec) { s.Relations, s.Aggregator = 2, "gcn" }, "choose mean or max for a hetero:sage"},
		{"hetero:sage", func(s *nn.Spec) { s.Relations, s.Across = 2, "max" }, `{hetero.across} is "max", but may be sum, mean or attention`},
		{"hetero:gin", func(s *nn.Spec) { s.Relations, s.Ends = 2, "0,0,1" }, "2 relations end at 3 types: train it on the dataset"},
		{"hetero:gin", func(s *nn.Spec) { s.Relations, s.Ends = 2, "0,256" }, `ends at the type "256", which is no number from 0 to 255`},
		{"hetero:gin", func(s *nn.Spec) { s.Relations, s.SelfLoops = 2, "on" }, "a hetero:gin tells the relations of edges apart, and self-loops have none"},
		{"hetero:gat", func(s *nn.Spec) { s.Relations, s.Heads = 2, 0 }, "{heads} is 0, but must be from 1 to 256"},
		{"gcnii", func(s *nn.Spec) { s.Alpha = 1.5 }, "{gcnii.alpha} is 1.5, but must be from 0 to 1"},
		{"gcnii", func(s *nn.Spec) { s.Theta = math.Inf(1) }, "{gcnii.theta} is +Inf, but must be a number of at least 0"},
		{"gcnii", func(s *nn.Spec) { s.Head = "none" }, "a gcnii always ends in a linear head: leave out {model.head}=none"},
		{"resgcn", func(s *nn.Spec) { s.Jump = "max" }, "a resgcn has no jumping knowledge: leave out {model.jump}=max"},
		{"resgcn", func(s *nn.Spec) { s.Norm = "none" }, "a resgcn has LayerNorm before each layer: leave out {norm} none"},
	} {
		s := nn.Defaults(c.model)
		if c.change != nil {
			c.change(&s)
		}
		m, err := nn.New(s, 10, 3)
		if err == nil || m != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
	for _, model := range nn.Models() {
		s := nn.Defaults(model)
		if _, err := nn.New(s, 10, 3); s.Related() && (err == nil || !strings.Contains(err.Error(), "the dataset has none")) {
			t.Errorf("%s without relations: %v", model, err)
		}
		s.Relations = 2
		if _, err := nn.New(s, 10, 3); err != nil {
			t.Errorf("the defaults of %s: %v", model, err)
		}
		if _, err := nn.New(nn.Defaults(model), 0, 3); err == nil || !strings.Contains(err.Error(), "no features") {
			t.Errorf("no features: %v", err)
		}
		if _, err := nn.New(nn.Defaults(model), 10, 0); err == nil || !strings.Contains(err.Error(), "no classes") {
			t.Errorf("no classes: %v", err)
		}
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct{ model, key, value, want string }{
		{"sage", "sage.aggregator", "max", ""},
		{"gat", "gat.out_heads", "4", ""},
		{"gat", "gat.version", "2", ""},
		{"gat", "gat.attention_dropout", "0.3", ""},
		{"hetero:gat", "gat.version", "2", ""},
		{"hetero:sage", "hetero.across", "mean", ""},
		{"hetero:sage", "gat.version", "2", "the setting gat.version is of the model gat or hetero:gat, and this is a hetero:sage, which has model.head, model.input_dropout, model.jump, model.self_loops, sage.aggregator and hetero.across"},
		{"gcn", "model.input_dropout", "0", ""},
		{"gcn", "model.head", "linear", ""},
		{"gcn", "model.jump", "none", ""},
		{"gcn", "model.self_loops", "off", ""},
		{"gcnii", "gcnii.alpha", "0.2", ""},
		{"gcnii", "gcnii.theta", "1.5", ""},
		{"gcn", "sage.aggregator", "max", "the setting sage.aggregator is of the model sage or hetero:sage, and this is a gcn, which has model.head, model.input_dropout, model.jump and model.self_loops"},
		{"gat", "gat.haeds", "2", `there is no setting "gat.haeds": a gat has model.head, model.input_dropout, model.jump, model.self_loops, model.edges, gat.version, gat.out_heads and gat.attention_dropout`},
		{"sage", "sage.aggregator", "lstm", `{sage.aggregator} is "lstm", but may be mean, max or gcn`},
		{"gat", "gat.version", "3", `{gat.version} is "3", but may be 1 or 2`},
		{"gat", "gat.out_heads", "0", `{gat.out_heads} is "0", but may be a number from 1 to 256`},
		{"gcn", "model.input_dropout", "1", `{model.input_dropout} is "1", but may be from 0 to below 1`},
		{"gcn", "model.input_dropout", "NaN", `{model.input_dropout} is "NaN", but may be from 0 to below 1`},
		{"gcn", "model.input_dropout", "-1", `{model.input_dropout} is "-1", but may be from 0 to below 1`},
		{"gcnii", "gcnii.alpha", "x", `{gcnii.alpha} is "x", but may be from 0 to 1`},
		{"gcnii", "gcnii.theta", "-1", `{gcnii.theta} is "-1", but may be a number from 0`},
	} {
		s := nn.Defaults(c.model)
		before := s
		err := s.Set(c.key, c.value)
		switch {
		case c.want == "" && (err != nil || s == before && c.value != "none"):
			t.Errorf("%s=%s: %v, changed %v", c.key, c.value, err, s != before)
		case c.want != "" && (err == nil || err.Error() != c.want || s != before):
			t.Errorf("%s=%s: changed %v: %v\nwant %s", c.key, c.value, s != before, err, c.want)
		}
	}
	for _, o := range nn.Options() {
		if o.Key == "" || o.Values == "" || o.Default == "" || o.Help == "" {
			t.Errorf("%+v leaves something out", o)
		}
	}
}

// What is not said follows from the rest.
func TestResolve(t *testing.T) {
	for _, c := range []struct {
		model            string
		change           func(s *nn.Spec)
		said             []string
		input, attention float64
	}{
		{"gcn", nil, nil, 0.7, 0},
		{"gcn", nil, []string{"model.input_dropout"}, 0.5, 0},
		{"gcn", func(s *nn.Spec) { s.Norm = nn.NormLayer }, nil, 0, 0},
		{"sage", func(s *nn.Spec) { s.Head = nn.HeadLinear }, nil, 0, 0},
		{"gcnii", nil, nil, 0.7, 0},
		{"resgcn", nil, nil, 0, 0},
		{"gat", nil, nil, 0.7, 0.7},
		{"gat", func(s *nn.Spec) { s.Head = nn.HeadLinear }, nil, 0, 0},
		{"gat", nil, []string{"gat.attention_dropout", "model.head"}, 0.7, 0.5},
	} {
		s := nn.Defaults(c.model)
		s.Dropout = 0.7
		if c.change != nil {
			c.change(&s)
		}
		s.Resolve(c.said...)
		if s.InputDropout != c.input || s.AttentionDropout != c.attention {
			t.Errorf("%s %v: features drop %v and attention %v, not %v and %v", c.model, c.said, s.InputDropout, s.AttentionDropout, c.input, c.attention)
		}
	}
}
