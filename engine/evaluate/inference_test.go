package evaluate

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/nn"
	_ "github.com/hopmesh/hopmesh/engine/nn/edgewise"
	_ "github.com/hopmesh/hopmesh/engine/nn/hgt"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// outputs runs stages of a fresh model over all vertices within some memory, which
// is a share of what the whole takes at once.
func outputs(t *testing.T, shards []*graph.Shard, spec nn.Spec, stages int, share float64, dir string) (all []float32, parts int) {
	t.Helper()
	m := setup{spec: spec, metric: task.Accuracy, dir: dir}.alone(t, shards)
	i, device := m.Inference, m.device
	i.Limit(uint64(float64(i.wholeBytes(stages)) * share))
	next := 0
	err := i.Run(t.Context(), stages, func(first int, y tensor.Matrix) error {
		if s := i.own.spans[i.own.at(first)]; first != next || (first-s.row)%chunkRows != 0 {
			t.Errorf("rows from %d on come where %d was expected", first, next)
		}
		next += y.Rows
		rows := make([]float32, y.Rows*y.Cols)
		device.Read32(rows, y)
		all = append(all, rows...)
		parts++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if next != m.data.Topology.Vertices() {
		t.Errorf("%d vertices have rows", next)
	}
	return all, parts
}

func TestInferenceInPartsIsTheWhole(t *testing.T) {
	shards := enginetest.Communities(t, 6*chunkRows)
	chunks := 0
	for _, s := range shards {
		chunks += (s.Vertices + chunkRows - 1) / chunkRows
	}
	specs := map[string]nn.Spec{}
	for _, model := range []string{"gcn", "sage", "gat", "gin", "gcnii", "resgcn", "mlp"} {
		s := nn.Defaults(model)
		s.Layers = 3
		specs[model] = s
	}
	jump := nn.Defaults("sage")
	jump.Head, jump.Jump, jump.Layers = nn.HeadLinear, nn.JumpCat, 3
	specs["jump"] = jump
	largest := nn.Defaults("sage")
	largest.Aggregator = "max"
	specs["max"] = largest
	inParts(t, shards, chunks, specs, 0.3)
}

// TestInferenceByRelationInPartsIsTheWhole is that of models that tell relations apart, whose layers
// are given the rows of a part's sources.
func TestInferenceByRelationInPartsIsTheWhole(t *testing.T) {
	specs := map[string]nn.Spec{}
	for _, model := range []string{"rgcn", "hetero:sage", "hetero:gat", "hetero:gcn", "hetero:gin", "hgt"} {
		s := nn.Defaults(model)
		s.Layers = 3
		s.Tell(4, "0,0,1,1")
		s.TellStarts("1,1,0,0")
		specs[model] = s
	}
	shards := enginetest.Cut(t, enginetest.Typed("wrote", "edited", enginetest.Back+"wrote", enginetest.Back+"edited"), 9, "")
	inParts(t, shards, len(shards), specs, 0.01) // nearly all of what the whole takes is not of rows
}

// TestInferenceAlongEdgesInParts compares one part with one for each shard, of models that compute a
// row for each edge.
func TestInferenceAlongEdgesInParts(t *testing.T) {
	shards := enginetest.Cut(t, enginetest.Described(true), 9, "")
	for _, model := range []string{"gat", "gin", "mpnn"} {
		s := nn.Defaults(model)
		s.Layers = 3
		s.TellEdges(enginetest.DescribedColumns)
		run := func(memory uint64) (all []float32, parts int) {
			m := setup{spec: s, metric: task.Accuracy, dir: t.TempDir()}.alone(t, shards)
			m.Inference.Limit(memory)
			err := m.Inference.Run(t.Context(), 3, func(_ int, y tensor.Matrix) error {
				rows := make([]float32, y.Rows*y.Cols)
				m.device.Read32(rows, y)
				all = append(all, rows...)
				parts++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return all, parts
		}
		whole, one := run(1 << 40)
		some, several := run(0)
		if one != 1 || several != len(shards) || len(whole) != len(some) {
			t.Errorf("%s: %d and %d parts", model, one, several)
		}
		for i, x := range whole {
			if math.Float32bits(x) != math.Float32bits(some[i]) {
				t.Errorf("%s: number %d is %g, and %g in parts", model, i, x, some[i])
				break
			}
		}
	}
}

// inParts compares what models compute in one part with what they do in several, to the bit. With
// some of the memory there are fewer parts than chunks.
func inParts(t *testing.T, shards []*graph.Shard, chunks int, specs map[string]nn.Spec, share float64) {
	for name, spec := range specs {
		model, err := nn.New(spec, 20, 4)
		if err != nil {
			t.Fatal(err)
		}
		for n := len(model.Stages()); n > 0; n-- {
			dir := t.TempDir()
			whole, one := outputs(t, shards, spec, n, 1, dir)
			some, several := outputs(t, shards, spec, n, share, dir)
			files, most := outputs(t, shards, spec, n, 0, dir)
			if one != 1 || several <= 1 || most < several || most != chunks || chunks < 8 {
				t.Errorf("%s: %d, %d and %d parts", name, one, several, most)
			}
			for i, x := range whole {
				if math.Float32bits(x) != math.Float32bits(some[i]) || math.Float32bits(x) != math.Float32bits(files[i]) {
					t.Errorf("%s, %d stages: number %d is %g, and %g and %g in parts", name, n, i, x, some[i], files[i])
					break
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%s leaves %v, %v", name, left, err)
			}
		}
	}
}

func TestInferenceEndsWithItsContext(t *testing.T) {
	shards := enginetest.Communities(t, 7*chunkRows/2)
	tr := setup{spec: nn.Defaults("gcn"), metric: task.Accuracy, dir: t.TempDir()}.alone(t, shards)
	for _, memory := range []uint64{1 << 40, 1} {
		tr.Limit(memory)
		ctx, end := context.WithCancelCause(t.Context())
		end(errEnough)
		if _, err := tr.evaluate(ctx); !errors.Is(err, errEnough) {
			t.Errorf("with %d bytes: %v", memory, err)
		}
		parts := 0
		err := tr.Run(t.Context(), 2, func(int, tensor.Matrix) error { parts++; return errEnough })
		if !errors.Is(err, errEnough) || parts != 1 {
			t.Errorf("with %d bytes: %v after %d parts", memory, err, parts)
		}
	}
	// Whatever ends it, the files between stages are unmapped.
	maps, err := os.ReadFile("/proc/self/maps")
	if err == nil && strings.Contains(string(maps), "/rows-") {
		t.Errorf("mapped are still:\n%s", maps)
	}
}

// A shard that can't be read is a panic, which somebody catches. No file between stages stays mapped.
func TestInferenceThatPanics(t *testing.T) {
	dir := t.TempDir()
	tr := setup{spec: nn.Defaults("sage"), metric: task.Accuracy, dir: dir}.alone(t, hubs(6*chunkRows, 100))
	tr.Limit(tr.Least())
	mapped := func() bool {
		maps, err := os.ReadFile("/proc/self/maps")
		return err == nil && strings.Contains(string(maps), dir)
	}
	for stages := range 3 {
		before := stages == 0
		func() {
			defer func() {
				if fault := recover(); fault != "a fault" {
					t.Errorf("of %d stages: %v", stages, fault)
				}
			}()
			_ = tr.Run(t.Context(), max(1, stages), func(int, tensor.Matrix) error {
				before = before || mapped()
				panic("a fault")
			})
		}()
		_, err := os.Stat("/proc/self/maps")
		if !tr.planned.inFile || err == nil && stages == 2 && !before || mapped() {
			t.Errorf("of %d stages: %+v; mapped before the fault: %v, and after it: %v", stages, tr.planned, before, mapped())
		}
	}
}

func TestAFolderThatCannotBeWrittenIsAnError(t *testing.T) {
	shards := enginetest.Communities(t, 3000)
	tr := setup{spec: nn.Defaults("gcn"), metric: task.Accuracy, dir: "/nowhere/at/all"}.alone(t, shards)
	tr.Limit(1)
	if _, err := tr.evaluate(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
