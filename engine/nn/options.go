package nn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The keys that Resolve looks for.
const (
	keyInputDropout     = "model.input_dropout"
	keyAttentionDropout = "gat.attention_dropout"
)

// An Option is a model setting that has no flag of its own: --set KEY=VALUE.
type Option struct {
	Key     string
	Applies string // the model, or several with commas between them; "": all
	Values  string // "mean|max|gcn", or the type of values
	Default string
	Help    string

	set func(s *Spec, value string) bool
}

// options lists the settings, those shared by all models first.
var options = []Option{
	{"model.head", "", "none|linear", "none; linear for gcnii and resgcn",
		"what follows the convolutions: none, so that the last one answers, or a linear map",
		word(func(s *Spec) *string { return &s.Head }, HeadNone, HeadLinear)},
	{keyInputDropout, "", "from 0 to below 1", "{dropout} where there is neither LayerNorm nor a head (gcnii: no LayerNorm), else 0",
		"dropout of the features", share(func(s *Spec) *float64 { return &s.InputDropout })},
	{"model.jump", "", "none|cat|max", "none",
		"what the linear head sees: the last layer, all side by side, or each column's largest",
		word(func(s *Spec) *string { return &s.Jump }, JumpNone, JumpCat, JumpMax)},
	{"model.self_loops", "", "auto|on|off", "auto: on for gcn, gat and gcnii",
		"whether each vertex is one of its own neighbours",
		word(func(s *Spec) *string { return &s.SelfLoops }, LoopsAuto, LoopsOn, LoopsOff)},
	{"model.edges", "gat, gin, mpnn, " + Program, "on|off", "on where edges have some", "whether features of edges are read",
		word(func(s *Spec) *string { return &s.Edges }, LoopsOn, LoopsOff)},
	{"mpnn.aggregator", "mpnn", "mean|sum", "mean", "how messages become one row",
		word(func(s *Spec) *string { return &s.Aggregator }, "mean", "sum")},
	{"sage.aggregator", "sage, hetero:sage", "mean|max|gcn", "mean",
		"how neighbours become one row; gcn averages them with the vertex itself, under one weight",
		word(func(s *Spec) *string { return &s.Aggregator }, "mean", "max", "gcn")},
	{"gat.version", "gat, hetero:gat", "1|2", "1", "1 for GAT, 2 for GATv2",
		number(func(s *Spec) *int { return &s.Version }, 2)},
	{"gat.out_heads", "gat, hetero:gat", "a number from 1 to 256", "1", "heads of the last layer, which are averaged",
		number(func(s *Spec) *int { return &s.OutHeads }, maxHeads)},
	{keyAttentionDropout, "gat, hetero:gat", "from 0 to below 1", "{dropout}, or 0 where there is a head",
		"dropout of the weights of attention", share(func(s *Spec) *float64 { return &s.AttentionDropout })},
	{"gcnii.alpha", "gcnii", "from 0 to 1", "0.1", "how much each layer takes of the first representation",
		within(func(s *Spec) *float64 { return &s.Alpha }, 1)},
	{"rgcn.bases", "rgcn", "a number from 1 to 1024", "each relation has a weight of its own", "how many weights those of all relations are combined of",
		number(func(s *Spec) *int { return &s.Bases }, maxRelations)},
	{"hetero.across", "hetero:gat, hetero:gcn, hetero:gin, hetero:sage", "sum|mean|attention", "sum", "how the rows of the relations that end at a vertex become one",
		word(func(s *Spec) *string { return &s.Across }, AcrossSum, AcrossMean, AcrossAttend)},
	{"gcnii.theta", "gcnii", "a number from 0", "0.5", "how much the layers' weights count: log(theta/layer + 1)",
		within(func(s *Spec) *float64 { return &s.Theta }, 1e9)},
}

// Options lists the settings of models.
func Options() []Option { return slices.Clone(options) }

// Unused is an error for a valid setting that has no effect beside the others.
type Unused struct{ Key, Why string }

func (e *Unused) Error() string { return e.Why }

// Set sets the option with the given key.
func (s *Spec) Set(key, value string) error {
	i := slices.IndexFunc(options, func(o Option) bool { return o.Key == key })
	if i < 0 {
		return fmt.Errorf("there is no setting %q: %s has %s", key, s.Named(), s.settings())
	}
	o := options[i]
	if !o.applies(s.Model) {
		return &Unused{key, fmt.Sprintf("the setting %s is of the model %s, and this is %s, which has %s", key, either(strings.Split(o.Applies, ", ")), s.Named(), s.settings())}
	}
	if !o.set(s, value) {
		return fmt.Errorf("{%s} is %q, but may be %s", key, value, either(strings.Split(o.Values, "|")))
	}
	return nil
}

// applies reports whether a model has the option.
func (o *Option) applies(model string) bool {
	return o.Applies == "" || slices.Contains(strings.Split(o.Applies, ", "), model)
}

// settings lists the keys that this model has.
func (s *Spec) settings() string {
	var keys []string
	for _, o := range options {
		if o.applies(s.Model) {
			keys = append(keys, o.Key)
		}
	}
	last := len(keys) - 1
	return strings.Join(keys[:last], ", ") + " and " + keys[last]
}

// word, number, within and share return setters for one type of value.
func word(of func(*Spec) *string, may ...string) func(*Spec, string) bool {
	return func(s *Spec, value string) bool {
		if !slices.Contains(may, value) {
			return false
		}
		*of(s) = value
		return true
	}
}

func number(of func(*Spec) *int, most int) func(*Spec, string) bool {
	return func(s *Spec, value string) bool {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > most {
			return false
		}
		*of(s) = n
		return true
	}
}

func within(of func(*Spec) *float64, most float64) func(*Spec, string) bool {
	return func(s *Spec, value string) bool {
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x >= 0 && x <= most) {
			return false
		}
		*of(s) = x
		return true
	}
}

func share(of func(*Spec) *float64) func(*Spec, string) bool {
	set := within(of, 1)
	return func(s *Spec, value string) bool {
		before := *of(s)
		if !set(s, value) || *of(s) == 1 {
			*of(s) = before
			return false
		}
		return true
	}
}
