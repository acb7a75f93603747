package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// resumeOwn goes on from the last checkpoint, if there is one.
func (t *trainer) resumeOwn() error {
	path := filepath.Join(t.options.Dir, CheckpointFile)
	if _, err := os.Stat(path); t.options.Dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := t.resume(path)
	return err
}

// resume goes on from a checkpoint, and returns the digest of its numbers. Nothing of
// the run is changed before all of the checkpoint has been checked.
func (t *trainer) resume(path string) (digest [sha256.Size]byte, err error) {
	c, err := openCheckpoint(path)
	if err != nil {
		return digest, err
	}
	return t.resumeFrom(c, path)
}

// resumeFrom is resume from one that was read, and closes it.
func (t *trainer) resumeFrom(c *checkpoint, name string) (digest [sha256.Size]byte, err error) {
	digest, err = digestOf(c.file.Metadata()[digestName])
	if err == nil {
		err = t.adopt(c)
	}
	if err := errors.Join(err, c.close()); err != nil {
		return digest, fmt.Errorf("the training can't go on from the checkpoint %s, which is left as it is: %w", name, err)
	}
	return digest, nil
}

// adopt takes over what a checkpoint holds.
func (t *trainer) adopt(c *checkpoint) error {
	if err := t.fits(c); err != nil {
		return err
	}
	rows := make([][][]float32, len(t.learners))
	for i, l := range t.learners {
		var err error
		if rows[i], err = l.rows(c); err != nil {
			return err
		}
	}
	for i, l := range t.learners {
		l.adopt(&c.models[i], rows[i])
	}
	t.saved = saved{good: true, place: t.place()}
	return nil
}

// rows are what a checkpoint has of its weights: those of its best epoch, the last ones,
// the optimizer's moments, and older ones; nil: there are none.
func (t *learner) rows(c *checkpoint) ([][]float32, error) {
	s := &c.models[t.index].State
	prefix := prefixOf(t.index, len(t.learners))
	names := []string{bestPrefix, ""}
	for _, m := range t.optimizer.Moments() {
		names = append(names, momentPrefix+m.Name+".")
	}
	rows := make([][]float32, len(names))
	for i, name := range names {
		if name == bestPrefix && s.Best == nil || name != bestPrefix && s.Diverged != nil {
			continue
		}
		var err error
		if rows[i], err = c.row(prefix+name, t.model.Params(), t.model.Size()); err != nil {
			return nil, err
		}
	}
	if t.remembers() {
		early, err := t.readEarly(c)
		if err != nil {
			return nil, err
		}
		rows = append(rows, early)
	}
	before, err := t.older.read(c, s.Step, t.model.Size())
	return append(rows, before...), err
}

// adopt takes over what a checkpoint says of the model.
func (t *learner) adopt(s *standing, rows [][]float32) {
	t.at, t.history = s.State, s.History
	t.at.Early = t.recipe.Patience > 0 && t.at.Waited >= t.recipe.Patience
	t.best = append(t.best[:0], rows[0]...)
	t.optimizer.SetSteps(s.Updates)
	if t.at.Diverged != nil {
		return // its weights are nothing that is gone on from
	}
	t.device.Write32(t.weights, rows[1])
	rows = rows[2:]
	for i, m := range t.optimizer.Moments() {
		t.device.Write32(m.Row, rows[i])
	}
	rows = rows[len(t.optimizer.Moments()):]
	if t.remembers() {
		t.piped.early, rows = rows[0], rows[1:]
	}
	t.older.write(rows, s.State.Step)
}

// fits says what keeps a checkpoint from being one of this run.
func (t *trainer) fits(c *checkpoint) error {
	if err := sameSweep(t.recipe, c.recipe); err != nil {
		return err
	}
	about := t.data.about
	for _, n := range []struct {
		what           string
		is, checkpoint uint64
	}{
		{"vertices", about.Vertices, c.about.Vertices}, {"edges", about.Edges, c.about.Edges},
		{"features", uint64(about.Features), uint64(c.about.Features)}, {"classes", uint64(about.Classes), uint64(c.about.Classes)},
	} {
		if n.is != n.checkpoint {
			return fmt.Errorf("it is of a dataset with %d %s, and this one has %d", n.checkpoint, n.what, n.is)
		}
	}
	if c.dataset != t.options.Dataset {
		return errors.New("it is of a dataset of the same size with another content: resume with the dataset that it began with")
	}
	size := t.recipe.Batch
	if size == 0 {
		size = len(t.data.training)
	}
	steps := (len(t.data.training) + size - 1) / size
	for i := range c.models {
		if step := c.models[i].State.Step; step > steps {
			return fmt.Errorf("it stands at step %d of an epoch of %d", step, steps)
		}
	}
	return nil
}

// sameSweep is sameRecipe of each model.
func sameSweep(now, was Recipe) error {
	if len(now.Sweep) != len(was.Sweep) {
		return fmt.Errorf("it is of %s, and this is of %d", count(max(1, len(was.Sweep)), "model"), max(1, len(now.Sweep)))
	}
	for i := range now.Sweep {
		if err := sameRecipe(now.Sweep[i].Recipe, was.Sweep[i].Recipe); err != nil {
			return fmt.Errorf("model %d: %w", i, err)
		}
	}
	now.Sweep, was.Sweep = nil, nil
	return sameRecipe(now, was)
}

// sameRecipe says what differs in two recipes, but for what may: how long training
// goes on and at which rate, and how nodes share it as long as they add up alike.
func sameRecipe(now, was Recipe) error {
	if now.Sharing.Deterministic == was.Sharing.Deterministic && now.Sharing.Leap.SyncEvery == was.Sharing.Leap.SyncEvery && now.Sharing.P3.Inflight == was.Sharing.P3.Inflight && sameIsolation(&now.Sharing, &was.Sharing) && samePipeline(&now.Sharing, &was.Sharing) {
		now.Sharing = was.Sharing
	}
	now.Epochs, now.Patience, now.Rate, now.Schedule = was.Epochs, was.Patience, was.Rate, was.Schedule
	if len(now.Fanouts) == 0 && len(was.Fanouts) == 0 {
		now.Fanouts = was.Fanouts // none, and none that was written down
	}
	if now.Model.Model != was.Model.Model {
		return fmt.Errorf("it is of a %s, and this is a %s", was.Model.Model, now.Model.Model)
	}
	if reflect.DeepEqual(now, was) {
		return nil
	}
	a, b := reflect.ValueOf(now), reflect.ValueOf(was)
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		if reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			continue
		}
		if a.Field(i).Kind() != reflect.Struct {
			return fmt.Errorf("its recipe has %v for %s, and this one %v", b.Field(i), name, a.Field(i))
		}
		return fmt.Errorf("its recipe has another %s: %s, and this one %s", name, text(b.Field(i)), text(a.Field(i)))
	}
	return nil
}

func text(v reflect.Value) string {
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// digestOf reads a digest as metadata has it.
func digestOf(text string) (d [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(d) {
		return d, fmt.Errorf("%q is no digest", text)
	}
	copy(d[:], b)
	return d, nil
}

// natural reads a number of the metadata.
func natural(metadata map[string]string, name string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(metadata[name], 10, 64)
	if err != nil || n > most {
		return 0, fmt.Errorf("its metadata has %q for %s, which is no number up to %d", metadata[name], name, most)
	}
	return n, nil
}

// modelOf makes the model that a file's weights are of.
func modelOf(spec nn.Spec, about About) (*nn.Model, error) {
	m, err := nn.New(spec, about.Features, about.Classes)
	if err != nil {
		return nil, fmt.Errorf("its model can't be: %w", err)
	}
	return m, nil
}
