package api

import (
	"math"
	"slices"
	"strconv"
)

var (
	models     = []string{"gcn", "sage", "gat", "gin", "gcnii", "resgcn", "mlp"}
	optimizers = []string{"adam", "adamw", "sgd"}
	norms      = []string{"none", "layer"}
	normalised = []string{"auto", "row", "none", "binary", "binary-row"}
	strategies = []string{"auto", "single", "centric", "leap", "p3", "grappa", "pipe", "graph"}
	formatsOut = []string{".npy", ".parquet"}
)

// maxEpochs bounds a job: the plan keeps what is told of each epoch.
const maxEpochs = 10_000

// maxSettings is more than there are.
const maxSettings = 256

// Models lists what can be trained.
func Models() []string { return slices.Clone(models) }

// Optimizers lists how gradients can become updates.
func Optimizers() []string { return slices.Clone(optimizers) }

// Norms lists what may stand behind a layer.
func Norms() []string { return slices.Clone(norms) }

// Normalizations lists what may be done to features before they are used.
func Normalizations() []string { return slices.Clone(normalised) }

// Strategies lists how nodes can share the work.
func Strategies() []string { return slices.Clone(strategies) }

// PredictFormats lists what predictions can be written as: endings of file names.
func PredictFormats() []string { return slices.Clone(formatsOut) }

// Check refuses what no node would accept. The command line asks it too, before it
// asks a daemon. What depends on the model or the dataset is the node's to judge.
func (r TrainRequest) Check() error {
	switch {
	case r.Dataset == "":
		return Invalid("the request names no dataset: `hopmesh dataset list` shows those there are")
	case r.Epochs != nil && *r.Epochs > maxEpochs:
		return Invalid("%d epochs are too many: give 1 to %d", *r.Epochs, maxEpochs)
	case len(r.Set) > maxSettings:
		return Invalid("%d settings are too many", len(r.Set))
	}
	for _, n := range []struct {
		flag  string
		value *float64
	}{{"--dropout", r.Dropout}, {"--lr", r.Rate}, {"--weight-decay", r.WeightDecay}} {
		if n.value != nil && !finite(*n.value) {
			return notFinite(n.flag, *n.value)
		}
	}
	for _, s := range r.Set {
		// None of the words that a setting can be reads as a number.
		if x, err := strconv.ParseFloat(s.Value, 64); err == nil && !finite(x) {
			return notFinite("--set "+s.Key, x)
		}
	}
	for _, w := range []struct {
		what, word string
		list       []string
	}{
		{"model", r.Model, models}, {"optimizer", r.Optimizer, optimizers}, {"norm", r.Norm, norms},
		{"way to normalise features", r.Features, normalised}, {"strategy", r.Strategy, strategies},
	} {
		if err := among(w.what, w.word, w.list); err != nil {
			return err
		}
	}
	return r.checkSweep()
}

// Check refuses what no node would accept.
func (r ResumeRequest) Check() error {
	switch {
	case r.Rate == nil:
		return nil
	case !finite(*r.Rate):
		return notFinite("--lr", *r.Rate)
	case *r.Rate <= 0:
		return Invalid("--lr is %g: give a number above 0, such as 0.001", *r.Rate)
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func notFinite(flag string, x float64) error {
	return Invalid("%s is %g, which is no number to compute with: give a finite one", flag, x)
}

// Check refuses what no node would accept.
func (r PredictRequest) Check() error {
	if r.Format == "" {
		return Invalid("the request names no format: use .npy or .parquet")
	}
	return among("format of predictions", r.Format, formatsOut)
}
