package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/nn"
)

// A checkpoint is one that was read: mapped, and all but its tensors checked. It
// comes from a disk that others may write to, and is not trusted.
type checkpoint struct {
	file    *safetensors.File
	recipe  Recipe
	models  []standing // of the recipe's
	about   About      // without splits
	dataset string
	how     string // features are normalised
}

// openCheckpoint maps a checkpoint and reads what it says of itself.
func openCheckpoint(path string) (*checkpoint, error) {
	file, err := safetensors.Open(path)
	return readCheckpoint(path, file, err)
}

// parseCheckpoint is openCheckpoint of one that lies in memory.
func parseCheckpoint(name string, b []byte) (*checkpoint, error) {
	file, err := safetensors.Parse(name, b)
	return readCheckpoint(name, file, err)
}

func readCheckpoint(name string, file *safetensors.File, err error) (*checkpoint, error) {
	if err != nil {
		return nil, fmt.Errorf("the checkpoint can't be read: %w", err)
	}
	c := &checkpoint{file: file}
	if err := c.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("the checkpoint %s is not usable: %w", name, err), file.Close())
	}
	return c, nil
}

func (c *checkpoint) close() error { return c.file.Close() }

func (c *checkpoint) read() error {
	m := c.file.Metadata()
	if err := c.readModels(m); err != nil {
		return err
	}
	if err := c.about.read(m); err != nil {
		return err
	}
	c.dataset, c.how = m["dataset"], m["normalize_features"]
	if !slices.Contains(features.Hows[1:], c.how) {
		return fmt.Errorf("its metadata has %q for normalize_features", c.how)
	}
	for i := range c.models {
		s := &c.models[i].State
		if s.Epoch < 1 || s.Step < 0 || s.Falls < 0 || s.Stayed < 0 || s.Waited < 0 {
			return fmt.Errorf("it stands at step %d of epoch %d", s.Step, s.Epoch)
		}
		if s.Best != nil && s.Best.Eval == nil {
			return errors.New("its best epoch was not evaluated")
		}
	}
	return undamaged(c.file)
}

// readModels reads what there is of each model.
func (c *checkpoint) readModels(m map[string]string) (err error) {
	fields := map[string]any{"recipe": &c.recipe}
	switch m["format"] {
	case checkpointFormat:
		c.models = make([]standing, 1)
		one := &c.models[0]
		fields["state"], fields["history"] = &one.State, &one.History
		if one.Updates, err = natural(m, "updates", math.MaxUint64); err != nil {
			return err
		}
	case sweepFormat:
		fields["models"] = &c.models
	default:
		return fmt.Errorf("its format is %q and not %q", m["format"], checkpointFormat)
	}
	for name, to := range fields {
		if err := json.Unmarshal([]byte(m[name]), to); err != nil {
			return fmt.Errorf("its %s is not the JSON expected: %w", name, err)
		}
	}
	if n := len(c.recipe.Models()); n != len(c.models) {
		return fmt.Errorf("it tells of %s, and its recipe has %d", count(len(c.models), "model"), n)
	}
	return nil
}

// finished says whether there are weights of a model.
func (s *state) finished() bool { return s.Diverged == nil || s.Best != nil }

// read reads the sizes that a file is of.
func (a *About) read(metadata map[string]string) error {
	var f, classes uint64
	for _, n := range []struct {
		name string
		to   *uint64
		most uint64
	}{
		{"vertices", &a.Vertices, graph.MaxVertices}, {"edges", &a.Edges, math.MaxInt64},
		{"features", &f, graph.MaxVertices}, {"classes", &classes, graph.MaxVertices},
	} {
		var err error
		if *n.to, err = natural(metadata, n.name, n.most); err != nil {
			return err
		}
	}
	a.Features, a.Classes = int(f), int(classes)
	return nil
}

// row is the numbers of all params under a prefix, in one row, and finite.
func (c *checkpoint) row(prefix string, params []nn.Param, size int) ([]float32, error) {
	return rowOf(c.file, prefix, params, size)
}

// rowOf is the numbers of all params in one row. Nothing is allocated before the
// file is known to hold them all.
func rowOf(file *safetensors.File, prefix string, params []nn.Param, size int) ([]float32, error) {
	views := make([][]float32, len(params))
	for i, p := range params {
		numbers, shape, err := safetensors.View[float32](file, prefix+p.Name)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(shape, []int64{int64(p.Rows), int64(p.Cols)}) {
			return nil, fmt.Errorf("its tensor %q has the shape %v, and the model's is [%d %d]: it is of another model", prefix+p.Name, shape, p.Rows, p.Cols)
		}
		if !finite(numbers) {
			return nil, fmt.Errorf("its tensor %q has numbers that are not finite", prefix+p.Name)
		}
		views[i] = numbers
	}
	row := make([]float32, size)
	for i, p := range params {
		copy(row[p.Offset:], views[i])
	}
	return row, nil
}
