package tensorboard

import (
	"maps"
	"slices"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// The names of curves that are read again.
const (
	tagLoss       = "loss"
	tagGeneration = "generation"
)

// valuesOf returns what is drawn of an epoch of a model. What is not known is left out.
func valuesOf(e *epoch.Record, r *recipe.Recipe) []value {
	values := []value{{tagLoss, e.Loss}, {tagGeneration, float64(e.Generation)}}
	add := func(tag string, number float64) { values = append(values, value{tag, number}) }
	if v := e.Eval; v != nil {
		for _, part := range []struct {
			tag   string
			share *float64
		}{{"accuracy/train", v.Train}, {"accuracy/val", v.Val}, {"accuracy/test", v.Test}} {
			if part.share != nil {
				add(part.tag, *part.share)
			}
		}
		if m := v.Metrics; m != nil {
			for _, part := range []struct {
				name string
				of   map[string]float64
			}{{"train", m.Train}, {"val", m.Val}, {"test", m.Test}} {
				for _, name := range slices.Sorted(maps.Keys(part.of)) {
					add(name+"/"+part.name, part.of[name])
				}
			}
		}
	}
	// How often a plateau has lowered the rate is not in the plan.
	if r.Rate > 0 && r.Schedule.Kind != recipe.Plateau {
		add("learning_rate", r.Schedule.Rate(r.Rate, e.Epoch, r.Epochs, 0))
	}
	for _, f := range e.Figures {
		add("figures/"+f.Name, f.Value)
	}
	if e.Seconds == 0 {
		return values // of a sweep, whose costs are recorded with another model
	}
	add("seconds/train", e.Seconds)
	add("phases/sample", e.Phases.Sample)
	add("phases/gather", e.Phases.Gather)
	add("phases/compute", e.Phases.Compute)
	add("phases/reduce", e.Phases.Reduce)
	add("phases/wait", e.Phases.Wait)
	add("rows/local", float64(e.Rows.Local))
	add("rows/remote", float64(e.Rows.Remote))
	add("rows/kept", float64(e.Rows.Kept))
	add("requests/feature", float64(e.Requests.Feature))
	add("requests/topology", float64(e.Requests.Topology))
	add("requests/activation", float64(e.Requests.Activation))
	add("requests/gradient", float64(e.Requests.Gradient))
	values = appendBytes(values, "bytes/", &e.Bytes)
	if v := e.Eval; v != nil {
		add("seconds/eval", v.Seconds)
		values = appendBytes(values, "bytes_eval/", &v.Bytes)
	}
	return values
}

func appendBytes(to []value, group string, b *epoch.Bytes) []value {
	return append(to,
		value{group + "feature", float64(b.Feature)}, value{group + "topology", float64(b.Topology)},
		value{group + "model", float64(b.Model)}, value{group + "gradient", float64(b.Gradient)},
		value{group + "activation", float64(b.Activation)}, value{group + "shard", float64(b.Shard)},
		value{group + "control", float64(b.Control)})
}
