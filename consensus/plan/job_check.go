package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

const jobKeyLen = 8

// checkHead checks what was asked for.
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

// check wants numbers that a program may show and add up.
func (e Epoch) check(j Job) error {
	if e.Epoch < 1 || e.Epoch > j.Epochs || e.Model < 0 || e.Model >= j.Models() {
		return fmt.Errorf("%w: epoch %d of %d, model %d of %d", ErrInvalid, e.Epoch, j.Epochs, e.Model, j.Models())
	}
	p := e.Phases
	for _, f := range []float64{e.Loss, e.Seconds, p.Sample, p.Gather, p.Compute, p.Reduce, p.Wait} {
		if !finite(f) {
			return fmt.Errorf("%w: %v is told of epoch %d", ErrInvalid, f, e.Epoch)
		}
	}
	counts := append(e.Bytes.list(), e.Rows.Local, e.Rows.Remote, e.Requests.Feature, e.Requests.Topology, e.Requests.Activation, e.Requests.Gradient)
	if v := e.Eval; v != nil {
		for _, f := range []*float64{&v.Seconds, v.Train, v.Val, v.Test, &v.Score, &v.Loss} {
			if f != nil && !finite(*f) {
				return fmt.Errorf("%w: %v is told of evaluation %d", ErrInvalid, *f, e.Epoch)
			}
		}
		counts = append(counts, v.Bytes.list()...)
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
	return cmp.Or(checkNumber("generation", e.Generation), checkHex("SHA-256", e.Weights, sha256Len),
		checkOptional("strategy", e.Strategy), checkWhy(e.Why), e.checkPrediction())
}

// checkBest wants epochs that were evaluated, of a sweep one for each model and the best
// among them.
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

// maxSlots is more than a step ever has: one a node at most. So many are not under way
// at once, either.
const maxSlots = 1 << 20

// checkWhy bounds the text as it is written, where one byte may take six: a plan has
// room for as many as it has for epochs.
func checkWhy(text string) error {
	if written, err := json.Marshal(text); err != nil || len(written) > MaxWhy+len(`""`) {
		return fmt.Errorf("%w: the reason of an epoch's strategy has %d bytes", ErrInvalid, len(text))
	}
	return checkSentence("reason", text)
}

// checkOwners wants an owner for each shard, and a shard for each node.
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

func (b Bytes) list() []uint64 {
	return []uint64{b.Feature, b.Topology, b.Model, b.Gradient, b.Activation, b.Shard, b.Control}
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

// checkDiverged wants a sentence, or none, for each model of a sweep.
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
