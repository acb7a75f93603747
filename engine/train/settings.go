package train

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A setting is one key of --set that is not the model's.
type setting struct {
	nn.Option
	set func(r *Recipe, value string) error
}

var settings = []setting{
	{nn.Option{Key: "train.schedule", Applies: "train", Values: "constant|step|cosine|plateau", Default: Constant,
		Help: "how the learning rate changes over the epochs"},
		func(r *Recipe, v string) error {
			return word(v, func(v string) { r.Schedule.choose(v) }, Constant, Step, Cosine, Plateau)
		}},
	{nn.Option{Key: "train.warmup", Applies: "train", Values: "EPOCHS", Default: "0",
		Help: "epochs over which the learning rate rises before the schedule begins"},
		func(r *Recipe, v string) error { return integer(v, &r.Schedule.Warmup) }},
	{nn.Option{Key: "train.step_every", Applies: "train.schedule step, plateau", Values: "N", Default: "50, 10",
		Help: "epochs (step), or evaluations without a better one (plateau), before the rate falls"},
		func(r *Recipe, v string) error { return integer(v, &r.Schedule.Every) }},
	{nn.Option{Key: "train.factor", Applies: "train.schedule step, plateau", Values: "X", Default: "0.5",
		Help: "what the rate is multiplied by each time it falls"},
		func(r *Recipe, v string) error { return number(v, &r.Schedule.Factor) }},
	{nn.Option{Key: "train.least_lr", Applies: "train.schedule cosine, plateau", Values: "X", Default: "0",
		Help: "what the rate does not fall below"},
		func(r *Recipe, v string) error { return number(v, &r.Schedule.Least) }},
	{nn.Option{Key: "train.momentum", Applies: "--optimizer sgd", Values: "X", Default: "0",
		Help: "how much of the last update is repeated"},
		func(r *Recipe, v string) error { return number(v, &r.Optimizer.Momentum) }},
	{nn.Option{Key: "train.loss", Applies: "train", Values: "softmax|bce", Default: Softmax,
		Help: "one class of all, or a yes or no for each class"},
		func(r *Recipe, v string) error { return word(v, func(v string) { r.Loss = v }, Softmax, BCE) }},
	{nn.Option{Key: "train.metric", Applies: "train", Values: "accuracy|macro_f1|roc_auc", Default: Accuracy,
		Help: "what the best epoch is best in, on the validation vertices"},
		func(r *Recipe, v string) error {
			return word(v, func(v string) { r.Metric = v }, Accuracy, MacroF1, ROCAUC)
		}},
	{nn.Option{Key: "train.products", Applies: "train", Values: "f32|bf16", Default: "f32",
		Help: "bf16 is faster where the CPU multiplies such numbers, and less exact"},
		func(r *Recipe, v string) error {
			return word(v, func(v string) { r.BF16 = v == "bf16" }, "f32", "bf16")
		}},
}

// Settings lists what Set knows, the model's own keys last.
func Settings() []nn.Option {
	var all []nn.Option
	for _, s := range settings {
		all = append(all, s.Option)
	}
	for _, k := range strategy.Keys() {
		all = append(all, nn.Option{Key: k.Key, Applies: k.Applies, Values: k.Values, Default: k.Default, Help: k.Help})
	}
	return append(all, nn.Options()...)
}

// Set sets what --set KEY=VALUE names.
func (r *Recipe) Set(key, value string) error {
	for _, s := range settings {
		if s.Key != key {
			continue
		}
		if err := s.set(r, value); err != nil {
			return fmt.Errorf("--set %s=%s: %w", key, value, err)
		}
		return nil
	}
	if known, err := r.Sharing.Set(key, value); known {
		if err != nil {
			return fmt.Errorf("--set %w", err)
		}
		return nil
	}
	for _, o := range nn.Options() {
		if o.Key == key {
			return r.Model.Set(key, value)
		}
	}
	return fmt.Errorf("there is no setting %s: `hopmesh train options` lists what there is", key)
}

func word(value string, set func(string), known ...string) error {
	if !slices.Contains(known, value) {
		return fmt.Errorf("it is one of %s", strings.Join(known, ", "))
	}
	set(value)
	return nil
}

func integer(value string, to *int) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("%q is no whole number", value)
	}
	*to = n
	return nil
}

func number(value string, to *float64) error {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return fmt.Errorf("%q is no number", value)
	}
	*to = x
	return nil
}
