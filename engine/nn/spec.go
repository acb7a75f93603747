package nn

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Spec says what a model is: what its weights mean depends on all of it.
type Spec struct {
	Model  string `json:"model"`  // gcn, sage, gat, gin, gcnii, resgcn or mlp
	Layers int    `json:"layers"` // convolutions; of an mlp, its products
	Hidden int    `json:"hidden"` // of a gat, of each head
	Heads  int    `json:"heads"`  // of a gat
	// Dropout is that of hidden rows, and of attention where the model has it.
	Dropout float64 `json:"dropout"`
	// InputDropout is that of the features.
	InputDropout float64 `json:"input_dropout"`
	Norm         string  `json:"norm"` // none or layer
	Residual     bool    `json:"residual"`
	// Head is what follows the convolutions: none, so that the last one answers,
	// or a linear one, which is not counted as a layer.
	Head string `json:"head"`
	Jump string `json:"jump"` // none, cat or max: what the head sees of all layers
	// SelfLoops lets each vertex hear itself as one of its neighbours: "on",
	// "off", or "auto": as the model was published.
	SelfLoops string `json:"self_loops"`

	Aggregator       string  `json:"aggregator,omitempty"`        // of sage: mean, max or gcn
	OutHeads         int     `json:"out_heads,omitempty"`         // of a gat's last layer, averaged
	Version          int     `json:"version,omitempty"`           // of gat: 1 or 2
	AttentionDropout float64 `json:"attention_dropout,omitempty"` // of gat
	Alpha            float64 `json:"alpha,omitempty"`             // of gcnii
	Theta            float64 `json:"theta,omitempty"`             // of gcnii
}

// What a spec's words may be.
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

// Defaults is the spec of a model of which nothing is said but its name.
func Defaults(model string) Spec {
	s := Spec{
		Model: model, Layers: 2, Hidden: 64, Heads: 1, Dropout: 0.5,
		Norm: NormNone, Head: HeadNone, Jump: JumpNone, SelfLoops: LoopsAuto,
	}
	switch model {
	case "sage":
		s.Aggregator = "mean"
	case "gat":
		s.Hidden, s.Heads, s.OutHeads, s.Version = 8, 8, 1, 1
	case "gcnii":
		s.Layers, s.Head, s.Alpha, s.Theta = 16, HeadLinear, 0.1, 0.5
	case "resgcn":
		s.Layers, s.Head, s.Norm, s.Residual = 7, HeadLinear, NormLayer, true
	}
	s.Resolve()
	return s
}

// Resolve fills in what follows from the rest, except what the user has set himself:
// said are those keys, as Set takes them. The features drop as the hidden rows do
// where the model was published so, that is without LayerNorm and, but for gcnii,
// without a head; and attention drops as they do where there is no head.
func (s *Spec) Resolve(said ...string) {
	if !slices.Contains(said, keyInputDropout) {
		s.InputDropout = 0
		if s.Norm == NormNone && (s.Head == HeadNone || s.Model == "gcnii") {
			s.InputDropout = s.Dropout
		}
	}
	if s.Model == "gat" && !slices.Contains(said, keyAttentionDropout) {
		s.AttentionDropout = 0
		if s.Head == HeadNone {
			s.AttentionDropout = s.Dropout
		}
	}
}

// width is the columns of hidden rows.
func (s *Spec) width() int {
	if s.Model == "gat" {
		return s.Hidden * s.Heads
	}
	return s.Hidden
}

// encoded says whether a linear map of the features comes before the first layer.
func (s *Spec) encoded() bool { return s.Model == "gcnii" || s.Model == "resgcn" }

// form is what the model wants of its blocks.
func (s *Spec) form() sample.Form {
	k := kinds[s.Model]
	loops := k.SelfLoops || s.Aggregator == "gcn"
	if s.SelfLoops != LoopsAuto {
		loops = s.SelfLoops == LoopsOn
	}
	return sample.Form{SelfLoops: loops, Weighting: k.Weighting}
}
