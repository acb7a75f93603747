package trained

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// The formats named in a checkpoint's metadata: one model, or a sweep. Those before them
// differ in their epochs alone.
const (
	CheckpointFormat      = "hopmesh-checkpoint/2"
	SweepFormat           = "hopmesh-sweep/2"
	FirstCheckpointFormat = "hopmesh-checkpoint/1"
	firstSweepFormat      = "hopmesh-sweep/1"
)

// Weights are stored under the names of the model's params. These prefixes begin the
// names of other rows of that size.
const (
	BestPrefix   = "best."
	MomentPrefix = "optimizer."
)

// PrefixOf returns the prefix of a model's tensor names, among so many models.
func PrefixOf(model, of int) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf("models.%d.", model)
}

// Standing is the metadata of one model of a sweep.
type Standing struct {
	State   State   `json:"state"`
	History []Epoch `json:"history"`
	Updates uint64  `json:"updates"`
}

// Snapshot is a checkpoint whose metadata has been read and checked.
type Snapshot struct {
	File    *checkpoint.File
	Recipe  recipe.Recipe
	Models  []Standing    // of the recipe's
	About   dataset.About // without splits
	Dataset string
	how     string // features are normalised
}

// errFormat marks a checkpoint that another version has written.
var errFormat = errors.New("")

// OpenCheckpoint maps a checkpoint and reads its metadata. Of one that is damaged, the error is
// a checkpoint.ErrDamaged.
func OpenCheckpoint(path string) (*Snapshot, error) {
	file, err := checkpoint.Open(path)
	return readCheckpoint(path, file, err)
}

// ParseCheckpoint is OpenCheckpoint of a checkpoint in memory.
func ParseCheckpoint(name string, b []byte) (*Snapshot, error) {
	file, err := checkpoint.Parse(name, b)
	return readCheckpoint(name, file, err)
}

func readCheckpoint(name string, file *checkpoint.File, err error) (*Snapshot, error) {
	if err != nil {
		return nil, fmt.Errorf("the checkpoint can't be read: %w", err)
	}
	c := &Snapshot{File: file}
	if err := c.Read(); err != nil {
		if !errors.Is(err, errFormat) {
			err = checkpoint.Damage(err)
		}
		return nil, errors.Join(fmt.Errorf("the checkpoint %s is not usable: %w", name, err), file.Close())
	}
	return c, nil
}

// Close unmaps the checkpoint.
func (c *Snapshot) Close() error { return c.File.Close() }

// Fits returns an error unless a checkpoint is of a dataset, with so many steps in an epoch.
func (c *Snapshot) Fits(about *dataset.About, id string, steps int) error {
	for _, n := range []struct {
		what    string
		is, was uint64
	}{
		{"vertices", about.Vertices, c.About.Vertices}, {"edges", about.Edges, c.About.Edges},
		{"features", uint64(about.Features), uint64(c.About.Features)}, {"classes", uint64(about.Classes), uint64(c.About.Classes)},
	} {
		if n.is != n.was {
			return fmt.Errorf("it is of a dataset with %d %s, and this one has %d", n.was, n.what, n.is)
		}
	}
	if c.Dataset != id {
		return errors.New("it is of a dataset of the same size with another content: resume with the dataset that it began with")
	}
	for i := range c.Models {
		if step := c.Models[i].State.Step; step > steps {
			return fmt.Errorf("it stands at step %d of an epoch of %d", step, steps)
		}
	}
	return nil
}

// mostEpochs is more than a job of a mesh has, and few enough to go through.
const mostEpochs = 1 << 20

// Read reads and checks the metadata.
func (c *Snapshot) Read() (err error) {
	if err := c.readModels(); err != nil {
		return err
	}
	if c.About, err = readAbout(c.File); err != nil {
		return err
	}
	c.Dataset, c.how = c.File.Text("dataset"), c.File.Text("normalize_features")
	if !slices.Contains(features.Hows[1:], c.how) {
		return fmt.Errorf("its metadata has %q for normalize_features", c.how)
	}
	for i := range c.Models {
		s := &c.Models[i].State
		if s.Epoch < 1 || s.Step < 0 || s.Falls < 0 || s.Stayed < 0 || s.Waited < 0 {
			return fmt.Errorf("it stands at step %d of epoch %d", s.Step, s.Epoch)
		}
		// A super-epoch has an epoch at least, and groups go through all of them to know what they have
		// seen. A job that goes on with fewer epochs has had more.
		if most := min(s.Epoch, max(c.Recipe.Epochs+1, mostEpochs)); s.Super < 0 || s.Turned < 0 || s.Super > most || s.Turned > most || s.Halo < 0 || s.Ways < 0 {
			return fmt.Errorf("it stands in super-epoch %d from epoch %d on, with %d ways and a halo of %d", s.Super, s.Turned, s.Ways, s.Halo)
		}
		if s.Best != nil && s.Best.Eval == nil {
			return errors.New("its best epoch was not evaluated")
		}
	}
	return nil
}

// readModels reads the state of each model.
func (c *Snapshot) readModels() (err error) {
	fields := map[string]any{"recipe": &c.Recipe}
	switch format := c.File.Text("format"); format {
	case CheckpointFormat, FirstCheckpointFormat:
		c.Models = make([]Standing, 1)
		one := &c.Models[0]
		fields["state"], fields["history"] = &one.State, &one.History
		if one.Updates, err = c.File.Uint("updates", math.MaxUint64); err != nil {
			return err
		}
	case SweepFormat, firstSweepFormat:
		fields["models"] = &c.Models
	default:
		return fmt.Errorf("its format is %q and not %q%w", format, CheckpointFormat, errFormat)
	}
	for name, to := range fields {
		if err := c.File.JSON(name, to); err != nil {
			return err
		}
	}
	if n := len(c.Recipe.Models()); n != len(c.Models) {
		return fmt.Errorf("it holds %s, and its recipe has %d", recipe.Count(len(c.Models), "model"), n)
	}
	for i, r := range c.Recipe.Models() {
		s := &c.Models[i]
		s.State.Last.Rank(r.Metric)
		if s.State.Best != nil {
			s.State.Best.Rank(r.Metric)
		}
		for k := range s.History {
			s.History[k].Rank(r.Metric)
		}
	}
	return nil
}

// finished reports whether there are usable weights of a model.
func (s *State) finished() bool { return s.Diverged == nil || s.Best != nil }

// readAbout reads the sizes of the graph that a file belongs to.
func readAbout(file *checkpoint.File) (a dataset.About, err error) {
	var f, classes uint64
	for _, n := range []struct {
		name string
		to   *uint64
		most uint64
	}{
		{"vertices", &a.Vertices, graph.MaxVertices}, {"edges", &a.Edges, math.MaxInt64},
		{"features", &f, graph.MaxVertices}, {"classes", &classes, graph.MaxVertices},
	} {
		if *n.to, err = file.Uint(n.name, n.most); err != nil {
			return a, err
		}
	}
	a.Features, a.Classes = int(f), int(classes)
	return a, nil
}
