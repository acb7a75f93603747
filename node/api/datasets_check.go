package api

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	datasetName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	partitioners = []string{"auto", "multilevel", "stream", "random"}
	dtypes       = []string{"f32", "bf16"}
	formats      = []string{"auto", "npz", "planetoid", "ogb", "csv", "parquet"}
	kinds        = []string{"rmat", "sbm"}
	presets      = []string{"arxiv", "reddit", "products"}
)

// maxShards bounds how many shards a graph is cut into.
const maxShards = 1024

// maxReplicas is more copies than anybody needs beside an owner's.
const maxReplicas = 15

// Partitioners lists what may cut a graph.
func Partitioners() []string { return slices.Clone(partitioners) }

// DTypes lists how features may be stored.
func DTypes() []string { return slices.Clone(dtypes) }

// Formats lists what a graph may be imported from.
func Formats() []string { return slices.Clone(formats) }

// Kinds lists the kinds of graphs that can be made up.
func Kinds() []string { return slices.Clone(kinds) }

// Presets lists the graphs that can be made up like known ones.
func Presets() []string { return slices.Clone(presets) }

// Check refuses what no node would accept. The command line asks it too, before
// it asks a daemon.
func (r ImportRequest) Check() error {
	switch {
	case r.Source == "":
		return Invalid("the request names no source: give a file or a folder")
	case !filepath.IsAbs(r.Source):
		return Invalid("the source %q is no absolute path: the daemon has a working directory of its own", r.Source)
	}
	if err := among("format", r.Format, formats); err != nil {
		return err
	}
	return r.DatasetOptions.check(r.Name)
}

// Check refuses what no node would accept.
func (r GenerateRequest) Check() error {
	switch {
	case r.Kind == "" && r.Preset == "":
		return Invalid("what to generate is missing: give a kind or a preset")
	case r.Kind != "" && r.Preset != "":
		return Invalid("a kind and a preset exclude each other: give one of them")
	case r.Preset == "" && r.Scale != 0:
		return Invalid("only a preset has a scale: give the vertices and edges that are wanted instead")
	case r.Preset != "" && (r.Vertices != 0 || r.Edges != 0 || r.Features != 0 || r.Classes != 0 || r.Communities != 0 || r.Inside != nil || r.Homophily != nil):
		return Invalid("a preset says all about the graph but its scale and seed: leave the rest out, or give a kind")
	case r.Preset == "" && r.Vertices == 0:
		return Invalid("the number of vertices is missing")
	case r.Preset == "" && r.Edges == 0:
		return Invalid("the number of edges is missing")
	case r.Features < 0 || r.Classes < 0 || r.Communities < 0:
		return Invalid("features, classes and communities can't be fewer than 0")
	case !(r.Scale >= 0) || math.IsInf(r.Scale, 0): // NaN is not at least 0 either
		return Invalid("the scale %v is no number above 0", r.Scale)
	case !share(r.Inside):
		return Invalid("inside is %v: it must be a share of the edges, above 0 and at most 1", *r.Inside)
	case !share(r.Homophily):
		return Invalid("homophily is %v: it must be a share of the edges, above 0 and at most 1", *r.Homophily)
	}
	if err := among("kind", r.Kind, kinds); err != nil {
		return err
	}
	if err := among("preset", r.Preset, presets); err != nil {
		return err
	}
	return r.DatasetOptions.check(r.Name)
}

func (o DatasetOptions) check(name string) error {
	switch {
	case name == "":
		return Invalid("the request names no dataset")
	case !datasetName.MatchString(name):
		return Invalid("%q can't be a dataset's name: use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first", name)
	case o.Shards < 0 || o.Shards > maxShards:
		return Invalid("%d shards can't be made: give 1 to %d", o.Shards, maxShards)
	case o.Replicas != nil && (*o.Replicas < 0 || *o.Replicas > maxReplicas):
		return Invalid("%d replicas can't be kept: give 0 to %d", *o.Replicas, maxReplicas)
	}
	if err := among("partitioner", o.Partitioner, partitioners); err != nil {
		return err
	}
	return among("dtype", o.DType, dtypes)
}

// among accepts "" too, which leaves the choice to the node.
func among(what, word string, list []string) error {
	if word == "" || slices.Contains(list, word) {
		return nil
	}
	last := len(list) - 1
	return Invalid("there is no %s %q: use %s or %s", what, word, strings.Join(list[:last], ", "), list[last])
}

// share refuses 0 too: what makes graphs up would take it for a default.
func share(f *float64) bool { return f == nil || *f > 0 && *f <= 1 }
