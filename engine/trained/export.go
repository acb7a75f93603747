package trained

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
)

// modelFormat is the format name in a model file's metadata. The number is that of the
// format, which changes when programs would misread what stands under a key that they know.
const modelFormat = "hopmesh-model/" + modelVersion

const modelVersion = "1"

// Export writes the model of a checkpoint with the weights of its best epoch, or of its
// last if none was evaluated. It stores the tensors by name, each In x Out, and in the
// metadata all that is needed to compute with them, for programs and in words. Index
// selects the model of a sweep.
func Export(to io.Writer, path string, index int) error {
	w, err := ReadWeighed(path, index)
	if err != nil {
		return err
	}
	defer w.Close()
	metadata, err := w.metadata()
	if err != nil {
		return fmt.Errorf("describe the model: %w", err)
	}
	all := checkpoint.Section{Read: func([]float32) []float32 { return w.Weights }, Params: w.model.Params()}
	sections := []checkpoint.Section{all}
	if w.columns > 0 {
		sections = append(sections, embedding.Section("", int(w.about.Vertices), w.columns, func() []float32 { return w.rows }))
	}
	if err := checkpoint.Write(to, sections, metadata); err != nil {
		return fmt.Errorf("write the model: %w", err)
	}
	return nil
}

// metadata describes the model. Its form is a part of the format: see docs/train.md.
func (w *Weighed) metadata() (map[string]string, error) {
	metadata := map[string]string{
		"format":             modelFormat,
		"version":            modelVersion,
		"features":           strconv.Itoa(w.about.Features),
		"classes":            strconv.Itoa(w.about.Classes),
		"normalize_features": w.how,
		"loss":               w.loss,
		"epoch":              strconv.Itoa(w.Epoch),
		"seed":               strconv.FormatUint(w.seed, 10),
		"vertices":           strconv.FormatUint(w.about.Vertices, 10),
		"edges":              strconv.FormatUint(w.about.Edges, 10),
	}
	if w.kind != task.Kinds[0] {
		metadata["task"] = w.kind.Name
	}
	if w.columns > 0 {
		metadata["embeddings"] = strconv.Itoa(w.columns)
	}
	if w.training != "" {
		metadata["training"] = w.training
	}
	steps, err := w.steps()
	if err != nil {
		return nil, err
	}
	if w.decoder != "" {
		metadata["decoder"] = w.decoder
	}
	var order []string
	for _, s := range steps {
		order = append(order, s.Name)
	}
	metadata["order"] = strings.Join(order, ", ")
	for key, value := range map[string]any{"model": w.model.Resolved(), "equations": steps, "class_names": w.names} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		metadata[key] = string(text)
	}
	return metadata, nil
}

// normalised describes how features are normalised.
var normalised = map[string]string{
	"none":       "x = the features as they are.",
	"row":        "x = each row of features divided by the sum of its absolute values; a row of zeros stays.",
	"binary":     "x = 1 where a feature is not 0, else 0.",
	"binary-row": "x = 1 where a feature is not 0, else 0; then each row divided by its sum; a row of zeros stays.",
}

// steps describes all that is computed, from the features to probabilities, in order, and last the
// decoder of pairs, if there is one.
func (w *Weighed) steps() ([]nn.Step, error) {
	f, c := w.about.Features, w.about.Classes
	features := nn.Step{Name: "features", Equation: normalised[w.how], Tensors: []string{}, In: f, Out: f}
	if w.columns > 0 {
		features.Equation, features.Tensors = "x = the row of "+embedding.Name+" with the number of the vertex in the dataset.", []string{embedding.Name}
		if n := w.fixed(); n > 0 {
			features.Equation = strings.Replace(normalised[w.how], "x =", fmt.Sprintf("the first %d columns of x =", n), 1) + " Those that follow = the row of " + embedding.Name + " with the number of the vertex in the dataset."
		}
	}
	all := slices.Concat(
		[]nn.Step{features},
		w.model.Steps(),
		[]nn.Step{{Name: "scores", Equation: fmt.Sprintf("y = %s, as predictions hold them. %s", w.kind.Scores, w.kind.Output(w.loss)), Tensors: []string{}, In: c, Out: c}},
	)
	if w.decoder == "" {
		return all, nil
	}
	decoder, err := link.Step(w.decoder, c, w.relations())
	return append(all, decoder), err
}

// resolved returns the recipe of one model, with all that was left to "auto" as it was used.
func resolved(r recipe.Recipe, spec nn.Spec, how string, history []Epoch) recipe.Recipe {
	r.Model, r.Features, r.Sweep = spec, how, nil
	if r.Sharing.Strategy == strategy.Auto || r.Sharing.Strategy == "" {
		r.Sharing.Strategy = strategy.Single // which no epoch names
		for _, e := range history {
			if e.Strategy != "" {
				r.Sharing.Strategy = e.Strategy
			}
		}
	}
	r.Sharing.Values = maps.Clone(r.Sharing.Values)
	maps.DeleteFunc(r.Sharing.Values, func(_, value string) bool { return value == strategy.Auto })
	return r
}

// numbers returns the names of classes that have none.
func numbers(classes int) []string {
	names := make([]string, classes)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

// readWords reads what a model file has in words and can't be made again. Files of earlier
// programs have none of it.
func (w *Weighed) readWords(file *checkpoint.File) error {
	if normalised[w.how] == "" {
		return fmt.Errorf("its metadata has %q for normalize_features", w.how)
	}
	if w.training = file.Text("training"); w.training != "" && !json.Valid([]byte(w.training)) {
		return errors.New("its training is not the JSON expected")
	}
	if w.kind.Pairs && w.training != "" {
		var of struct{ Links *link.Spec }
		if err := json.Unmarshal([]byte(w.training), &of); err != nil {
			return fmt.Errorf("its training can't be read: %w", err)
		}
		w.links = of.Links
	}
	return w.readNames(file)
}

// readNames reads the names of the classes, which are their numbers where the dataset has none.
func (w *Weighed) readNames(file *checkpoint.File) error {
	if file.Text("class_names") == "" {
		w.names = numbers(w.about.Classes)
		return nil
	}
	if err := file.JSON("class_names", &w.names); err != nil {
		return err
	}
	if len(w.names) != w.about.Classes {
		return fmt.Errorf("it names %d classes, and has %d", len(w.names), w.about.Classes)
	}
	return nil
}
