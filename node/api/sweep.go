package api

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Sweep is a key and the values that it takes in turn. The key is the name of a flag of
// `hopmesh train start`, without its dashes, or the key of a setting.
type Sweep struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// maxModels bounds the models of a sweep.
const maxModels = 64

// sweptFlag is a flag that may be swept over: whether a request has it, and how to set
// it.
type sweptFlag struct {
	given func(r *TrainRequest) bool
	set   func(r *TrainRequest, value string) error
}

var sweptFlags = map[string]sweptFlag{
	"model":        ofText(func(r *TrainRequest) *string { return &r.Model }),
	"norm":         ofText(func(r *TrainRequest) *string { return &r.Norm }),
	"optimizer":    ofText(func(r *TrainRequest) *string { return &r.Optimizer }),
	"layers":       of("a whole number", strconv.Atoi, func(r *TrainRequest) **int { return &r.Layers }),
	"hidden":       of("a whole number", strconv.Atoi, func(r *TrainRequest) **int { return &r.Hidden }),
	"heads":        of("a whole number", strconv.Atoi, func(r *TrainRequest) **int { return &r.Heads }),
	"patience":     of("a whole number", strconv.Atoi, func(r *TrainRequest) **int { return &r.Patience }),
	"dropout":      of("a number", number, func(r *TrainRequest) **float64 { return &r.Dropout }),
	"lr":           of("a number", number, func(r *TrainRequest) **float64 { return &r.Rate }),
	"weight-decay": of("a number", number, func(r *TrainRequest) **float64 { return &r.WeightDecay }),
	"residual":     of("true or false", strconv.ParseBool, func(r *TrainRequest) **bool { return &r.Residual }),
}

// sameFlags are flags that all models of a sweep have in common.
var sameFlags = []string{
	"dataset", "epochs", "batch", "fanout", "relation-fanout", "normalize-features", "eval-every", "split", "task", "edge-split", "loss", "from",
	"seed", "strategy", "deterministic",
}

// SweptFlags lists the flags that may be swept over.
func SweptFlags() []string { return slices.Sorted(maps.Keys(sweptFlags)) }

func number(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

func ofText(field func(*TrainRequest) *string) sweptFlag {
	return sweptFlag{
		given: func(r *TrainRequest) bool { return *field(r) != "" },
		set: func(r *TrainRequest, value string) error {
			*field(r) = value
			return nil
		},
	}
}

func of[T any](what string, parse func(string) (T, error), field func(*TrainRequest) **T) sweptFlag {
	return sweptFlag{
		given: func(r *TrainRequest) bool { return *field(r) != nil },
		set: func(r *TrainRequest, value string) error {
			v, err := parse(value)
			if err != nil {
				return fmt.Errorf("%q is not %s", value, what)
			}
			*field(r) = &v
			return nil
		},
	}
}

// Variant is one model of a sweep.
type Variant struct {
	Index   int
	Params  map[string]string
	Request TrainRequest // for this model alone
	said    string       // Params, in the order of the sweep
}

// String returns a name of the model for people.
func (v Variant) String() string { return fmt.Sprintf("model %d of the sweep (%s)", v.Index, v.said) }

// Variants returns the models of a sweep, in order. Their requests are not checked.
func (r TrainRequest) Variants() ([]Variant, error) {
	if err := r.checkKeys(); err != nil {
		return nil, err
	}
	alone := r
	alone.Sweep = nil
	list := []Variant{{Request: alone}}
	for _, s := range r.Sweep {
		var next []Variant
		for _, v := range list {
			for _, value := range s.Values {
				one, err := v.with(s.Key, value)
				one.Index = len(next)
				if err != nil {
					return nil, Invalid("--sweep %s: %v", s.Key, err)
				}
				next = append(next, one)
			}
		}
		list = next
	}
	return list, nil
}

// with returns the variant with one more parameter.
func (v Variant) with(key, value string) (Variant, error) {
	v.Params = maps.Clone(v.Params)
	if v.Params == nil {
		v.Params = map[string]string{}
	}
	v.Params[key] = value
	if v.said != "" {
		v.said += ", "
	}
	v.said += key + "=" + value
	if f, is := sweptFlags[key]; is {
		return v, f.set(&v.Request, value)
	}
	v.Request.Set = append(slices.Clone(v.Request.Set), Setting{key, value})
	return v, nil
}

// checkKeys returns an error unless the sweep can be expanded to models.
func (r TrainRequest) checkKeys() error {
	models := 1
	for i, s := range r.Sweep {
		if s.Key == "" {
			return Invalid("a sweep names no key: give --sweep KEY=V,V, such as --sweep lr=0.01,0.001")
		}
		if slices.Contains(sameFlags, s.Key) {
			return Invalid("--sweep can't take %s, which is the same for all models of a job, as are their batches: start one job for each value", s.Key)
		}
		if slices.ContainsFunc(r.Sweep[:i], func(o Sweep) bool { return o.Key == s.Key }) {
			return Invalid("--sweep names %s twice: give all its values at once, such as --sweep lr=0.01,0.001", s.Key)
		}
		if f, is := sweptFlags[s.Key]; is && f.given(&r) {
			return Invalid("%s is given as --%s and by --sweep: leave one of them out", s.Key, s.Key)
		}
		if slices.ContainsFunc(r.Set, func(o Setting) bool { return o.Key == s.Key }) {
			return Invalid("%s is given by --set and by --sweep: leave one of them out", s.Key)
		}
		if models *= len(s.Values); models > maxModels {
			return Invalid("the sweep has more than %d models, which is the most for a job: give fewer values, or start several jobs", maxModels)
		}
		if err := s.checkValues(); err != nil {
			return err
		}
	}
	return nil
}

func (s Sweep) checkValues() error {
	for i, v := range s.Values {
		switch {
		case strings.TrimSpace(v) == "":
			return Invalid("--sweep %s has an empty value: give values with commas between them, such as --sweep lr=0.01,0.001", s.Key)
		case slices.Contains(s.Values[:i], v):
			return Invalid("--sweep %s has the value %s twice: give each once", s.Key, v)
		}
	}
	if len(s.Values) < 2 {
		return Invalid("--sweep %s has one value at most: give two or more, with commas between them, such as --sweep lr=0.01,0.001", s.Key)
	}
	return nil
}

// checkSweep checks each model's request.
func (r TrainRequest) checkSweep() error {
	if len(r.Sweep) == 0 {
		return nil
	}
	list, err := r.Variants()
	if err != nil {
		return err
	}
	for _, v := range list {
		if err := v.Request.Check(); err != nil {
			return Invalid("%v: %v", v, err)
		}
	}
	return nil
}
