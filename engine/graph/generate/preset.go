package generate

import (
	"fmt"
	"strings"
)

// A shape holds what a generated graph copies from a real one beyond its Options.
type shape struct {
	real              string // its name; "" if there is none
	train, validation float64
}

// preset is the size of a real graph. Homophily is the real graph's; edges are directed
// ones.
type preset struct {
	name string
	Options
	shape
}

var presets = []preset{
	{"arxiv", Options{Kind: "sbm", Vertices: 169_343, Edges: 1_166_243, Features: 128, Classes: 40, Homophily: 0.65},
		shape{"ogbn-arxiv", 0.537, 0.176}},
	{"reddit", Options{Kind: "sbm", Vertices: 232_965, Edges: 114_615_892, Features: 602, Classes: 41, Homophily: 0.76},
		shape{"Reddit", 0.659, 0.102}},
	{"products", Options{Kind: "sbm", Vertices: 2_449_029, Edges: 123_718_280, Features: 100, Classes: 47, Homophily: 0.81},
		shape{"ogbn-products", 0.080, 0.016}},
	// Its homophily is that of generated graphs: of most of its papers no class is known.
	{"papers100m", Options{Kind: "sbm", Vertices: 111_059_956, Edges: 3_231_371_744, Features: 128, Classes: 172},
		shape{"ogbn-papers100M", 0.01087, 0.00113}},
}

// fromPreset returns o with the preset's sizes.
func (o Options) fromPreset() (Options, shape, error) {
	if rest := (Options{Preset: o.Preset, Seed: o.Seed, Scale: o.Scale}); o != rest {
		return o, shape{}, errPreset(o.Preset)
	}
	var known []string
	for _, p := range presets {
		if p.name == o.Preset {
			made := p.Options
			made.Preset, made.Seed, made.Scale = o.Preset, o.Seed, o.Scale
			return made, p.shape, nil
		}
		known = append(known, p.name)
	}
	for _, p := range typedPresets {
		known = append(known, p.name)
	}
	return o, shape{}, fmt.Errorf("there is no preset called %q: choose one of %s", o.Preset, strings.Join(known, ", "))
}

func errPreset(name string) error {
	return fmt.Errorf("the preset %q says by itself what the graph is like: leave out everything but seed and scale, or leave out the preset", name)
}
