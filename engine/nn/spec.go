package nn

import (
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Spec describes a model. The meaning of its weights depends on all fields.
type Spec struct {
	Model  string `json:"model"`  // gcn, sage, gat, gin, gcnii, resgcn, rgcn, mlp, hgt, hetero:sage, hetero:gat, hetero:gcn, hetero:gin
	Layers int    `json:"layers"` // convolutions; products of an mlp
	Hidden int    `json:"hidden"` // hidden width (per head for gat)
	Heads  int    `json:"heads"`  // of a gat or an hgt
	// Dropout applies to hidden rows, and to attention if the model has it.
	Dropout float64 `json:"dropout"`
	// InputDropout applies to the features.
	InputDropout float64 `json:"input_dropout"`
	Norm         string  `json:"norm"` // none or layer
	Residual     bool    `json:"residual"`
	// Head is what follows the convolutions: none, so that the last convolution computes
	// the logits, or linear, which is not counted as a layer.
	Head string `json:"head"`
	Jump string `json:"jump"` // none, cat or max: what the head sees of all layers
	// SelfLoops adds each vertex to its own neighbours: "on", "off", or "auto" for the
	// model's published form.
	SelfLoops string `json:"self_loops"`

	Aggregator       string  `json:"aggregator,omitempty"`        // of sage: mean, max or gcn; of mpnn: mean or sum
	OutHeads         int     `json:"out_heads,omitempty"`         // of a gat's last layer; they are averaged
	Version          int     `json:"version,omitempty"`           // of gat: 1 or 2
	AttentionDropout float64 `json:"attention_dropout,omitempty"` // of gat
	Alpha            float64 `json:"alpha,omitempty"`             // of gcnii
	Theta            float64 `json:"theta,omitempty"`             // of gcnii
	Bases            int     `json:"bases,omitempty"`             // of rgcn; 0: each relation has a weight of its own
	Relations        int     `json:"relations,omitempty"`         // of the dataset, for models that tell them apart
	Ends             string  `json:"ends,omitempty"`              // of hetero and hgt: the numbers of the types at which they end
	Starts           string  `json:"starts,omitempty"`            // of hgt: the same of those at which they begin
	Across           string  `json:"across,omitempty"`            // of hetero: sum, mean or attention over relations
	Edges            string  `json:"edges,omitempty"`             // on or off: whether features of edges are read; empty: if there are some
	EdgeFeatures     int     `json:"edge_features,omitempty"`     // how many are read
	Weighted         bool    `json:"weighted,omitempty"`          // of a program: whether edges have weights
}

// The words a spec may contain.
const (
	HeadNone   = "none"
	HeadLinear = "linear"
	NormNone   = "none"
	NormLayer  = "layer"
	JumpNone   = "none"
	JumpCat    = "cat"
	JumpMax    = "max"
	LoopsAuto  = "auto"
	LoopsOn    = "on"
	LoopsOff   = "off"
)

// Defaults returns the default spec of a model.
func Defaults(model string) Spec {
	s := Spec{
		Model: model, Layers: 2, Hidden: 64, Heads: 1, Dropout: 0.5,
		Norm: NormNone, Head: HeadNone, Jump: JumpNone, SelfLoops: LoopsAuto,
	}
	if s.apart() {
		s.Across = AcrossSum
	}
	switch s.each() {
	case "sage", "mpnn":
		s.Aggregator = "mean"
	case "gat":
		s.Hidden, s.Heads, s.OutHeads, s.Version = 8, 8, 1, 1
	case "gcnii":
		s.Layers, s.Head, s.Alpha, s.Theta = 16, HeadLinear, 0.1, 0.5
	case "resgcn":
		s.Layers, s.Head, s.Norm, s.Residual = 7, HeadLinear, NormLayer, true
	case "hgt":
		s.Heads, s.Head, s.Norm = 4, HeadLinear, NormLayer
	}
	s.Resolve()
	return s
}

// Resolve fills in derived settings, except those that the user has set: said holds their
// keys, as Set takes them. Features get the dropout of hidden rows if the model was
// published so, which is without LayerNorm and, except for gcnii, without a head.
// Attention gets it if there is no head.
func (s *Spec) Resolve(said ...string) {
	if !slices.Contains(said, keyInputDropout) {
		s.InputDropout = 0
		if s.Norm == NormNone && (s.Head == HeadNone || s.Model == "gcnii") {
			s.InputDropout = s.Dropout
		}
	}
	if s.each() == "gat" && !slices.Contains(said, keyAttentionDropout) {
		s.AttentionDropout = 0
		if s.Head == HeadNone {
			s.AttentionDropout = s.Dropout
		}
	}
}

// width returns the number of columns of hidden rows.
func (s *Spec) width() int {
	if s.each() == "gat" {
		return s.Hidden * s.Heads
	}
	return s.Hidden
}

// encoded reports whether the layers stand between two linear maps.
func (s *Spec) encoded() bool {
	frame := kinds[s.Model].frame
	return frame == encoded || frame == preActivated
}

// projects reports whether a linear map of the features precedes the first layer.
func (s *Spec) projects() bool { return kinds[s.Model].frame != plain }

// Related reports whether the model knows the relations of edges.
func (s *Spec) Related() bool { return kinds[s.Model].related }

// apart reports whether each relation has a convolution of its own.
func (s *Spec) apart() bool { return kinds[s.Model].apart }

// each returns the kind of the convolutions: of a hetero, that which each relation has.
func (s *Spec) each() string { return strings.TrimPrefix(s.Model, heteroPrefix) }

// Tell sets what the model knows of the relations of a dataset: how many there are, and at which
// types they end.
func (s *Spec) Tell(relations int, ends string) {
	if s.Relations = relations; s.apart() || s.typed() {
		s.Ends = ends
	}
}

// TellStarts is Tell for the types at which relations begin.
func (s *Spec) TellStarts(starts string) {
	if s.typed() {
		s.Starts = starts
	}
}

// typed reports whether vertices of each type have weights of their own.
func (s *Spec) typed() bool { return kinds[s.Model].typed }

// TellEdges sets how many features of edges the model reads, of those that the edges of a dataset
// have.
func (s *Spec) TellEdges(features int) {
	s.EdgeFeatures = 0
	if k := kinds[s.Model]; k.along != nil && s.Edges != LoopsOff && (s.each() != "gat" || s.Version != 2 || s.Edges == LoopsOn) {
		s.EdgeFeatures = features
	}
}

// Along reports whether the model computes a row for each edge.
func (s *Spec) Along() bool { return s.EdgeFeatures > 0 || kinds[s.Model].Along }

// Named returns the model with its article, for sentences.
func (s *Spec) Named() string {
	if s.Model == "rgcn" || s.Model == "mpnn" || s.Model == "hgt" {
		return "an " + s.Model
	}
	return "a " + s.Model
}

// preActivated reports whether norm and activation precede layers, which add to their input.
func (s *Spec) preActivated() bool { return kinds[s.Model].frame == preActivated }

// form returns the model's requirements for its blocks.
func (s *Spec) form() sample.Form {
	k := kinds[s.Model]
	loops := k.SelfLoops || s.Aggregator == "gcn"
	if s.SelfLoops != LoopsAuto {
		loops = s.SelfLoops == LoopsOn
	}
	f := sample.Form{SelfLoops: loops, Weighting: k.Weighting}
	if k.related || k.elsewhere {
		f.Relations = s.Relations
	}
	if f.Apart, f.Together = k.apart, k.typed; k.apart || k.typed {
		f.Ends = s.Ends
	}
	f.Plain, f.Along, f.EdgeFeatures = k.elsewhere, s.Along() && !k.elsewhere, s.EdgeFeatures
	if s.Model == "mpnn" && s.Aggregator == "sum" {
		f.Weighting = sample.Sums
	}
	if s.Weighted && k.elsewhere {
		f.Weighting = sample.Own
	}
	return f
}
