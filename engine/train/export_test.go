package train_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// exported exports a model and opens the file.
func exported(t *testing.T, path string) ([]byte, *checkpoint.File) {
	t.Helper()
	var b bytes.Buffer
	if err := trained.Export(&b, path, trained.BestModel); err != nil {
		t.Fatal(err)
	}
	f, err := checkpoint.Parse("model", bytes.Clone(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return b.Bytes(), f
}

// An exported model says all that training used, with nothing left to auto, and describes
// every step from the features to the probabilities.
func TestExportsExplainThemselves(t *testing.T) {
	r := traintest.Short("gcn")
	r.Features, r.Loss = "auto", recipe.BCE
	r.Sharing = strategy.Given(strategy.Auto, "leap.mode=auto", "leap.dedup=off")
	if r.Model.SelfLoops != nn.LoopsAuto {
		t.Fatal("nothing is left to auto")
	}
	dir := checkpointed(t, r, traintest.Communities(t, 3000))
	b, f := exported(t, filepath.Join(dir, train.CheckpointFile))
	if head := b[:bytes.Index(b, []byte(`}}`))]; bytes.Contains(head, []byte("auto")) {
		t.Errorf("it leaves something to auto: %s", head)
	}
	if f.Text("version") != "1" || f.Text("class_names") != `["0","1","2","3"]` || f.Text("order") != "features, edges, layers.0, layers.1, scores" {
		t.Errorf("version %s, classes %s, order %s", f.Text("version"), f.Text("class_names"), f.Text("order"))
	}
	var spec nn.Spec
	var training recipe.Recipe
	var steps []nn.Step
	for name, to := range map[string]any{"model": &spec, "training": &training, "equations": &steps} {
		if err := f.JSON(name, to); err != nil {
			t.Fatal(err)
		}
	}
	if spec.SelfLoops != nn.LoopsOn || training.Model != spec || training.Features != "none" || training.Rate != r.Rate || training.Seed != r.Seed ||
		training.Sharing.Strategy != strategy.Single || len(training.Sharing.Values) != 1 || training.Sharing.Values["leap.dedup"] != "off" {
		t.Errorf("the model is %+v, and its training %+v", spec, training)
	}
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	if strings.Join(names, ", ") != f.Text("order") || steps[0].Equation != "x = the features as they are." || !strings.Contains(steps[len(steps)-1].Equation, "logistic") ||
		!slices.Equal(steps[2].Tensors, []string{"layers.0.weight", "layers.0.bias"}) {
		t.Errorf("the steps are %+v", steps)
	}
}

// Names of classes pass from the dataset through checkpoints into exported files.
func TestExportsNameTheClasses(t *testing.T) {
	dir, names := t.TempDir(), []string{"maths", "physics", "x", "y"}
	traintest.MustRun(t, traintest.Short("gcn"), traintest.Communities(t, 3000), train.Options{Threads: 2, Dir: dir, Dataset: "d", ClassNames: names})
	_, f := exported(t, filepath.Join(dir, train.CheckpointFile))
	var got []string
	if err := f.JSON("class_names", &got); err != nil || !slices.Equal(got, names) {
		t.Errorf("%v, %v", got, err)
	}
}

// A decoder is exported with its weights, its name and its words, and read again; one that nobody
// knows, or whose weights are not there, is refused.
func TestExportsHoldTheDecoder(t *testing.T) {
	r := traintest.Short("gcn")
	r.Learn(task.Named("link"))
	r.Links.Decoder, r.Links.Width, r.Batch = "distmult", 5, 64
	b, f := exported(t, filepath.Join(checkpointed(t, r, traintest.Communities(t, 3000)), train.CheckpointFile))
	var steps []nn.Step
	if err := f.JSON("equations", &steps); err != nil {
		t.Fatal(err)
	}
	if last := steps[len(steps)-1]; f.Text("decoder") != "distmult" || last.Name != "decoder" || !slices.Equal(last.Tensors, []string{"decoder.weight"}) || last.In != 5 || last.Out != 1 {
		t.Errorf("%s, %+v", f.Text("decoder"), last)
	}
	file := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := trained.ReadWeighed(file, trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	var spec nn.Spec
	if err := f.JSON("model", &spec); err != nil {
		t.Fatal(err)
	}
	plain, err := nn.New(spec, 20, 5)
	if err != nil {
		t.Fatal(err)
	}
	m, err := link.Extend(plain, "distmult", 5, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := plain.Size(); len(w.Weights) != n+5 || m.Size() != n+5 || slices.Contains(w.Weights[n:], 1) {
		t.Errorf("of %d weights the last are %v, and they were 1 each before they learnt", len(w.Weights), w.Weights[n:])
	}
	raw, err := safetensors.Parse("model", b)
	if err != nil {
		t.Fatal(err)
	}
	for decoder, want := range map[string]string{"distmult": "", "sum": `{link.decoder} is "sum"`, "mlp": "decoder.0.weight"} {
		var changed bytes.Buffer
		metadata := maps.Clone(raw.Metadata())
		metadata["decoder"] = decoder
		all := checkpoint.Section{Read: func([]float32) []float32 { return w.Weights }, Params: m.Params()}
		if err := checkpoint.Write(&changed, []checkpoint.Section{all}, metadata); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, changed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := trained.ReadWeighed(file, trained.BestModel)
		if want == "" && (err != nil || !slices.Equal(again.Weights, w.Weights)) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", decoder, err, want)
		}
	}
}

// One model of a sweep is described by its own recipe.
func TestExportsOfSweeps(t *testing.T) {
	r := traintest.Short("gcn")
	first, second := r, r
	second.Rate, second.Features = 0.002, "row"
	first.Features = "row"
	r = first
	r.Sweep = []recipe.Variant{{Params: map[string]string{"lr": "a"}, Recipe: first}, {Params: map[string]string{"lr": "b"}, Recipe: second}}
	path := filepath.Join(checkpointed(t, r, traintest.Communities(t, 3000)), train.CheckpointFile)
	var b bytes.Buffer
	if err := trained.Export(&b, path, 1); err != nil {
		t.Fatal(err)
	}
	f, err := checkpoint.Parse("model", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var training recipe.Recipe
	if err := f.JSON("training", &training); err != nil || training.Rate != 0.002 || training.Sweep != nil {
		t.Errorf("%+v, %v", training, err)
	}
	if !strings.Contains(f.Text("equations"), "divided by the sum") {
		t.Error(f.Text("equations"))
	}
}

// What was exported keeps all of its words when it is exported again, and a file of an
// earlier program gets those that can be made.
func TestExportsOfExports(t *testing.T) {
	b, f := exported(t, filepath.Join(checkpointed(t, traintest.Short("sage"), traintest.Communities(t, 3000)), train.CheckpointFile))
	file := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, _ := exported(t, file); !bytes.Equal(again, b) {
		t.Error("it is another file when it is exported again")
	}
	w, err := trained.ReadWeighed(file, trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	var spec nn.Spec
	if err := f.JSON("model", &spec); err != nil {
		t.Fatal(err)
	}
	m, err := nn.New(spec, 20, 4)
	if err != nil {
		t.Fatal(err)
	}
	written := func(changes map[string]string) {
		t.Helper()
		raw, err := safetensors.Parse("model", b)
		if err != nil {
			t.Fatal(err)
		}
		metadata := maps.Clone(raw.Metadata())
		maps.Copy(metadata, changes)
		maps.DeleteFunc(metadata, func(_, value string) bool { return value == "" })
		var out bytes.Buffer
		all := checkpoint.Section{Read: func([]float32) []float32 { return w.Weights }, Params: m.Params()}
		if err := checkpoint.Write(&out, []checkpoint.Section{all}, metadata); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written(map[string]string{"class_names": `["a","b","c","d"]`})
	if _, named := exported(t, file); named.Text("class_names") != `["a","b","c","d"]` {
		t.Errorf("the names of classes became %s", named.Text("class_names"))
	}
	written(map[string]string{"training": "", "class_names": "", "equations": "", "order": "", "version": ""})
	if _, of := exported(t, file); of.Text("training") != "" || of.Text("class_names") != f.Text("class_names") || of.Text("equations") != f.Text("equations") {
		t.Errorf("of an earlier file: %s, %s", of.Text("training"), of.Text("class_names"))
	}
	for key, value := range map[string]string{"class_names": `["a","b"]`, "training": "{", "normalize_features": "auto"} {
		written(map[string]string{key: value})
		if err := trained.Export(new(bytes.Buffer), file, trained.BestModel); err == nil {
			t.Errorf("%s was taken as %s", value, key)
		}
	}
	written(map[string]string{"class_names": "a, b, c, d"})
	if err := trained.Export(new(bytes.Buffer), file, trained.BestModel); err == nil || !strings.Contains(err.Error(), "its class_names is not the JSON expected") {
		t.Error(err)
	}
}
