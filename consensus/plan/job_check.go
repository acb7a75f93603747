package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/epoch"
)

const jobKeyLen = 8

// checkHead returns an error unless the requested parameters are valid.
func (j Job) checkHead() error {
	if j.Epochs < 1 || j.Epochs > MaxEpochs {
		return fmt.Errorf("%w: %d epochs: there may be 1 to %d", ErrInvalid, j.Epochs, MaxEpochs)
	}
	if len(j.Recipe) > MaxRecipe || !utf8.ValidString(j.Recipe) {
		return fmt.Errorf("%w: a recipe of %d bytes, or not in UTF-8", ErrInvalid, len(j.Recipe))
	}
	if j.Content != "" {
		if err := checkHex("content", j.Content, sha256Len); err != nil {
			return err
		}
	}
	return cmp.Or(checkHex("job key", j.Key, jobKeyLen), checkHex("dataset id", j.Dataset, datasetIDLen), CheckDatasetName(j.DatasetName),
		checkNumber("jobs", j.Number), checkText("strategy", j.Strategy), checkSentence("reason", j.Why))
}

// checkEpoch returns an error unless the numbers are finite and within bounds.
func checkEpoch(e *Epoch, j Job) error {
	if e.Epoch < 1 || e.Epoch > j.Epochs || e.Model < 0 || e.Model >= j.Models() {
		return fmt.Errorf("%w: epoch %d of %d, model %d of %d", ErrInvalid, e.Epoch, j.Epochs, e.Model, j.Models())
	}
	p := e.Phases
	for _, f := range []float64{e.Loss, e.Seconds, p.Sample, p.Gather, p.Compute, p.Reduce, p.Wait} {
		if !finite(f) {
			return fmt.Errorf("%w: %v is told of epoch %d", ErrInvalid, f, e.Epoch)
		}
	}
	counts := counted(&e.Bytes, e.Rows.Local, e.Rows.Remote, e.Rows.Kept, e.Requests.Feature, e.Requests.Topology, e.Requests.Activation, e.Requests.Gradient)
	if v := e.Eval; v != nil {
		for _, f := range []*float64{&v.Seconds, v.Train, v.Val, v.Test, &v.Score, &v.Loss} {
			if f != nil && !finite(*f) {
				return fmt.Errorf("%w: %v is told of evaluation %d", ErrInvalid, *f, e.Epoch)
			}
		}
		counts = counted(&v.Bytes, counts...)
	}
	if slices.Max(counts) > maxNumber {
		return fmt.Errorf("%w: a count of %d in epoch %d", ErrInvalid, slices.Max(counts), e.Epoch)
	}
	if e.Slots < 0 || e.Slots > maxSlots {
		return fmt.Errorf("%w: %d slots in epoch %d", ErrInvalid, e.Slots, e.Epoch)
	}
	if e.Behind < 0 || e.Behind > maxSlots {
		return fmt.Errorf("%w: weights of epoch %d are %d updates older", ErrInvalid, e.Epoch, e.Behind)
	}
	if e.Super < 0 || e.Super > maxSlots || !(e.Seen >= 0 && e.Seen <= 1) {
		return fmt.Errorf("%w: epoch %d is of super-epoch %d, and has seen %v of all edges", ErrInvalid, e.Epoch, e.Super, e.Seen)
	}
	return cmp.Or(checkNumber("generation", e.Generation), checkHex("SHA-256", e.Hash, sha256Len),
		checkOptional("strategy", e.Strategy), checkWhy(e.Why), checkFigures(e), checkMetrics(e))
}

// checkFigures returns an error unless what a strategy reports is finite and within
// bounds. An epoch of a pipeline, or with Figures, has no fields of other strategies, which
// keeps it short.
func checkFigures(e *Epoch) error {
	p, others := e.Predicted, e.Slots != 0 || e.Behind != 0 || e.Super != 0 || e.Seen != 0
	if p != nil && (e.Model != 0 || others) || len(e.Figures) > 0 && (p != nil || others) {
		return fmt.Errorf("%w: epoch %d has figures of two strategies", ErrInvalid, e.Epoch)
	}
	for _, f := range e.Figures {
		if err := checkText("figure", f.Name); err != nil {
			return err
		}
		if !finite(f.Value) {
			return fmt.Errorf("%w: %s is %v in epoch %d", ErrInvalid, f.Name, f.Value, e.Epoch)
		}
	}
	if written, err := json.Marshal(e.Figures); err != nil || len(written) > maxFigures {
		return fmt.Errorf("%w: the figures of epoch %d have %d bytes, more than %d", ErrInvalid, e.Epoch, len(written), maxFigures)
	}
	if p == nil {
		return nil
	}
	if !finite(p.Seconds) || !finite(p.History) {
		return fmt.Errorf("%w: %v s of an epoch are predicted, and %v s of a history", ErrInvalid, p.Seconds, p.History)
	}
	if p.Stages < 1 || p.Ways < 1 || max(p.Stages, p.Ways) > maxSlots {
		return fmt.Errorf("%w: %d stages of %d ways are predicted", ErrInvalid, p.Stages, p.Ways)
	}
	return nil
}

// checkMetrics returns an error unless an epoch's metrics are within bounds. JSON has no numbers
// that are not finite.
func checkMetrics(e *Epoch) error {
	if e.Eval == nil || e.Eval.Metrics == nil {
		return nil
	}
	if written, err := json.Marshal(e.Eval.Metrics); err != nil || len(written) > maxMetrics {
		return fmt.Errorf("%w: the metrics of epoch %d have %d bytes, more than %d", ErrInvalid, e.Epoch, len(written), maxMetrics)
	}
	return nil
}

// checkBest returns an error unless the best epochs were evaluated and, in a sweep,
// there is one for each model and Best is that of the best of them.
func (j Job) checkBest(models int) error {
	if e, in := j.EpochAt(j.Best, j.BestModel); j.Best != 0 && (!in || e.Eval == nil) || j.Best == 0 && j.BestModel != 0 {
		return fmt.Errorf("%w: epoch %d of model %d is the best, and was never evaluated", ErrInvalid, j.Best, j.BestModel)
	}
	if len(j.Bests) != models || models > 0 && j.Bests[j.BestModel] != j.Best {
		return fmt.Errorf("%w: the best epochs of %d models are told, of %d, or not that of the best", ErrInvalid, len(j.Bests), models)
	}
	for model, epoch := range j.Bests {
		if e, in := j.EpochAt(epoch, model); epoch != 0 && (!in || e.Eval == nil) {
			return fmt.Errorf("%w: epoch %d of model %d is its best, and was never evaluated", ErrInvalid, epoch, model)
		}
	}
	return nil
}

// maxSlots is more slots than a step ever has, which is one per node at most. It also
// bounds the steps under way at once.
const maxSlots = 1 << 20

// maxFigures bounds the Figures of an epoch in bytes of JSON. It is about what the fields
// of other strategies take.
const maxFigures = 108

// maxMetrics bounds the metrics of an epoch in bytes of JSON.
const maxMetrics = 400

// checkWhy bounds the text as encoded in JSON, where one byte may take six: a plan has
// as many of them as epochs.
func checkWhy(text string) error {
	if written, err := json.Marshal(text); err != nil || len(written) > MaxWhy+len(`""`) {
		return fmt.Errorf("%w: the reason of an epoch's strategy has %d bytes", ErrInvalid, len(text))
	}
	return checkSentence("reason", text)
}

// checkOwners returns an error unless each shard has an owner and each node a shard.
func checkOwners(owners []int, shards, nodes int) error {
	if len(owners) != shards {
		return fmt.Errorf("%w: owners of %d shards, of %d", ErrInvalid, len(owners), shards)
	}
	owns := make([]bool, nodes)
	for i, n := range owners {
		if n < 0 || n >= nodes {
			return fmt.Errorf("%w: shard %d is owned by node %d of %d", ErrInvalid, i, n, nodes)
		}
		owns[n] = true
	}
	if n := slices.Index(owns, false); n >= 0 {
		return fmt.Errorf("%w: node %d of %d owns no shard", ErrInvalid, n, nodes)
	}
	return nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// counted appends the counts of all kinds of bytes.
func counted(b *epoch.Bytes, counts ...uint64) []uint64 {
	for _, n := range b.Kinds() {
		counts = append(counts, *n)
	}
	return counts
}

func checkNotes(notes []string) error {
	if len(notes) > MaxNotes {
		return fmt.Errorf("%w: %d notes", ErrInvalid, len(notes))
	}
	for _, n := range notes {
		if err := checkSentence("note", n); err != nil {
			return err
		}
	}
	return nil
}

// checkDiverged returns an error unless there is an entry for each model of a sweep, or
// none at all.
func checkDiverged(all []string, models int) error {
	if len(all) > 0 && len(all) != models {
		return fmt.Errorf("%w: it is told of %d models whether they diverged, of %d", ErrInvalid, len(all), models)
	}
	for _, why := range all {
		if err := checkSentence("sentence on a model", why); err != nil {
			return err
		}
	}
	return nil
}

func checkSentence(what, text string) error {
	if len(text) > MaxSentence || !utf8.ValidString(text) || slices.ContainsFunc([]rune(text), unicode.IsControl) {
		return fmt.Errorf("%w: a %s of %d bytes, or with control characters", ErrInvalid, what, len(text))
	}
	return nil
}
