package train

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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// checkpointed is a folder with the checkpoint of a short run.
func checkpointed(t testing.TB, r Recipe, shards []*graph.Shard) string {
	t.Helper()
	dir := t.TempDir()
	mustRun(t, r, shards, Options{Threads: 2, Dir: dir, Dataset: "d"})
	return dir
}

func short(model string) Recipe {
	r := small(model)
	r.Epochs = 1
	return r
}

func TestACheckpointOfAnotherRunIsRefused(t *testing.T) {
	shards, others := communities(t, 3000), communities(t, 3001)
	dir := checkpointed(t, short("gcn"), shards)
	path := filepath.Join(dir, CheckpointFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(r *Recipe, o *Options, s *[]*graph.Shard){
		"it is of a gcn, and this is a sage":       func(r *Recipe, _ *Options, _ *[]*graph.Shard) { *r = short("sage") },
		"another model: {":                         func(r *Recipe, _ *Options, _ *[]*graph.Shard) { r.Model.Hidden = 13 },
		"7 for seed, and this one 8":               func(r *Recipe, _ *Options, _ *[]*graph.Shard) { r.Seed++ },
		"190 for batch, and this one 191":          func(r *Recipe, _ *Options, _ *[]*graph.Shard) { r.Batch++ },
		"[5 3] for fanouts, and":                   func(r *Recipe, _ *Options, _ *[]*graph.Shard) { r.Fanouts = nil },
		"with 3000 vertices, and this one has 300": func(_ *Recipe, _ *Options, s *[]*graph.Shard) { *s = others },
		"with another content":                     func(_ *Recipe, o *Options, _ *[]*graph.Shard) { o.Dataset = "e" },
	} {
		r, o, s := short("gcn"), Options{Threads: 2, Dir: dir, Dataset: "d", Resume: true}, shards
		change(&r, &o, &s)
		if _, err := Run(t.Context(), r, s, o); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "left as it is") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the checkpoint was changed: %v", err)
	}
	// What may differ.
	r := short("gcn")
	r.Epochs, r.Rate, r.Patience = 2, 0.005, 9
	if got, all := mustRun(t, r, shards, Options{Threads: 2, Dir: dir, Dataset: "d", Resume: true}); len(all) != 1 || got.Last.Epoch != 2 || got.Last.Rate != 0.005 {
		t.Errorf("resumed for an epoch more: %d epochs, the last is %+v", len(all), got.Last)
	}
}

func TestADamagedCheckpointIsRefused(t *testing.T) {
	shards := communities(t, 3000)
	dir := checkpointed(t, short("gcn"), shards)
	path := filepath.Join(dir, CheckpointFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
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
			return bytes.Replace(b, []byte("hopmesh-checkpoint/1"), []byte("hopmesh-checkpoint/9"), 1)
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
		_, err := Run(t.Context(), short("gcn"), shards, Options{Threads: 1, Dir: dir, Dataset: "d", Resume: true})
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
	shards := communities(t, 3000)
	r := small("gat")
	dir := t.TempDir()
	result, all := mustRun(t, r, shards, Options{Threads: 2, Dir: dir})
	path := filepath.Join(t.TempDir(), "model.safetensors")
	var file bytes.Buffer
	if err := Export(&file, filepath.Join(dir, CheckpointFile), BestModel); err != nil {
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
	w, err := readWeighed(path, BestModel)
	if err != nil {
		t.Fatal(err)
	}
	tr := started(t, r, shards, Options{Threads: 1})
	tr.device.Write32(tr.weights, w.weights)
	if got := tr.hash(); got != all[result.Best.Epoch-1].Hash {
		t.Errorf("the weights' hash is %s, and that of the best epoch %s", got, all[result.Best.Epoch-1].Hash)
	}
	for _, p := range []PredictOptions{{}, {Embeddings: true}} {
		of, a := predicted(t, dir, shards, Options{Threads: 2}, p)
		exported, b := predicted(t, path, shards, Options{Threads: 1, Memory: 64 << 20}, p)
		if !slices.Equal(of, exported) || a.Columns != b.Columns || len(of) != 3000*a.Columns {
			t.Errorf("%+v: predictions of the checkpoint and of what was exported differ", p)
		}
	}
	if err := Export(&file, path, BestModel); err != nil {
		t.Errorf("what was exported can't be exported: %v", err)
	}
}

func TestPredictingRefusesAnotherDataset(t *testing.T) {
	dir := checkpointed(t, short("gcn"), communities(t, 3000))
	path := filepath.Join(dir, CheckpointFile)
	never := func(int, []float32) error { t.Error("rows are told"); return nil }
	begin := func(Prediction) error { return nil }
	if err := Predict(t.Context(), path, coraShards(t), Options{}, PredictOptions{}, begin, never); err == nil || !strings.Contains(err.Error(), "takes 20 features, and the dataset has 1433") {
		t.Error(err)
	}
	if err := Predict(t.Context(), path, communities(t, 3000), Options{Memory: 1 << 20}, PredictOptions{}, begin, never); err == nil || !strings.Contains(err.Error(), "of memory, and 1.0 MiB is") {
		t.Error(err)
	}
	mlp := short("mlp")
	mlp.Model.Layers, mlp.Fanouts = 1, nil
	dir = checkpointed(t, mlp, communities(t, 3000))
	if err := Predict(t.Context(), filepath.Join(dir, CheckpointFile), communities(t, 3000), Options{}, PredictOptions{Embeddings: true}, begin, never); err == nil || !strings.Contains(err.Error(), "no embeddings") {
		t.Error(err)
	}
}

func TestADivergedRunNamesWhatAndWhere(t *testing.T) {
	r := small("gcn")
	r.Optimizer.Kind, r.Rate = "sgd", 1e36
	dir := t.TempDir()
	var told []Epoch
	_, err := Run(t.Context(), r, communities(t, 3000), Options{Threads: 1, Dir: dir, Interval: 1, Report: func(e Epoch) { told = append(told, e) }})
	var d *Diverged
	if !errors.As(err, &d) {
		t.Fatal(err)
	}
	if d.Epoch != 1 || d.Step < 2 || len(told) > 0 || !(strings.HasPrefix(d.Where, "the weight layers.") || strings.HasPrefix(d.Where, "what layers.")) {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(err.Error(), "smaller --lr") || !strings.Contains(err.Error(), "epoch 1, step ") {
		t.Error(err)
	}
}

// goesOn fails the test unless what a diverged run tells of as good is so: it is there, its
// numbers are finite, and with a smaller rate at least a step is made from it.
func goesOn(t *testing.T, d *Diverged, again func(rate float64) error) {
	t.Helper()
	c, err := openCheckpoint(d.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if at := c.models[0].State; at.Epoch != d.CheckpointEpoch || at.Step != d.CheckpointStep || !strings.Contains(d.Error(), d.Checkpoint) {
		t.Errorf("the checkpoint stands at epoch %d, step %d; %v", at.Epoch, at.Step, d)
	}
	for _, tensor := range c.file.Tensors() {
		numbers, _, err := safetensors.View[float32](c.file, tensor.Name)
		if err != nil || !finite(numbers) {
			t.Errorf("%s of the checkpoint is not finite, %v", tensor.Name, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(d.Checkpoint)); err != nil || len(left) != 1 {
		t.Errorf("left is %v, %v", left, err)
	}
	if later, ok := errors.AsType[*Diverged](again(1e-9)); ok && later.Epoch == d.CheckpointEpoch && later.Step <= d.CheckpointStep+1 {
		t.Errorf("%v; and then %v", d, later)
	}
}

// A checkpoint that is written after the update that ruins all is finite itself, and nothing
// finite comes of it: the one before is what is left.
func TestACheckpointToldAsGoodIsGood(t *testing.T) {
	shards := communities(t, 3000)
	told := 0
	for _, rate := range []float64{1e30, 1e12, 1e9, 1e6} {
		for _, interval := range []time.Duration{1, time.Hour} {
			r := small("sage")
			r.Optimizer.Kind, r.Rate, r.EvalEvery, r.Epochs = "sgd", rate, 100, 100
			dir := t.TempDir()
			_, err := Run(t.Context(), r, shards, Options{Threads: 1, Dir: dir, Interval: interval})
			d, ok := errors.AsType[*Diverged](err)
			if !ok {
				t.Fatalf("at a rate of %g: %v", rate, err)
			}
			if d.Checkpoint == "" {
				if (d.Epoch > 1 || d.Step > 2) && interval == 1 || !strings.Contains(err.Error(), "start again with a smaller --lr") {
					t.Error(err)
				}
				continue
			}
			told++
			goesOn(t, d, func(rate float64) error {
				r.Rate = rate
				_, err := Run(t.Context(), r, shards, Options{Threads: 1, Dir: dir, Resume: true})
				return err
			})
		}
	}
	if told < 2 {
		t.Errorf("%d are told of", told)
	}
}

func TestWhatIsNotFiniteIsNamed(t *testing.T) {
	tr := started(t, small("gcn"), communities(t, 3000), Options{Threads: 1})
	tr.batches.begin(t.Context(), 1, 0)
	defer tr.batches.end()
	s, _, err := tr.batches.next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string, x float32) {
		for _, p := range tr.model.Params() {
			if p.Name == name {
				tr.device.Write32(tr.weights.View(0, 1, p.Offset, 1), []float32{x})
			}
		}
	}
	set("layers.1.weight", float32(math.Inf(1)))
	if got := tr.notFinite(s); got != "the weight layers.1.weight" {
		t.Error(got)
	}
	set("layers.1.weight", 0)
	set("layers.0.bias", math.MaxFloat32)
	set("layers.1.weight", math.MaxFloat32)
	if got := tr.notFinite(s); got != "what layers.1 gives" {
		t.Error(got)
	}
	set("layers.0.bias", 0)
	set("layers.1.weight", 0)
	if got := tr.notFinite(s); got != "" {
		t.Error(got)
	}
	tr.device.Write32(tr.gradients.View(0, 1, 3, 1), []float32{float32(math.NaN())})
	if got := tr.notFinite(s); got != "the gradient of layers.0.weight" {
		t.Error(got)
	}
}

// The last update may be the one that is too large: no further loss would tell.
func TestTheLastUpdateIsLookedAt(t *testing.T) {
	r := short("gcn")
	r.Batch, r.Fanouts, r.Rate, r.Optimizer.Kind = 0, nil, 1e300, "sgd"
	_, err := Run(t.Context(), r, communities(t, 3000), Options{Threads: 1})
	if d, ok := errors.AsType[*Diverged](err); !ok || d.Epoch != 1 || d.Step != 1 || d.Where != "the weight layers.0.weight" {
		t.Error(err)
	}
}

func TestAGradientThatOverflowsIsSeen(t *testing.T) {
	tr := started(t, small("gcn"), communities(t, 3000), Options{Threads: 1})
	w := make([]float32, tr.model.Size())
	for _, p := range tr.model.Params() {
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
	tr.device.Write32(tr.weights, w)
	tr.batches.begin(t.Context(), 1, 0)
	defer tr.batches.end()
	s, _, err := tr.batches.next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loss, _, err := tr.step(t.Context(), s, 1)
	if d, ok := errors.AsType[*Diverged](err); !ok || math.IsInf(loss, 0) || math.IsNaN(loss) || !strings.HasPrefix(d.Where, "the gradient of layers.0.") {
		t.Errorf("with a loss of %g: %v", loss, err)
	}
	if tr.host = make([]float32, len(w)); tr.hash() == "" || !slices.Equal(tr.host, w) {
		t.Error("weights were updated with it")
	}
}

func TestWhatIsNotFiniteIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	tr := started(t, small("gcn"), communities(t, 3000), Options{Threads: 1, Dir: dir})
	tr.device.Write32(tr.weights.View(0, 1, 5, 1), []float32{float32(math.NaN())})
	if err := tr.save(); err != nil || tr.saved.good {
		t.Errorf("saved is %+v, %v", tr.saved, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("written is %v, %v", left, err)
	}
	tr.device.Write32(tr.weights.View(0, 1, 5, 1), []float32{1})
	if err := tr.save(); err != nil || !tr.saved.good {
		t.Errorf("saved is %+v, %v", tr.saved, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != CheckpointFile {
		t.Errorf("written is %v, %v", left, err)
	}
}

// FuzzCheckpoint reads what may be anything. It must neither panic nor take memory
// by what the file claims.
func FuzzCheckpoint(f *testing.F) {
	shards := communities(f, 600)
	dir := checkpointed(f, short("gcn"), shards)
	whole, err := os.ReadFile(filepath.Join(dir, CheckpointFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	for _, change := range [][2]string{
		{`\"layers\":2`, `\"layers\":9`}, {`\"hidden\":12`, `\"hidden\":99`}, {`"features":"20"`, `"features":"99"`},
		{`"features":"20"`, `"features":"2147483647"`}, {`\"epoch\":2`, `\"epoch\":0`}, {`\"heads\":1`, `\"heads\":-`},
	} {
		f.Add(bytes.Replace(whole, []byte(change[0]), []byte(change[1]), 1))
	}
	sweep := swept(short("gcn"), "lr=0.01", "hidden=5", "lr=1e36 optimizer=sgd")
	whole, err = os.ReadFile(filepath.Join(checkpointed(f, sweep, shards), CheckpointFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for _, change := range [][2]string{
		{`\"epoch\":2`, `\"epoch\":0`}, {`\"step\":`, `\"step\":-1`}, {`\"diverged\"`, `\"converged\"`}, {"hopmesh-sweep/1", "hopmesh-checkpoint/1"},
		{`"models":"[{`, `"models":"[{},{`}, {`\"sweep\":[`, `\"sweep\":[{},`}, {`"models.0.layers.0.weight"`, `"models.9.layers.0.weight"`},
	} {
		seed := bytes.Replace(whole, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(seed, whole) {
			f.Fatal("there is no ", change[0])
		}
		f.Add(seed)
	}
	path := filepath.Join(f.TempDir(), "checkpoint")
	var all []*trainer
	for _, r := range []Recipe{short("gcn"), sweep} {
		tr, err := newTrainer(f.Context(), r, shards, Options{Threads: 1, Dataset: "d"})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(tr.close)
		all = append(all, tr)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for index := BestModel; index < 3; index++ {
			var to bytes.Buffer
			if err := Export(&to, path, index); err == nil && to.Len() == 0 {
				t.Error("nothing is exported")
			}
		}
		c, err := openCheckpoint(path)
		if err != nil {
			return
		}
		defer c.close()
		for _, tr := range all {
			if tr.adopt(c) != nil {
				continue
			}
			for _, l := range tr.learners {
				if l.at.Epoch < 1 || !l.device.Finite(l.weights) {
					t.Errorf("adopted is %+v", l.at)
				}
			}
		}
	})
}

func TestStateSurvivesItsText(t *testing.T) {
	s := state{Epoch: 3, Step: 4, Losses: 0.1 + 0.2, Best: judged(1.0/3, math.Pi), Under: Epoch{Loss: 1e-300}}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again state
	if err := json.Unmarshal(text, &again); err != nil || again.Losses != s.Losses || *again.Best.Eval != *s.Best.Eval || again.Under != s.Under {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	dir := t.TempDir()
	_, err := Run(ctx, small("gcn"), communities(t, 3000), Options{Threads: 1, Dir: dir})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped in epoch 1 of 4") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, CheckpointFile)); err != nil {
		t.Error(err)
	}
}
