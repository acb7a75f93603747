package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/nn"
)

// modelFormat is what a model file says in its metadata that it is.
const modelFormat = "hopmesh-model/1"

// A weighed is a model with its weights: the best of a run's checkpoint, or what
// was exported.
type weighed struct {
	model   *nn.Model
	about   About // without splits
	how     string
	weights []float32 // in the order of the model's params
	epoch   int       // that they are of
	seed    uint64
	loss    string
}

// BestModel is the index of the best model of a sweep, whichever that is, and of the
// one model where there is no sweep, which is also number 0.
const BestModel = -1

// readWeighed reads a checkpoint or a model file.
func readWeighed(path string, index int) (*weighed, error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the model can't be read: %w", err)
	}
	var w *weighed
	if file.Metadata()["format"] == modelFormat {
		w, err = weighedOfModel(file, index)
	} else {
		w, err = weighedOfCheckpoint(file, index)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("the model in %s is not usable: %w", path, err)
	}
	return w, nil
}

func weighedOfCheckpoint(file *safetensors.File, index int) (*weighed, error) {
	c := &checkpoint{file: file}
	if err := c.read(); err != nil {
		return nil, err
	}
	if err := oneOf(index, len(c.models)); err != nil {
		return nil, err
	}
	if index == BestModel {
		index = bestOf(len(c.models), func(i int) *state { return &c.models[i].State }, c.recipe.Metric)
	}
	s, r := &c.models[index].State, c.recipe.Models()[index]
	if !s.finished() {
		return nil, fmt.Errorf("model %d has diverged before its first evaluation, and left no weights", index)
	}
	w := &weighed{about: c.about, how: c.how, epoch: s.Last.Epoch, seed: r.Seed, loss: r.Loss}
	prefix := prefixOf(index, len(c.models))
	if s.Best != nil {
		prefix, w.epoch = prefix+bestPrefix, s.Best.Epoch
	}
	return w, w.fill(file, r.Model, prefix)
}

// oneOf says whether there is a model of that index among some.
func oneOf(index, models int) error {
	switch {
	case index >= BestModel && index < models:
		return nil
	case models == 1:
		return fmt.Errorf("it holds one model, and there is no model %d: leave the number out", index)
	}
	return fmt.Errorf("it holds the models 0 to %d of a sweep, and there is no model %d", models-1, index)
}

// bestOf is which of some models did best on the validation vertices, the first of those
// that are equal; where none was judged, the first that has not diverged.
func bestOf(models int, of func(int) *state, metric string) int {
	best := 0
	for i := 1; i < models; i++ {
		now, was := of(i), of(best)
		switch {
		case now.Best != nil && was.Best != nil && now.Best.Eval.better(was.Best.Eval, metric),
			now.Best != nil && was.Best == nil,
			now.finished() && !was.finished():
			best = i
		}
	}
	return best
}

func weighedOfModel(file *safetensors.File, index int) (*weighed, error) {
	if err := oneOf(index, 1); err != nil {
		return nil, err
	}
	m := file.Metadata()
	w := &weighed{how: m["normalize_features"], loss: m["loss"]}
	if err := undamaged(file); err != nil {
		return nil, err
	}
	var spec nn.Spec
	if err := json.Unmarshal([]byte(m["model"]), &spec); err != nil {
		return nil, fmt.Errorf("its model is not the JSON expected: %w", err)
	}
	if w.loss != Softmax && w.loss != BCE {
		return nil, fmt.Errorf("its metadata has the unknown loss %q", w.loss)
	}
	epoch, err := natural(m, "epoch", math.MaxInt32)
	if err != nil {
		return nil, err
	}
	w.epoch = int(epoch)
	if w.seed, err = natural(m, "seed", math.MaxUint64); err != nil {
		return nil, err
	}
	return w, errors.Join(w.about.read(m), w.fill(file, spec, ""))
}

// fill makes the model, and reads its weights.
func (w *weighed) fill(file *safetensors.File, spec nn.Spec, prefix string) (err error) {
	if w.model, err = modelOf(spec, w.about); err != nil {
		return err
	}
	w.weights, err = rowOf(file, prefix, w.model.Params(), w.model.Size())
	return err
}

// Export writes the model of a checkpoint with the weights of its best epoch, or of
// its last if none was judged: tensors by name, each In x Out, and in the metadata
// all that it takes to compute with them. Index says which model of a sweep's.
func Export(to io.Writer, checkpoint string, index int) error {
	w, err := readWeighed(checkpoint, index)
	if err != nil {
		return err
	}
	spec, err := json.Marshal(w.model.Spec())
	if err != nil {
		return fmt.Errorf("encode the model: %w", err)
	}
	metadata := map[string]string{
		"format":             modelFormat,
		"model":              string(spec),
		"features":           strconv.Itoa(w.about.Features),
		"classes":            strconv.Itoa(w.about.Classes),
		"normalize_features": w.how,
		"loss":               w.loss,
		"epoch":              strconv.Itoa(w.epoch),
		"seed":               strconv.FormatUint(w.seed, 10),
		"vertices":           strconv.FormatUint(w.about.Vertices, 10),
		"edges":              strconv.FormatUint(w.about.Edges, 10),
	}
	all := section{"", func([]float32) []float32 { return w.weights }, w.model.Params()}
	if err := writeTensors(to, []section{all}, metadata); err != nil {
		return fmt.Errorf("write the model: %w", err)
	}
	return nil
}
