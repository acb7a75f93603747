package trained

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/evaluate"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// Weighed is a model with its weights: the best of a run's checkpoint, or an exported
// one.
type Weighed struct {
	model   *nn.Model
	about   dataset.About // without splits
	how     string
	Weights []float32 // in the order of the model's params
	Epoch   int       // of the weights
	seed    uint64
	loss    string
	kind    *task.Kind
	links   *link.Spec // of task link; nil: not known, or of another task
	decoder string     // of pairs; "": vertices were learnt
	learnt
	// training is the resolved recipe as JSON; "": not known.
	training string
	recipe   *recipe.Recipe // the same; nil: of a model file
	names    []string       // of the classes, or of columns of other targets
}

// learnt are the rows of vertices that a model has learnt, which lie in its file; those of one that has
// learnt none have no columns.
type learnt struct {
	rows    []float32
	columns int
	file    *checkpoint.File
}

// Hash returns the hex SHA-256 of weights: 32-bit floats, little-endian, in the order of the
// model's params. Others that are learnt follow, such as rows of vertices.
func Hash(weights []float32, others ...[]float32) string {
	sum := sha256.New()
	sum.Write(plain.Bytes(weights))
	for _, of := range others {
		sum.Write(plain.Bytes(of))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// BestModel is the index of the best model of a sweep. It also selects the one model
// where there is no sweep, as index 0 does.
const BestModel = -1

// ErrInParts is the error of a checkpoint of a job that is not done, where nodes have some learnt rows
// each.
var ErrInParts = errors.New("the learnt rows of its vertices are in parts on the nodes of the job, and put together when it has ended, from those of one evaluated epoch: ask again then, {train.resume} it if it has stopped, or start another with a smaller {lr} if it has diverged")

// Close closes the file that learnt rows lie in, if there are some: they may be larger than memory.
func (w *Weighed) Close() error {
	if w.file == nil {
		return nil
	}
	w.rows = nil
	return w.file.Close()
}

// ReadWeighed reads a checkpoint or a model file. The caller closes it.
func ReadWeighed(path string, index int) (*Weighed, error) {
	file, err := checkpoint.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the model can't be read: %w", err)
	}
	var w *Weighed
	if file.Text("format") == modelFormat {
		w, err = weighedOfModel(file, index)
	} else {
		w, err = weighedOfCheckpoint(file, index)
	}
	if err == nil && w.columns > 0 {
		w.file = file
		return w, nil
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("the model in %s is not usable: %w", path, err)
	}
	return w, nil
}

func weighedOfCheckpoint(file *checkpoint.File, index int) (*Weighed, error) {
	c := &Snapshot{File: file}
	if err := c.Read(); err != nil {
		return nil, err
	}
	if err := oneOf(index, len(c.Models)); err != nil {
		return nil, err
	}
	if index == BestModel {
		index = BestOf(len(c.Models), func(i int) *State { return &c.Models[i].State })
	}
	s, r := &c.Models[index].State, c.Recipe.Models()[index]
	if !s.finished() {
		return nil, fmt.Errorf("model %d has diverged before its first evaluation, and left no weights", index)
	}
	w := &Weighed{about: c.About, how: c.how, Epoch: s.Last.Epoch, seed: r.Seed, loss: r.Loss, kind: task.Named(r.Task), links: r.Links}
	if w.kind == nil {
		return nil, fmt.Errorf("its recipe has the unknown task %q", r.Task)
	}
	if err := w.readNames(file); err != nil {
		return nil, err
	}
	prefix := PrefixOf(index, len(c.Models))
	if s.Best != nil {
		prefix, w.Epoch = prefix+BestPrefix, s.Best.Epoch
	}
	if w.kind.Pairs && r.Links != nil {
		w.decoder = r.Links.Decoder
	}
	if err := w.fill(file, r.Model, prefix, r.Embeddings); err != nil {
		return nil, err
	}
	of := resolved(r, w.model.Resolved(), c.how, c.Models[index].History)
	text, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("describe the training: %w", err)
	}
	w.recipe, w.training = &of, string(text)
	return w, nil
}

// oneOf returns an error unless there is a model of that index among so many.
func oneOf(index, models int) error {
	switch {
	case index >= BestModel && index < models:
		return nil
	case models == 1:
		return fmt.Errorf("it holds one model, and there is no model %d: leave the number out", index)
	}
	return fmt.Errorf("it holds the models 0 to %d of a sweep, and there is no model %d", models-1, index)
}

// BestOf returns the index of the model that did best on the validation vertices, the
// first of equals; where none was evaluated, the first that has not diverged.
func BestOf(models int, of func(int) *State) int {
	best := 0
	for i := 1; i < models; i++ {
		now, was := of(i), of(best)
		switch {
		case now.Best != nil && was.Best != nil && now.Best.Better(was.Best.Record),
			now.Best != nil && was.Best == nil,
			now.finished() && !was.finished():
			best = i
		}
	}
	return best
}

func weighedOfModel(file *checkpoint.File, index int) (*Weighed, error) {
	if err := oneOf(index, 1); err != nil {
		return nil, err
	}
	w := &Weighed{how: file.Text("normalize_features"), loss: file.Text("loss"), kind: task.Named(file.Text("task"))}
	var spec nn.Spec
	if err := file.JSON("model", &spec); err != nil {
		return nil, err
	}
	if w.kind == nil {
		return nil, fmt.Errorf("its metadata has the unknown task %q", file.Text("task"))
	}
	if !slices.Contains(w.kind.LossNames(), w.loss) {
		return nil, fmt.Errorf("its metadata has the unknown loss %q", w.loss)
	}
	if w.kind.Pairs {
		w.decoder = cmp.Or(file.Text("decoder"), link.Decoders[0]) // which was the only one
	}
	epoch, err := file.Uint("epoch", math.MaxInt32)
	if err != nil {
		return nil, err
	}
	w.Epoch = int(epoch)
	if w.seed, err = file.Uint("seed", math.MaxUint64); err != nil {
		return nil, err
	}
	if w.about, err = readAbout(file); err != nil {
		return nil, err
	}
	if err := w.readWords(file); err != nil {
		return nil, err
	}
	columns := uint64(0)
	if file.Has(embedding.Name) {
		if columns, err = file.Uint("embeddings", uint64(w.about.Features)); err != nil {
			return nil, err
		}
	}
	return w, w.fill(file, spec, "", int(columns))
}

// fill makes the model, and reads its weights, with the learnt rows that it reads, if any.
func (w *Weighed) fill(file *checkpoint.File, spec nn.Spec, prefix string, columns int) (err error) {
	if w.columns = columns; columns > 0 {
		p := embedding.Param(int(w.about.Vertices), columns)
		if file.Text(embedding.KeepersField) != "" && !file.Has(prefix+p.Name) {
			return ErrInParts
		}
		if w.rows, err = file.View(prefix, &p); err != nil {
			return err
		}
	}
	if w.model, err = modelOf(spec, w.about, w.decoder, w.relations()); err != nil {
		return err
	}
	w.Weights, err = file.Row(prefix, w.model.Params(), w.model.Size())
	return err
}

// relations returns how many relations the decoder knows; 0: pairs have none.
func (w *Weighed) relations() int {
	if w.links == nil {
		return 0
	}
	return w.links.Relations
}

// modelOf returns the model of a file's weights, without them. They end with those of the decoder,
// if it names one.
func modelOf(spec nn.Spec, about dataset.About, decoder string, relations int) (*nn.Model, error) {
	m, err := nn.New(spec, about.Features, about.Classes)
	if relations > graph.MaxRelations {
		return nil, fmt.Errorf("its model can't be: its decoder has %d relations of at most %d", relations, graph.MaxRelations)
	}
	if err == nil && decoder != "" {
		m, err = link.Extend(m, decoder, about.Classes, relations)
	}
	if err != nil {
		return nil, fmt.Errorf("its model can't be: %w", err)
	}
	return m, nil
}

// PredictOptions select what is predicted.
type PredictOptions struct {
	// Embeddings selects the rows that enter the last layer, or the head if the model
	// has one. Otherwise the model's outputs are predicted: softmax turns logits into
	// probabilities, or the logistic function where the loss was bce; of a regression they
	// are the numbers.
	Embeddings bool
	Index      int // of a sweep's models; BestModel: the best

	Threads int    // 0: all
	Memory  uint64 // bound in bytes; 0: none
	Dir     string // takes what memory is too small for
	// Beside is what the caller takes of the memory meanwhile.
	Beside uint64
	// Writing returns what writing the prediction needs of the memory, which follows; nil:
	// nothing.
	Writing func(Prediction) uint64
	// Device opens the device, which is closed; nil: so many of this machine's cores.
	Device func(threads int) (tensor.Device, error)
}

// A Prediction describes what Predict is about to pass on.
type Prediction struct {
	Vertices int
	Columns  int
	Epoch    int    // of the weights; 0: not known
	Loss     string // of training
	Task     *task.Kind
	Classes  []string   // their names, or numbers
	Links    *link.Spec // of task link, whose rows are embeddings; nil: of another task
	Decoder  []float32  // of these: the weights of the decoder
	// Relates means that the model tells relations apart, by their numbers.
	Relates bool
}

// Predict runs the model of a checkpoint, or an exported one, over all vertices with
// all their neighbours. It describes the prediction to begin, then passes the rows of
// all vertices in order, some at a time: they lie one after another, and are valid
// until the call returns.
func Predict(ctx context.Context, model string, shards []*graph.Shard, o PredictOptions,
	begin func(Prediction) error, rows func(first int, rows []float32) error) error {
	w, err := ReadWeighed(model, o.Index)
	if err != nil {
		return err
	}
	defer w.Close()
	n, columns := len(w.model.Stages()), w.about.Classes
	if o.Embeddings {
		if n, columns, err = evaluate.Embeddings(w.model.Stages()); err != nil {
			return err
		}
	}
	d, err := w.open(shards, 0)
	if err != nil {
		return err
	}
	on, err := w.lodge(o.Device, o.Threads)
	if err != nil {
		return err
	}
	defer on.close()
	i := evaluate.NewInference(d, evaluate.Nodes{})
	defer i.Close()
	i.Add(w.model, on.weights)
	i.Expect(0, on.foreign != nil, o.Dir)
	i.Once()
	least := i.LeastFor(n)
	about := Prediction{Vertices: d.Topology.Vertices(), Columns: columns, Epoch: w.Epoch, Loss: w.loss, Task: w.kind, Classes: w.names, Relates: w.model.Form().Relations > 0}
	if w.kind.Pairs {
		of := *cmp.Or(w.links, link.Default())
		of.Decoder = w.decoder // the file says it, even where it does not say how it was trained
		about.Links = &of
		about.Decoder = slices.Clone(w.Weights[len(w.Weights)-w.model.Added():]) // the others go
	}
	if o.Writing != nil {
		least = max(least, o.Writing(about))
	}
	memory, err := inferenceMemory("predicting", d, w, least, o.Beside, o.Memory)
	if err != nil {
		return err
	}
	if err := i.Open(on.device, on.work, evaluate.Options{Memory: memory, Dir: o.Dir, Threads: o.Threads}); err != nil {
		return err
	}
	if err := begin(about); err != nil {
		return err
	}
	return i.Predict(ctx, n, columns, on.fault, rows)
}

// open returns the dataset of shards as the model reads it.
func (w *Weighed) open(shards []*graph.Shard, split int) (*dataset.Graph, error) {
	d, err := dataset.Open(shards, split, w.how)
	if err != nil {
		return nil, err
	}
	if err := w.reads(&d.About); err != nil {
		return nil, err
	}
	if w.columns > 0 {
		if err := embedding.Read(d, w.columns, w.rows); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fixed returns how many columns of features precede learnt rows.
func (w *Weighed) fixed() int {
	if w.columns == 0 {
		return 0
	}
	return w.about.Features - w.columns
}

// reads returns an error unless the model can read the features of a dataset, or has rows of its
// vertices.
func (w *Weighed) reads(about *dataset.About) error {
	if w.columns > 0 && (about.Features+w.columns != w.about.Features || about.Vertices != w.about.Vertices || about.Edges != w.about.Edges) {
		return fmt.Errorf("the model has learned a row of each of the %d vertices of the dataset that it was trained on: choose that one", w.about.Vertices)
	}
	if of := w.model.Form().Relations; of > 0 && of != about.Relations {
		return fmt.Errorf("the model tells %s apart, and the edges of the dataset have %d: choose a dataset with the same types as that on which it was trained", recipe.Count(of, "relation"), about.Relations)
	}
	if form := w.model.Form(); (about.Ends != "" || about.Triples > 0) && form.Ends != about.Ends && (form.Ends != "" || form.Apart || form.Together) {
		return errors.New("the relations of the dataset end at other types than those that the model tells apart: choose a dataset with the same types as that on which it was trained")
	}
	if spec := w.model.Spec(); (about.Starts != "" || about.Triples > 0) && w.model.Form().Together && spec.Starts != about.Starts {
		return errors.New("the relations of the dataset begin at other types than those that the model tells apart: choose a dataset with the same types as that on which it was trained")
	}
	if of := w.model.Form().EdgeFeatures; of > 0 && of != about.EdgeFeatures {
		return fmt.Errorf("the model reads %s of edges, and those of the dataset have %d: choose a dataset with the same ones as that on which it was trained", recipe.Count(of, "feature"), about.EdgeFeatures)
	}
	if w.columns > 0 || about.Features == w.about.Features {
		return nil
	}
	return fmt.Errorf("the model reads %s of features, and the dataset has %d: choose a dataset with the same columns as that on which it was trained",
		recipe.Count(w.about.Features, "column"), about.Features)
}

// A lodging is a device that has the weights of a model.
type lodging struct {
	device     tensor.Device
	foreign    tensor.Foreign // the device, if its memory is not the host's; else nil
	kept, work tensor.Arena
	weights    tensor.Matrix
}

// lodge opens a device for a model. The caller closes it.
func (w *Weighed) lodge(open func(threads int) (tensor.Device, error), threads int) (l *lodging, err error) {
	l = new(lodging)
	if l.device, err = slot.Open(open, threads); err != nil {
		return nil, err
	}
	if l.foreign, _ = l.device.(tensor.Foreign); l.foreign != nil {
		l.device = slot.Lend(l.foreign)
	}
	if l.kept, err = l.device.NewArena(4 * len(w.Weights)); err == nil {
		l.work, err = l.device.NewArena(0)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	l.weights = l.kept.Alloc(l.device.Type(), 1, len(w.Weights))
	l.device.Write32(l.weights, w.Weights)
	return l, nil
}

func (l *lodging) close() {
	for _, a := range []tensor.Arena{l.work, l.kept} {
		if a != nil {
			a.Close()
		}
	}
	l.device.Close()
}

// fault returns the error of a device that has failed.
func (l *lodging) fault() error {
	if l.foreign != nil && l.foreign.Err() != nil {
		return &slot.Broken{Device: l.foreign.Name(), Err: l.foreign.Err()}
	}
	return nil
}

// inferenceMemory returns how much of a bound of memory inference may use; 0 is no bound.
// Inference, or writing what it yields, needs at least least, and others something beside it.
func inferenceMemory(what string, d *dataset.Graph, w *Weighed, least, beside, memory uint64) (uint64, error) {
	if memory == 0 {
		return budget.LeastInference, nil
	}
	const rows = 4 << 20 // their order, and those that are yielded
	others := beside + budget.Program + rows + 4*(2*uint64(len(w.Weights))+uint64(w.model.Added())+w.about.Vertices*uint64(w.fixed())) + 4*uint64(len(d.Training)) + d.Features.Bytes()
	if w.model.Form().Weighting == sample.Symmetric {
		others += 4 * uint64(d.Topology.Vertices()) // degrees
	}
	if least += others; least > memory {
		return 0, tooLarge(what, least, memory)
	}
	return memory - others, nil
}

func tooLarge(what string, needs, memory uint64) error {
	return fmt.Errorf("%s needs %s of memory, and %s is what it may use: allow more with {agent.memory}", what, budget.Format(needs), budget.Format(memory))
}
