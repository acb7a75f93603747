package train

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// CheckpointFile is the name of a run's checkpoint in its folder.
const CheckpointFile = "last.safetensors"

// What a checkpoint says in its metadata that it is: that of one model, or of a sweep.
const (
	checkpointFormat = "hopmesh-checkpoint/1"
	sweepFormat      = "hopmesh-sweep/1"
)

const (
	// saveEvery is how often a checkpoint is written.
	saveEvery = 10 * time.Second
	// keepers is how many of the nodes of a run write one while it goes on: all have the
	// same, and each writes one when the run ends.
	keepers = 3
	// maxHistory is how many epochs a checkpoint tells of at most, of all models.
	maxHistory = 10_000
)

// The names of tensors are those of the model's params. Those of what belongs to
// each param begin so.
const (
	bestPrefix   = "best."
	momentPrefix = "optimizer."
)

// saved is the last checkpoint that was written or read.
type saved struct {
	at     time.Time // or when one could not be written
	good   bool      // there is one
	failed bool      // the last that was tried could not be written
	place            // where it stands
	before *place    // where the one before it stands, which is kept beside it; nil if none is
}

// due says whether the last checkpoint is long enough ago.
func (t *trainer) due() bool {
	return t.options.Dir != "" && (t.together || t.keeps() && time.Since(t.saved.at) >= cmp.Or(t.options.Interval, saveEvery))
}

// wants says whether a checkpoint is to be written when a step or an epoch is done. The
// first epoch leaves one in any case: what diverges mostly does so early.
func (t *trainer) wants() bool {
	return t.due() || t.options.Dir != "" && t.keeps() && !t.saved.good && !t.saved.failed
}

// keeps says whether this node writes checkpoints while the run goes on.
func (t *trainer) keeps() bool { return t.shared == nil || t.shared.work.Self < keepers }

// saveSoon writes a checkpoint that is due. That it can't be written is no reason to
// end, if there is an older one, or other nodes write theirs: the next may be.
func (t *trainer) saveSoon() error {
	t.together = false
	err := t.save()
	if err == nil {
		t.tellKept(nil)
		return nil
	}
	if !t.saved.good && t.shared == nil {
		return err
	}
	t.unkept(err)
	return nil
}

// unkept notes that the run goes on without a checkpoint, and tries again later.
func (t *trainer) unkept(err error) {
	err = unadvised(err)
	t.saved.at, t.saved.failed = time.Now(), true
	t.log.Warn("a checkpoint could not be written; the training goes on and tries again", "err", err)
	t.tellKept(err)
}

// unadvised is an error without what Unsaved advises, which is for a run that has ended.
func unadvised(err error) error {
	if unsaved, ok := errors.AsType[*Unsaved](err); ok {
		return unsaved.err
	}
	return err
}

// tellKept says whether checkpoints can be written.
func (t *trainer) tellKept(err error) {
	if t.options.Kept != nil {
		t.options.Kept(err)
	}
}

// saveLast writes the checkpoint of a run that is done. Of nodes that share it, one that
// could is enough.
func (t *trainer) saveLast(ctx context.Context) error {
	err := t.save()
	if t.shared == nil {
		return err
	}
	could := []byte{1}
	if err != nil {
		could[0] = 0
	}
	tag := exchange.Tag{Epoch: uint32(t.place().epoch) + 1, Lane: exchange.LaneMessages} // after all that was said before
	all, failed := t.shared.exchange.Gather(ctx, tag, could, nil)
	if failed != nil {
		return errors.Join(fmt.Errorf("hear whether the other nodes have kept what was learnt: %w", failed), err)
	}
	for node, of := range all {
		if len(of) == 1 && of[0] == 1 {
			if err != nil {
				t.log.Warn("the last checkpoint could not be written here; another node has it", "node", t.shared.name(node), "err", unadvised(err))
			}
			return nil
		}
	}
	if err == nil {
		err = errors.New("no node could keep what was learnt")
	}
	return &agreed{err}
}

// Unsaved says that the last checkpoint, or the first, could not be written.
type Unsaved struct {
	err         error
	epoch, step int // that it is of; 0: not known
}

func (e *Unsaved) Error() string {
	of := "a checkpoint"
	if e.epoch > 0 {
		of = fmt.Sprintf("the checkpoint of epoch %d, step %d", e.epoch, e.step)
	}
	return fmt.Sprintf("write %s: %v: free some space in the data directory, then go on with `hopmesh train resume`", of, e.err)
}

func (e *Unsaved) Unwrap() error { return e.err }

// save writes a checkpoint, unless the last one is of the same step, or nothing could go
// on from here.
func (t *trainer) save() error {
	for _, l := range t.learners {
		l.local.back(l)
	}
	at := t.place()
	if t.options.Dir == "" || t.saved.good && t.saved.place == at || !t.restful() {
		return nil
	}
	var doubted []*learner
	for _, l := range t.learners {
		if l.at.Diverged == nil && !l.sound() {
			doubted = append(doubted, l)
		}
	}
	if err := t.fault(at.epoch, at.step); err != nil {
		return err // and what was read means nothing
	}
	for _, l := range doubted {
		l.doubted = true
	}
	if len(doubted) > 0 {
		return nil // the next step, or the end of the epoch, says so
	}
	metadata, err := t.metadata()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.options.Dir, 0o700); err != nil {
		return &Unsaved{err, at.epoch, at.step}
	}
	before := t.keepBefore(at)
	if err := writeWhole(filepath.Join(t.options.Dir, CheckpointFile), t.sections(), metadata, func() error { return t.fault(at.epoch, at.step) }); err != nil {
		if _, broken := errors.AsType[*Broken](err); broken {
			return err
		}
		return &Unsaved{err, at.epoch, at.step}
	}
	t.saved = saved{at: time.Now(), good: true, place: at, before: before}
	return nil
}

// A section is a row of numbers, one for each weight, that a file holds by param.
type section struct {
	prefix string
	read   func(to []float32) []float32 // returns the numbers, in to or elsewhere
	params []nn.Param
}

func (t *trainer) sections() (all []section) {
	for _, l := range t.learners {
		all = append(all, l.sections()...)
	}
	return all
}

// sections of a model that has diverged are those of its best epoch alone.
func (t *learner) sections() (all []section) {
	params, prefix := t.model.Params(), prefixOf(t.index, len(t.learners))
	row := func(name string, m tensor.Matrix) {
		all = append(all, section{prefix + name, func(to []float32) []float32 {
			to = to[:m.Cols]
			t.device.Read32(to, m)
			return to
		}, params})
	}
	if t.at.Diverged == nil {
		row("", t.weights)
		for _, m := range t.optimizer.Moments() {
			row(momentPrefix+m.Name+".", m.Row)
		}
	}
	if t.at.Best != nil {
		all = append(all, section{prefix + bestPrefix, func([]float32) []float32 { return t.best }, params})
	}
	return append(append(all, t.older.sections(t.at.Step)...), t.earlySections()...)
}

// prefixOf begins the names of what belongs to one of so many models.
func prefixOf(model, of int) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf("models.%d.", model)
}

// A standing is what a checkpoint says of one model of a sweep.
type standing struct {
	State   state   `json:"state"`
	History []Epoch `json:"history"`
	Updates uint64  `json:"updates"`
}

func (t *learner) standing() standing {
	return standing{t.at, t.history[max(0, len(t.history)-maxHistory/len(t.learners)):], t.optimizer.Steps()}
}

// metadata is what a checkpoint says beside its tensors.
func (t *trainer) metadata() (map[string]string, error) {
	m := map[string]string{
		"format":             checkpointFormat,
		"dataset":            t.options.Dataset,
		"vertices":           strconv.FormatUint(t.data.about.Vertices, 10),
		"edges":              strconv.FormatUint(t.data.about.Edges, 10),
		"features":           strconv.Itoa(t.data.about.Features),
		"classes":            strconv.Itoa(t.data.about.Classes),
		"normalize_features": t.data.features.How(),
	}
	fields := map[string]any{"recipe": t.recipe}
	if one := t.learners[0].standing(); !t.sweeps() {
		m["updates"] = strconv.FormatUint(one.Updates, 10)
		fields["state"], fields["history"] = one.State, one.History
	} else {
		var all []standing
		for _, l := range t.learners {
			all = append(all, l.standing())
		}
		m["format"], fields["models"] = sweepFormat, all
	}
	for name, of := range fields {
		text, err := json.Marshal(of)
		if err != nil {
			return nil, fmt.Errorf("encode the %s of a checkpoint: %w", name, err)
		}
		m[name] = string(text)
	}
	return m, nil
}

// writeWhole writes a file of tensors whole or not at all: not if there is a fault then.
func writeWhole(path string, sections []section, metadata map[string]string, fault func() error) (err error) {
	// Of that name, so that what a crash leaves is written over the next time.
	file, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(writeTensors(file, sections, metadata), file.Sync(), file.Close(), fault()); err != nil {
		return err
	}
	return replace(path)
}

// replace puts the file that was written beside a file in its place.
func replace(path string) error {
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// tensorsOf lists the tensors of some sections.
func tensorsOf(sections []section) (all []safetensors.Tensor, numbers int) {
	for _, s := range sections {
		n := 0
		for _, p := range s.params {
			all = append(all, safetensors.Tensor{Name: s.prefix + p.Name, DType: safetensors.F32, Shape: []int64{int64(p.Rows), int64(p.Cols)}})
			n += p.Rows * p.Cols
		}
		numbers = max(numbers, n)
	}
	return all, numbers
}

// finite says whether all numbers are.
func finite(numbers []float32) bool {
	for _, x := range numbers {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}
