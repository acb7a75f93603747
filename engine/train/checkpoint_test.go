package train_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// checkpointed is a folder with the checkpoint of a short run.
func checkpointed(t testing.TB, r recipe.Recipe, shards []*graph.Shard) string {
	t.Helper()
	dir := t.TempDir()
	traintest.MustRun(t, r, shards, train.Options{Threads: 2, Dir: dir, Dataset: "d"})
	return dir
}

func TestACheckpointOfAnotherRunIsRefused(t *testing.T) {
	shards, others := traintest.Communities(t, 3000), traintest.Communities(t, 3001)
	dir := checkpointed(t, traintest.Short("gcn"), shards)
	path := filepath.Join(dir, train.CheckpointFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(r *recipe.Recipe, o *train.Options, s *[]*graph.Shard){
		"it is of a gcn, and this is a sage":       func(r *recipe.Recipe, _ *train.Options, _ *[]*graph.Shard) { *r = traintest.Short("sage") },
		"another model: {":                         func(r *recipe.Recipe, _ *train.Options, _ *[]*graph.Shard) { r.Model.Hidden = 13 },
		"7 for seed, and this one 8":               func(r *recipe.Recipe, _ *train.Options, _ *[]*graph.Shard) { r.Seed++ },
		"190 for batch, and this one 191":          func(r *recipe.Recipe, _ *train.Options, _ *[]*graph.Shard) { r.Batch++ },
		"[5 3] for fanouts, and":                   func(r *recipe.Recipe, _ *train.Options, _ *[]*graph.Shard) { r.Fanouts = nil },
		"with 3000 vertices, and this one has 300": func(_ *recipe.Recipe, _ *train.Options, s *[]*graph.Shard) { *s = others },
		"with another content":                     func(_ *recipe.Recipe, o *train.Options, _ *[]*graph.Shard) { o.Dataset = "e" },
	} {
		r, o, s := traintest.Short("gcn"), train.Options{Strategies: strategies.All, Threads: 2, Dir: dir, Dataset: "d", Resume: true}, shards
		change(&r, &o, &s)
		if _, err := train.Run(t.Context(), r, s, o); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "left as it is") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the checkpoint was changed: %v", err)
	}
	// What may differ.
	r := traintest.Short("gcn")
	r.Epochs, r.Rate, r.Patience = 2, 0.005, 9
	if got, all := traintest.MustRun(t, r, shards, train.Options{Threads: 2, Dir: dir, Dataset: "d", Resume: true}); len(all) != 1 || got.Last.Epoch != 2 || got.Last.Rate != 0.005 {
		t.Errorf("resumed for an epoch more: %d epochs, the last is %+v", len(all), got.Last)
	}
}

// older returns a checkpoint without the digest of its metadata, as earlier versions wrote it.
func older(t testing.TB, b []byte) []byte {
	t.Helper()
	const name = `"about_sha256":"`
	at := bytes.Index(b, []byte(name))
	if at < 0 {
		t.Fatal("it has no digest of its metadata")
	}
	b = bytes.Clone(b)
	for i := range len(name) + 64 + len(`",`) {
		b[at+i] = ' '
	}
	return b
}

// Where the last checkpoint is damaged, a run goes on from the one before, which a run that was
// killed has left; the damaged one is set aside.
func TestTheCheckpointBeforeADamagedOne(t *testing.T) {
	shards := traintest.Communities(t, 400)
	r := traintest.Short("gcn")
	r.Epochs = 1
	dir := checkpointed(t, r, shards)
	path := filepath.Join(dir, train.CheckpointFile)
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r.Epochs = 4
	_, all := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir, Dataset: "d", Resume: true})
	last, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(last, []byte(`"updates":"`)) + len(`"updates":"`)
	last[at] ^= 1 // another digit
	before := filepath.Join(dir, "before.safetensors")
	if err := errors.Join(os.WriteFile(path, last, 0o600), os.WriteFile(before, first, 0o600)); err != nil {
		t.Fatal(err)
	}
	warnings := 0
	_, again := traintest.MustRun(t, r, shards, train.Options{Threads: 1, Dir: dir, Dataset: "d", Resume: true, Damaged: func(err error, before bool) {
		if err == nil || !before {
			t.Errorf("%v, %v", err, before)
		}
		warnings++
	}})
	if traintest.Hashes(again) != traintest.Hashes(all) || warnings != 1 {
		t.Errorf("%d warnings; %s, and not %s", warnings, traintest.Hashes(again), traintest.Hashes(all))
	}
	if aside, err := os.ReadFile(filepath.Join(dir, "damaged.safetensors")); err != nil || !bytes.Equal(aside, last) {
		t.Errorf("it was not set aside: %v", err)
	}
}

func TestADamagedCheckpointIsRefused(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	dir := checkpointed(t, traintest.Short("gcn"), shards)
	path := filepath.Join(dir, train.CheckpointFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole = older(t, whole) // else it is no more than damaged
	if !bytes.Contains(whole, []byte(`"state":"{\"epoch\":2`)) {
		t.Fatal("the state is not where it was")
	}
	for want, damage := range map[string]func(b []byte) []byte{
		"the file holds": func(b []byte) []byte { return b[:len(b)-1] },
		"cut off":        func(b []byte) []byte { return b[:100] },
		"no safetensors": func([]byte) []byte { return nil },
		"not those that": func(b []byte) []byte { b[len(b)/2+len(b)/4] ^= 0x10; return b },
		"not finite":     infinite,
		"its format is": func(b []byte) []byte {
			return bytes.Replace(b, []byte("hopmesh-checkpoint/2"), []byte("hopmesh-checkpoint/9"), 1)
		},
		"JSON expected": func(b []byte) []byte { return bytes.Replace(b, []byte(`"state":"{`), []byte(`"state":"[`), 1) },
		"has no tensor": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"layers.1.weight"`), []byte(`"layers.7.weight"`), 1)
		},
		"of another model": func(b []byte) []byte { return bytes.Replace(b, []byte("[20,12]"), []byte("[12,20]"), 1) },
		"step -1":          func(b []byte) []byte { return bytes.Replace(b, []byte(`\"step\":0,`), []byte(`\"step\":-1`), 1) },
		"for classes":      func(b []byte) []byte { return bytes.Replace(b, []byte(`"classes":"4"`), []byte(`"classes":"x"`), 1) },
		"no number up to": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"vertices":"3000"`), []byte(`"vertices":"9999999999"`), 1)
		},
		"normalize_feature": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"normalize_features":"none"`), []byte(`"normalize_features":"nine"`), 1)
		},
	} {
		b := damage(slices.Clone(whole))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := train.Run(t.Context(), traintest.Short("gcn"), shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir, Dataset: "d", Resume: true})
		if err == nil || !strings.Contains(err.Error(), "checkpoint") {
			t.Errorf("%s: %v", want, err)
		} else if !strings.Contains(err.Error(), want) && want != "step -1" && want != "no number up to" {
			t.Errorf("%s: %v", want, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(b, after) {
			t.Errorf("%s: the file was changed: %v", want, err)
		}
	}
}

// infinite makes the last number of a file infinite, and its digest fit.
func infinite(b []byte) []byte {
	start := 8 + int(binary.LittleEndian.Uint64(b))
	was := sha256.Sum256(b[start:])
	copy(b[len(b)-4:], []byte{0, 0, 0x80, 0x7f})
	now := sha256.Sum256(b[start:])
	return bytes.Replace(b, []byte(hex.EncodeToString(was[:])), []byte(hex.EncodeToString(now[:])), 1)
}

func TestExportedIsTheBestModel(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	r := traintest.Small("gat")
	dir := t.TempDir()
	result, all := traintest.MustRun(t, r, shards, train.Options{Threads: 2, Dir: dir})
	path := filepath.Join(t.TempDir(), "model.safetensors")
	var file bytes.Buffer
	if err := trained.Export(&file, filepath.Join(dir, train.CheckpointFile), trained.BestModel); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := f.Metadata()
	if m["format"] != "hopmesh-model/1" || m["features"] != "20" || m["classes"] != "4" || m["normalize_features"] != "none" || !strings.Contains(m["model"], `"model":"gat"`) {
		t.Errorf("the metadata is %v", m)
	}
	w, err := trained.ReadWeighed(path, trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	tr := traintest.Started(t, r, shards, train.Options{Threads: 1})
	tr.Run.Device.Write32(tr.Weights, w.Weights)
	if got := tr.Hash(); got != all[result.Best.Epoch-1].Hash {
		t.Errorf("the weights' hash is %s, and that of the best epoch %s", got, all[result.Best.Epoch-1].Hash)
	}
	for _, p := range []trained.PredictOptions{{}, {Embeddings: true}} {
		of, a := traintest.Predicted(t, dir, shards, train.Options{Strategies: strategies.All, Threads: 2}, p)
		exported, b := traintest.Predicted(t, path, shards, train.Options{Strategies: strategies.All, Threads: 1, Memory: 64 << 20}, p)
		if !slices.Equal(of, exported) || a.Columns != b.Columns || len(of) != 3000*a.Columns {
			t.Errorf("%+v: predictions of the checkpoint and of what was exported differ", p)
		}
	}
	if err := trained.Export(&file, path, trained.BestModel); err != nil {
		t.Errorf("what was exported can't be exported: %v", err)
	}
}

func TestPredictingRefusesAnotherDataset(t *testing.T) {
	dir := checkpointed(t, traintest.Short("gcn"), traintest.Communities(t, 3000))
	path := filepath.Join(dir, train.CheckpointFile)
	never := func(int, []float32) error { t.Error("rows are asked for"); return nil }
	begin := func(trained.Prediction) error { return nil }
	if err := trained.Predict(t.Context(), path, traintest.CoraShards(t), trained.PredictOptions{}, begin, never); err == nil || !strings.Contains(err.Error(), "reads 20 columns of features, and the dataset has 1433") {
		t.Error(err)
	}
	if err := trained.Predict(t.Context(), path, traintest.Communities(t, 3000), trained.PredictOptions{Memory: 1 << 20}, begin, never); err == nil || !strings.Contains(err.Error(), "of memory, and 1.0 MiB is") {
		t.Error(err)
	}
	mlp := traintest.Short("mlp")
	mlp.Model.Layers, mlp.Fanouts = 1, nil
	dir = checkpointed(t, mlp, traintest.Communities(t, 3000))
	if err := trained.Predict(t.Context(), filepath.Join(dir, train.CheckpointFile), traintest.Communities(t, 3000), trained.PredictOptions{Embeddings: true}, begin, never); err == nil || !strings.Contains(err.Error(), "no embeddings") {
		t.Error(err)
	}
}

func TestADivergedRunNamesWhatAndWhere(t *testing.T) {
	r := traintest.Small("gcn")
	r.Optimizer.Kind, r.Rate = "sgd", 1e36
	dir := t.TempDir()
	var reports []trained.Epoch
	_, err := train.Run(t.Context(), r, traintest.Communities(t, 3000), train.Options{Strategies: strategies.All, Threads: 1, Dir: dir, Interval: 1, Report: func(e trained.Epoch) { reports = append(reports, e) }})
	var d *trained.Diverged
	if !errors.As(err, &d) {
		t.Fatal(err)
	}
	if d.Epoch != 1 || d.Step < 2 || len(reports) > 0 || !(strings.HasPrefix(d.Where, "the weight layers.") || strings.HasPrefix(d.Where, "what layers.")) {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(err.Error(), "smaller {lr}") || !strings.Contains(err.Error(), "epoch 1, step ") {
		t.Error(err)
	}
}

// A checkpoint that is written after the update that ruins all is finite itself, and nothing
// finite comes of it: the one before is what is left.
func TestACheckpointToldAsGoodIsGood(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	reports := 0
	for _, rate := range []float64{1e30, 1e12, 1e9, 1e6} {
		for _, interval := range []time.Duration{1, time.Hour} {
			r := traintest.Small("sage")
			r.Optimizer.Kind, r.Rate, r.EvalEvery, r.Epochs = "sgd", rate, 100, 100
			dir := t.TempDir()
			_, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir, Interval: interval})
			d, ok := errors.AsType[*trained.Diverged](err)
			if !ok {
				t.Fatalf("at a rate of %g: %v", rate, err)
			}
			if d.Checkpoint == "" {
				if (d.Epoch > 1 || d.Step > 2) && interval == 1 || !strings.Contains(err.Error(), "start again with a smaller {lr}") {
					t.Error(err)
				}
				continue
			}
			reports++
			traintest.GoesOn(t, d, func(rate float64) error {
				r.Rate = rate
				_, err := train.Run(t.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dir: dir, Resume: true})
				return err
			})
		}
	}
	if reports < 2 {
		t.Errorf("%d were reported", reports)
	}
}

func TestWhatIsNotFiniteIsNamed(t *testing.T) {
	tr := traintest.Started(t, traintest.Small("gcn"), traintest.Communities(t, 3000), train.Options{Threads: 1})
	tr.Run.Batches.Begin(t.Context(), 1, 0)
	defer tr.Run.Batches.End()
	s, _, _, err := tr.Run.Batches.Next(t.Context(), tr.At.Step)
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string, x float32) {
		for _, p := range tr.Model.Params() {
			if p.Name == name {
				tr.Run.Device.Write32(tr.Weights.View(0, 1, p.Offset, 1), []float32{x})
			}
		}
	}
	set("layers.1.weight", float32(math.Inf(1)))
	if got := tr.NotFinite(s); got != "the weight layers.1.weight" {
		t.Error(got)
	}
	set("layers.1.weight", 0)
	set("layers.0.bias", math.MaxFloat32)
	set("layers.1.weight", math.MaxFloat32)
	if got := tr.NotFinite(s); got != "what layers.1 gives" {
		t.Error(got)
	}
	set("layers.0.bias", 0)
	set("layers.1.weight", 0)
	if got := tr.NotFinite(s); got != "" {
		t.Error(got)
	}
	tr.Run.Device.Write32(tr.Gradients.View(0, 1, 3, 1), []float32{float32(math.NaN())})
	if got := tr.NotFinite(s); got != "the gradient of layers.0.weight" {
		t.Error(got)
	}
}

// The last update may be the one that is too large: no further loss would tell.
func TestTheLastUpdateIsLookedAt(t *testing.T) {
	r := traintest.Short("gcn")
	r.Batch, r.Fanouts, r.Rate, r.Optimizer.Kind = 0, nil, 1e300, "sgd"
	_, err := train.Run(t.Context(), r, traintest.Communities(t, 3000), train.Options{Strategies: strategies.All, Threads: 1})
	if d, ok := errors.AsType[*trained.Diverged](err); !ok || d.Epoch != 1 || d.Step != 1 || d.Where != "the weight layers.0.weight" {
		t.Error(err)
	}
}

func TestAGradientThatOverflowsIsSeen(t *testing.T) {
	tr := traintest.Started(t, traintest.Small("gcn"), traintest.Communities(t, 3000), train.Options{Threads: 1})
	w := make([]float32, tr.Model.Size())
	for _, p := range tr.Model.Params() {
		for i := range p.Rows * p.Cols {
			switch {
			case p.Name == "layers.0.weight":
				w[p.Offset+i] = 1e-37
			case p.Name == "layers.0.bias":
				w[p.Offset+i] = 1e-35
			case p.Name == "layers.1.weight" && i%p.Cols == 0:
				w[p.Offset+i] = 3e38
			case p.Name == "layers.1.weight":
				w[p.Offset+i] = -3e38
			}
		}
	}
	tr.Run.Device.Write32(tr.Weights, w)
	tr.Run.Batches.Begin(t.Context(), 1, 0)
	defer tr.Run.Batches.End()
	s, _, _, err := tr.Run.Batches.Next(t.Context(), tr.At.Step)
	if err != nil {
		t.Fatal(err)
	}
	loss, _, err := tr.Run.Method.Step(t.Context(), tr, s, nil, 1)
	if d, ok := errors.AsType[*trained.Diverged](err); !ok || math.IsInf(loss, 0) || math.IsNaN(loss) || !strings.HasPrefix(d.Where, "the gradient of layers.0.") {
		t.Errorf("with a loss of %g: %v", loss, err)
	}
	if tr.Host = make([]float32, len(w)); tr.Hash() == "" || !slices.Equal(tr.Host, w) {
		t.Error("weights were updated with it")
	}
}

func TestWhatIsNotFiniteIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	tr := traintest.Started(t, traintest.Small("gcn"), traintest.Communities(t, 3000), train.Options{Threads: 1, Dir: dir})
	tr.Run.Device.Write32(tr.Weights.View(0, 1, 5, 1), []float32{float32(math.NaN())})
	if err := tr.Run.Save(); err != nil || !tr.Run.Checkpoints.Missing() {
		t.Errorf("saved is %+v, %v", tr.Run.Checkpoints, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("written is %v, %v", left, err)
	}
	tr.Run.Device.Write32(tr.Weights.View(0, 1, 5, 1), []float32{1})
	if err := tr.Run.Save(); err != nil || tr.Run.Checkpoints.Missing() {
		t.Errorf("saved is %+v, %v", tr.Run.Checkpoints, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != train.CheckpointFile {
		t.Errorf("written is %v, %v", left, err)
	}
}

// FuzzCheckpoint reads what may be anything. It must neither panic nor take memory
// by what the file claims.
func FuzzCheckpoint(f *testing.F) {
	shards := traintest.Communities(f, 600)
	dir := checkpointed(f, traintest.Short("gcn"), shards)
	whole, err := os.ReadFile(filepath.Join(dir, train.CheckpointFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	whole = older(f, whole) // else changes are no more than damage
	for _, change := range [][2]string{
		{`\"layers\":2`, `\"layers\":9`}, {`\"hidden\":12`, `\"hidden\":99`}, {`"features":"20"`, `"features":"99"`},
		{`"features":"20"`, `"features":"2147483647"`}, {`\"epoch\":2`, `\"epoch\":0`}, {`\"heads\":1`, `\"heads\":-`},
	} {
		f.Add(bytes.Replace(whole, []byte(change[0]), []byte(change[1]), 1))
	}
	sweep := traintest.Swept(traintest.Short("gcn"), "lr=0.01", "hidden=5", "lr=1e36 optimizer=sgd")
	whole, err = os.ReadFile(filepath.Join(checkpointed(f, sweep, shards), train.CheckpointFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	whole = older(f, whole)
	for _, change := range [][2]string{
		{`\"epoch\":2`, `\"epoch\":0`}, {`\"step\":`, `\"step\":-1`}, {`\"diverged\"`, `\"converged\"`}, {"hopmesh-sweep/2", "hopmesh-checkpoint/2"},
		{`"models":"[{`, `"models":"[{},{`}, {`\"sweep\":[`, `\"sweep\":[{},`}, {`"models.0.layers.0.weight"`, `"models.9.layers.0.weight"`},
	} {
		seed := bytes.Replace(whole, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(seed, whole) {
			f.Fatal("there is no ", change[0])
		}
		f.Add(seed)
	}
	path := filepath.Join(f.TempDir(), "checkpoint")
	var all []*train.Trainer
	for _, r := range []recipe.Recipe{traintest.Short("gcn"), sweep} {
		tr, err := train.NewTrainer(f.Context(), r, shards, train.Options{Strategies: strategies.All, Threads: 1, Dataset: "d"})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(tr.Close)
		all = append(all, tr)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for index := trained.BestModel; index < 3; index++ {
			var to bytes.Buffer
			if err := trained.Export(&to, path, index); err == nil && to.Len() == 0 {
				t.Error("nothing is exported")
			}
		}
		c, err := trained.OpenCheckpoint(path)
		if err != nil {
			return
		}
		defer c.Close()
		for _, tr := range all {
			if tr.Adopt(c) != nil {
				continue
			}
			for _, l := range tr.Learners {
				if l.At.Epoch < 1 || !l.Run.Device.Finite(l.Weights) {
					t.Errorf("adopted is %+v", l.At)
				}
			}
		}
	})
}

func TestStateSurvivesItsText(t *testing.T) {
	s := trained.State{Epoch: 3, Step: 4, Losses: 0.1 + 0.2, Best: scored(1.0/3, math.Pi), Under: trained.Epoch{Record: epoch.Record{Loss: 1e-300}}}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again trained.State
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if again.Best.Rank(recipe.Accuracy); again.Losses != s.Losses || *again.Best.Scores != *s.Best.Scores || again.Best.Eval.Score != s.Best.Eval.Score || !reflect.DeepEqual(again.Under, s.Under) {
		t.Errorf("%+v", again)
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	dir := t.TempDir()
	_, err := train.Run(ctx, traintest.Small("gcn"), traintest.Communities(t, 3000), train.Options{Strategies: strategies.All, Threads: 1, Dir: dir})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped in epoch 1 of 4") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, train.CheckpointFile)); err != nil {
		t.Error(err)
	}
}
