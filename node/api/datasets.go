package api

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ImportRequest asks a node to import a graph from a file that it can read, and to
// partition it.
type ImportRequest struct {
	Name string `json:"name"`
	// Source is an absolute path on the node's machine, or a URL of http, https, s3 or gs.
	Source string `json:"source,omitempty"`
	// Sources are given instead of Source where there are several, or where one is on
	// another node: absolute paths, or NODE:/PATH.
	Sources []string `json:"sources,omitempty"`
	Format  string   `json:"format,omitempty"` // "" is auto
	// Task is what is to be learnt of vertices: class, multilabel or regression; "": whatever
	// the labels look like.
	Task string `json:"task,omitempty"`
	// LabelColumns are the columns of csv and parquet tables that hold labels, in this order;
	// none: those that are called so.
	LabelColumns []string `json:"label_columns,omitempty"`
	EdgeFeatures []string `json:"edge_features,omitempty"` // columns of tables that hold features of edges, or all
	// TypeColumn is the column of csv and parquet tables of nodes that says the type of each; "":
	// one that is called so, none: none.
	TypeColumn string `json:"type_column,omitempty"`
	// RelationColumn is the column of csv and parquet tables of edges that says the relation of
	// each; "": one that is called so, none: none.
	RelationColumn string `json:"relation_column,omitempty"`
	DatasetOptions
}

// GenerateRequest asks a node to generate a graph of a kind, or one like a preset.
type GenerateRequest struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind,omitempty"` // rmat or sbm
	Vertices    uint64   `json:"vertices,omitempty"`
	Edges       uint64   `json:"edges,omitempty"`
	Features    int      `json:"features,omitempty"`
	Classes     int      `json:"classes,omitempty"`
	Communities int      `json:"communities,omitempty"`
	Inside      *float64 `json:"inside,omitempty"`    // null: the kind's default
	Homophily   *float64 `json:"homophily,omitempty"` // null: the kind's default
	Preset      string   `json:"preset,omitempty"`    // as Presets lists them
	Scale       float64  `json:"scale,omitempty"`     // of the preset, 0: whole
	DatasetOptions
}

// DatasetOptions configure how a graph is partitioned and stored, for imported and
// generated graphs.
type DatasetOptions struct {
	Shards      int    `json:"shards,omitempty"`      // 0: by the graph's size
	Partitioner string `json:"partitioner,omitempty"` // "" is auto
	DType       string `json:"dtype,omitempty"`       // "" is f32
	// Replicas counts the copies in addition to the owner's; null: 1.
	Replicas   *int   `json:"replicas,omitempty"`
	Memory     uint64 `json:"memory,omitempty"` // bytes, 0: the node's own limit
	Undirected bool   `json:"undirected,omitempty"`
	Seed       uint64 `json:"seed,omitempty"`
	// Makers says who makes the shards: all nodes, each its own; one, this node; "" or auto:
	// all if the graph is large or its sources lie on several nodes.
	Makers string `json:"makers,omitempty"`
}

// Dataset is a graph that the mesh holds in shards.
type Dataset struct {
	Name         string `json:"name"`
	Stage        string `json:"stage"` // importing, placing or ready
	Vertices     uint64 `json:"vertices"`
	Edges        uint64 `json:"edges"`
	Features     int    `json:"features"`
	EdgeFeatures int    `json:"edge_features,omitempty"` // of each edge
	Classes      int    `json:"classes"`                 // 0 where vertices have other targets
	// Task is what vertices have targets for: class, multilabel or regression. Targets is
	// the number of columns of the latter two.
	Task    string `json:"task"`
	Targets int    `json:"targets,omitempty"`
	// ClassNames has a name for each class, or each column of targets, if the source named them.
	ClassNames []string `json:"class_names,omitempty"`
	// Types and Relations are those of vertices and of edges, where there are several.
	Types     []VertexType `json:"types,omitempty"`
	Relations []Relation   `json:"relations,omitempty"`
	Splits    int          `json:"splits"`
	// SplitSizes has one entry for each of the splits.
	SplitSizes   []SplitSizes   `json:"split_sizes"`
	DType        string         `json:"dtype"`
	Shards       []DatasetShard `json:"shards"`
	EdgeCut      uint64         `json:"edge_cut"` // edges between shards
	EdgeCutShare float64        `json:"edge_cut_share"`
	// The balances are the largest shard relative to the average one.
	Balance         float64 `json:"balance"` // by vertices
	BalanceEdges    float64 `json:"balance_edges"`
	BalanceTraining float64 `json:"balance_training"`
	Partitioner     string  `json:"partitioner"`
	Seed            uint64  `json:"seed"`
	// Folder holds the shards of the node that answers, as NNNN.safetensors; "" if it holds
	// none.
	Folder string `json:"folder"`
	// Problems are sentences, without a full stop, as in Status.
	Problems []string `json:"problems"`
}

// VertexType is a type of vertices, with the features that are its own.
type VertexType struct {
	Name     string `json:"name"`
	Vertices uint64 `json:"vertices"`
	Features int    `json:"features"`
}

// Relation is what edges from one type of vertices to another say.
type Relation struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	Target string `json:"target"`
	Edges  uint64 `json:"edges"` // in the source, before equal ones were merged
}

// SplitSizes counts the vertices of a split's parts.
type SplitSizes struct {
	Train uint64 `json:"train"`
	Val   uint64 `json:"val"`
	Test  uint64 `json:"test"`
}

// DatasetShard is one shard. Owner and Replicas are names of nodes.
type DatasetShard struct {
	ID       int      `json:"id"`
	Vertices uint64   `json:"vertices"`
	Edges    uint64   `json:"edges"`
	Halo     uint64   `json:"halo"` // distinct sources outside of it
	Bytes    uint64   `json:"bytes"`
	SHA256   string   `json:"sha256"`
	Owner    string   `json:"owner"` // "" while nobody has it
	Replicas []string `json:"replicas"`
}

// DatasetSummary is one line of `hopmesh dataset list`.
type DatasetSummary struct {
	Name     string `json:"name"`
	Stage    string `json:"stage"`
	Vertices uint64 `json:"vertices"`
	Edges    uint64 `json:"edges"`
	Features int    `json:"features"`
	Classes  int    `json:"classes"`
	Shards   int    `json:"shards"`
	Bytes    uint64 `json:"bytes"` // of each shard once
	Problems int    `json:"problems"`
}

// DatasetEvent is one line of the answer to an import, a generation or a verification.
// Exactly one field is set, or none in a keep-alive line. A line with Dataset, Done or
// Error is the last.
type DatasetEvent struct {
	Progress *Progress  `json:"progress,omitempty"`
	Forecast *Forecast  `json:"forecast,omitempty"`
	Note     string     `json:"note,omitempty"` // a sentence without a full stop
	Dataset  *Dataset   `json:"dataset,omitempty"`
	Done     *Done      `json:"done,omitempty"`
	Error    *ErrorBody `json:"error,omitempty"`
}

// ErrorBody is an *Error inside a stream, whose HTTP status was sent before.
type ErrorBody struct {
	Status int    `json:"status"`
	Error  string `json:"error"`
}

// Progress is how far a stage has come. Total is 0 if it is unknown.
type Progress struct {
	Stage string `json:"stage"`
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"`
	Unit  string `json:"unit"` // "edges", "vertices", "bytes"...
}

// Forecast is what an import is expected to need and to produce.
type Forecast struct {
	Vertices    uint64 `json:"vertices"`
	Edges       uint64 `json:"edges"` // at most
	Partitioner string `json:"partitioner"`
	Shards      int    `json:"shards"`
	ShardBytes  uint64 `json:"shard_bytes"` // of an average shard, at most
	PeakMemory  uint64 `json:"peak_memory"`
	Scratch     uint64 `json:"scratch"` // temporary bytes on disk in addition to the shards
	// CutAtMost is the share of edges that a random partition would cut.
	CutAtMost float64 `json:"cut_at_most"`
	Replicas  int     `json:"replicas"`
}

var (
	datasetName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	partitioners = []string{"auto", "multilevel", "stream", "random"}
	dtypes       = []string{"f32", "bf16"}
	makers       = []string{"auto", "one", "all"}
	tasks        = []string{"class", "multilabel", "regression"}
	formats      = []string{"auto", "npz", "planetoid", "ogb", "csv", "parquet", "typed", "triples"}
	kinds        = []string{"rmat", "sbm"}
	presets      = []string{"arxiv", "reddit", "products", "papers100m", "mag"}
)

// maxSources bounds the sources of one import.
const maxSources = 1024

var (
	onNode = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*):(/[^/].*)$`)
	scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	// readable are the URLs that nodes read.
	readable = regexp.MustCompile(`^(?i:https?|s3|gs)://[^/]`)
)

// SplitSource splits NODE:/PATH. Of any other source the node is "".
func SplitSource(source string) (node, path string) {
	if m := onNode.FindStringSubmatch(source); m != nil {
		return m[1], m[2]
	}
	return "", source
}

// IsURL reports whether a source is SCHEME://.
func IsURL(source string) bool { return scheme.MatchString(source) }

// maxShards bounds the number of shards of a graph.
const maxShards = 1024

// maxReplicas bounds the copies in addition to the owner's. Nobody needs more.
const maxReplicas = 15

// Partitioners lists the partitioners.
func Partitioners() []string { return slices.Clone(partitioners) }

// DTypes lists the types in which features may be stored.
func DTypes() []string { return slices.Clone(dtypes) }

// Tasks lists what may be learnt of vertices.
func Tasks() []string { return slices.Clone(tasks) }

// link is the task that no dataset has targets for: its edges are.
const link = "link"

// TrainTasks lists what jobs may learn.
func TrainTasks() []string { return append(Tasks(), link) }

// Formats lists the formats that a graph may be imported from.
func Formats() []string { return slices.Clone(formats) }

// Kinds lists the kinds of graphs that can be generated.
func Kinds() []string { return slices.Clone(kinds) }

// Presets lists the presets of known graphs that can be imitated.
func Presets() []string { return slices.Clone(presets) }

// Check returns an error if no node would accept the request. The command line calls it
// too, before it contacts a daemon.
func (r ImportRequest) Check() error {
	sources := r.Sources
	switch {
	case r.Source != "" && len(sources) > 0:
		return Invalid("the request has both one source and a list of sources: give one of them")
	case len(sources) > maxSources:
		return Invalid("%d sources are too many: give at most %d, or folders with several files", len(sources), maxSources)
	case len(sources) == 0:
		sources = []string{r.Source}
	}
	for _, s := range sources {
		node, path := SplitSource(s)
		switch {
		case s == "":
			return Invalid("the request names no source: give a file or a folder")
		case scheme.MatchString(s) && !readable.MatchString(s):
			return Invalid("the source %.80q is a URL of a kind that is not read: give one of http, https, s3 or gs, or a path", s)
		case scheme.MatchString(s):
		case node != "" && len(r.Sources) == 0:
			return Invalid("the source %q is on another node: give it in the list of sources", s)
		case !filepath.IsAbs(path):
			return Invalid("the source %q is no absolute path: the daemon has a working directory of its own", s)
		}
	}
	if err := among("format", r.Format, formats); err != nil {
		return err
	}
	if err := among("task", r.Task, tasks); err != nil {
		return err
	}
	if err := checkColumns("labels", r.LabelColumns); err != nil {
		return err
	}
	if err := checkColumns("features of edges", r.EdgeFeatures); err != nil {
		return err
	}
	for _, c := range [...][2]string{{"types", r.TypeColumn}, {"relations", r.RelationColumn}} {
		if err := checkColumns(c[0], []string{c[1]}); c[1] != "" && err != nil {
			return err
		}
	}
	return r.DatasetOptions.check(r.Name)
}

func checkColumns(of string, names []string) error {
	const most = 16 << 10 // bytes, which every node keeps
	size := 0
	for i, name := range names {
		size += len(name) + 1
		switch {
		case name == "":
			return Invalid("the name of a column of %s is empty: give names, with commas between them", of)
		case slices.Contains(names[:i], name):
			return Invalid("the column of %s %.80q is named twice: name it once", of, name)
		case size > most:
			return Invalid("the names of the columns of %s take more than %d bytes: name fewer", of, most)
		}
	}
	return nil
}

// Check returns an error if no node would accept the request.
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
	if err := among("makers", o.Makers, makers); err != nil {
		return err
	}
	return among("dtype", o.DType, dtypes)
}

// among returns an error unless word is in the list or "", which leaves the choice to the
// node.
func among(what, word string, list []string) error {
	if word == "" || slices.Contains(list, word) {
		return nil
	}
	last := len(list) - 1
	return Invalid("there is no %s %q: use %s or %s", what, word, strings.Join(list[:last], ", "), list[last])
}

// share reports whether f is nil or in (0, 1]. It rejects 0, which the generator would
// take for a default.
func share(f *float64) bool { return f == nil || *f > 0 && *f <= 1 }
