package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/tables"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// CheckpointFile is the name of a run's checkpoint in its folder.
const CheckpointFile = checkpoint.LastFile

const (
	// Keepers is how many nodes of a run write checkpoints while it goes on. All nodes
	// have the same state, and each writes a checkpoint when the run ends.
	Keepers = 3
	// maxHistory bounds the epochs that a checkpoint lists, of all models.
	maxHistory = 10_000
)

// NewFolder opens the folder of this run's checkpoints.
func (t *Trainer) NewFolder() *checkpoint.Folder {
	return checkpoint.NewFolder(checkpoint.Options{
		Dir: t.Options.Dir, Interval: t.Options.Interval, Steps: t.stepsOfEpoch(), Single: t.Sweeps(), Log: t.Log,
	})
}

// due reports whether it is time to write a checkpoint.
func (t *Trainer) due() bool {
	if t.Sharing.learnt.Apart {
		return t.Together // or rows of different steps would be left
	}
	return t.Checkpoints.Keeps() && t.Together || t.keeps() && t.Checkpoints.Due()
}

// Wants reports whether a checkpoint is to be written when a step or an epoch is done.
// The first epoch always leaves one, since most runs that diverge do so early.
func (t *Trainer) Wants() bool {
	return t.due() || t.keeps() && t.Checkpoints.Missing() && !t.Sharing.learnt.Apart
}

// keeps reports whether this node writes checkpoints while the run goes on.
func (t *Trainer) keeps() bool {
	return t.Session.Alone() || t.Session.Work.Self < Keepers || t.Sharing.learnt.Apart
}

// unconfirmed is how long a checkpoint is put off if not all nodes have verified their shards.
const unconfirmed = time.Second

// saveConfirmed is saveSoon in the middle of an epoch: the checkpoint is put off until all
// nodes know that what they have read of their shards is whole.
func (t *Trainer) saveConfirmed(ctx context.Context) error {
	confirmed := t.intact.Confirmed(ctx)
	if r := &t.Sharing.learnt; r.Apart {
		var err error
		if confirmed, err = r.All(ctx, t.Session, t.Place(), confirmed); err != nil {
			if ctx.Err() != nil {
				return t.Stopped(ctx)
			}
			return err
		}
	}
	if !confirmed {
		t.Together = false
		t.Checkpoints.Begin(unconfirmed)
		return nil
	}
	return t.saveSoon()
}

// saveSoon writes a checkpoint that is due. If that fails, the run goes on as long as
// there is an older checkpoint or other nodes write theirs: the next attempt may
// succeed.
func (t *Trainer) saveSoon() error {
	t.Together = false
	err := t.Save()
	if err == nil {
		t.tellKept(nil)
		return nil
	}
	if _, good := t.Checkpoints.Last(); !good && t.Session.Alone() {
		return err
	}
	t.unkept(err)
	return nil
}

// unkept notes that the run goes on without a checkpoint, and tries again later.
func (t *Trainer) unkept(err error) {
	err = checkpoint.Cause(err)
	say := t.Log.Warn
	if t.Checkpoints.Failed() {
		say = t.Log.Debug // it has been said
	}
	t.Checkpoints.Fail()
	say("a checkpoint could not be written; the training goes on and tries again", "err", err)
	t.tellKept(err)
}

// tellKept reports to the run's owner that checkpoints can be written, or why not.
func (t *Trainer) tellKept(err error) {
	if t.Options.Kept != nil {
		t.Options.Kept(err)
	}
}

// saveLast writes the checkpoint of a run that is done. It succeeds if one of the nodes
// that share the run can write it.
func (t *Trainer) saveLast(ctx context.Context) error {
	err := t.Save()
	if t.Session.Alone() {
		if err == nil {
			t.Sharing.learnt.Tidy(t.Checkpoints, &t.Recipe, false, t.Log)
		}
		return err
	}
	apart := &t.Sharing.learnt
	if apart.Apart { // others need this node's rows, even if it can't keep them
		err = apart.Complete(ctx, t.Session, t.Learners[0].Rows, t.Checkpoints, t.Place().Epoch+1, t.Session.Work.Self < Keepers, apart.rows != nil, err, t.Save)
	}
	could := []byte{1}
	if err != nil {
		could[0] = 0
	}
	tag := exchange.Tag{Epoch: uint32(t.Place().Epoch) + 1, Lane: exchange.LaneMessages} // after all earlier messages
	all, failed := t.Session.Exchange.Gather(ctx, tag, could, nil)
	if failed != nil {
		return errors.Join(fmt.Errorf("hear whether the other nodes have kept what was learnt: %w", failed), err)
	}
	copies, has := 0, ""
	for node, of := range all {
		if len(of) == 1 && of[0] == 1 {
			copies, has = copies+1, t.Session.Name(node)
		}
	}
	part := errors.Is(err, tables.ErrPart)
	if copies > 0 {
		if err != nil && !part {
			t.Log.Warn("the last checkpoint could not be written here; another node has it", "node", has, "err", checkpoint.Cause(err))
		}
		t.Sharing.learnt.Tidy(t.Checkpoints, &t.Recipe, part && copies >= min(Keepers, len(all)), t.Log)
		return nil
	}
	if err == nil || part {
		err = errors.New("no node could keep what was learnt")
	}
	return &session.Agreed{Err: err}
}

// SaveBack goes back to the last state that may be kept, and saves it. The run must end.
func (t *Trainer) SaveBack() error {
	for _, l := range t.Learners {
		t.Method.Back(l)
	}
	if err := t.Save(); err != nil {
		return err
	}
	return t.Sharing.learnt.saveBefore(t)
}

// Save writes a checkpoint, unless the last one is of the same step, or the run could
// not go on from here, or shards that led here may be damaged.
func (t *Trainer) Save() error {
	at := t.Place()
	if last, good := t.Checkpoints.Last(); !t.Checkpoints.Keeps() || good && last == at || !t.resumable() || !t.intact.Keeps() {
		return nil
	}
	var doubted []*Learner
	for _, l := range t.Learners {
		if l.At.Diverged == nil && !l.sound() {
			doubted = append(doubted, l)
		}
	}
	fault := func() error { return t.Fault(at.Epoch, at.Step) }
	if err := fault(); err != nil {
		return err // the numbers that were read are invalid
	}
	for _, l := range doubted {
		l.Doubted = true
	}
	if len(doubted) > 0 {
		return nil // the next step, or the end of the epoch, reports it
	}
	metadata, err := t.metadata()
	if err != nil {
		return err
	}
	return t.Checkpoints.Save(at, t.sections(), metadata, fault)
}

func (t *Trainer) sections() (all []checkpoint.Section) {
	for _, l := range t.Learners {
		all = append(all, l.sections()...)
	}
	return all
}

// sections of a model that has diverged are those of its best epoch alone.
func (t *Learner) sections() (all []checkpoint.Section) {
	params, prefix := t.Model.Params(), trained.PrefixOf(t.Index, len(t.Run.Learners))
	row := func(name string, m tensor.Matrix) {
		all = append(all, checkpoint.Row(prefix+name, t.Run.Device, m, params))
	}
	if t.At.Diverged == nil {
		row("", t.Weights)
		for _, m := range t.Optimizer.Moments() {
			row(trained.MomentPrefix+m.Name+".", m.Row)
		}
	}
	if t.At.Best != nil {
		all = append(all, checkpoint.Section{Prefix: prefix + trained.BestPrefix, Read: func([]float32) []float32 { return t.best }, Params: params})
	}
	for _, extra := range t.Extras {
		all = append(all, extra.Sections(t.At.Step)...)
	}
	return all
}

// maxCheckpoint bounds the size of a checkpoint of this run: its rows, and the
// metadata.
func (t *Trainer) maxCheckpoint() uint64 {
	most := uint64(64 << 20)
	for _, l := range t.Learners {
		most += 4 * 4 * uint64(l.Model.Size())
		for _, extra := range l.Extras {
			most += extra.MaxBytes()
		}
	}
	return most
}

func (t *Learner) standing() trained.Standing {
	return trained.Standing{State: t.At, History: t.History[max(0, len(t.History)-maxHistory/len(t.Run.Learners)):], Updates: t.Optimizer.Steps()}
}

// metadata describes the run of a checkpoint.
func (t *Trainer) metadata() (map[string]string, error) {
	h := trained.Header{Recipe: t.Recipe, Dataset: t.Options.Dataset, About: &t.Data.About, Features: t.Data.Features.How(), Sweep: t.Sweeps()}
	for _, l := range t.Learners {
		h.Models = append(h.Models, l.standing())
	}
	if t.Sharing.learnt.Apart {
		h.Add(embedding.KeepersField, tables.KeptBy(t.Session))
	}
	if names := t.Options.ClassNames; len(names) > 0 && t.Data.Links == nil {
		h.Add("class_names", names)
	}
	return h.Metadata()
}
