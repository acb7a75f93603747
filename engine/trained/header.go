package trained

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
)

// A Header is what a checkpoint says of its run beside its rows. Snapshot.Read reads it.
type Header struct {
	Recipe   recipe.Recipe
	Dataset  string
	About    *dataset.About
	Features string // how they are normalised
	Models   []Standing
	Sweep    bool

	more map[string]any
}

// Add adds a field of its own name.
func (h *Header) Add(name string, value any) {
	if h.more == nil {
		h.more = map[string]any{}
	}
	h.more[name] = value
}

// Metadata returns the header as a checkpoint has it.
func (h *Header) Metadata() (map[string]string, error) {
	m := map[string]string{
		"format":             CheckpointFormat,
		"dataset":            h.Dataset,
		"vertices":           strconv.FormatUint(h.About.Vertices, 10),
		"edges":              strconv.FormatUint(h.About.Edges, 10),
		"features":           strconv.Itoa(h.About.Features),
		"classes":            strconv.Itoa(h.About.Classes),
		"normalize_features": h.Features,
	}
	h.Add("recipe", h.Recipe)
	if one := h.Models[0]; !h.Sweep {
		m["updates"] = strconv.FormatUint(one.Updates, 10)
		h.Add("state", one.State)
		h.Add("history", one.History)
	} else {
		m["format"] = SweepFormat
		h.Add("models", h.Models)
	}
	for name, of := range h.more {
		text, err := json.Marshal(of)
		if err != nil {
			return nil, fmt.Errorf("encode the %s of a checkpoint: %w", name, err)
		}
		m[name] = string(text)
	}
	return m, nil
}

// Rows are a checkpoint's weights of one model.
type Rows struct {
	Best []float32   // nil: no epoch was evaluated
	Last [][]float32 // the weights and the optimizer's moments; nil: the model has diverged
}

// Rows reads the weights of a model, of this size and with these moments.
func (c *Snapshot) Rows(model int, params []nn.Param, size int, moments []string) (r Rows, err error) {
	prefix := PrefixOf(model, len(c.Models))
	s := &c.Models[model].State
	if s.Best != nil {
		if r.Best, err = c.File.Row(prefix+BestPrefix, params, size); err != nil {
			return r, err
		}
	}
	names := []string{""}
	for _, name := range moments {
		names = append(names, MomentPrefix+name+".")
	}
	if s.Diverged != nil {
		names = nil
	}
	for _, name := range names {
		row, err := c.File.Row(prefix+name, params, size)
		if err != nil {
			return r, err
		}
		r.Last = append(r.Last, row)
	}
	return r, nil
}
