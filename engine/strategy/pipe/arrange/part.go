package arrange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// A part is what pipe and graph have in a schedule: the arrangement of a job.
type part struct {
	Stages     int   `json:"stages"`
	Ways       int   `json:"ways"`
	Cuts       []int `json:"cuts"`
	Recomputes bool  `json:"recomputes,omitempty"`
}

// Part returns the first candidate as a schedule has it.
func (c Candidates) Part() []byte {
	of := &c[0]
	b, err := json.Marshal(part{of.Stages, of.Ways, of.Cuts, of.Recomputes})
	if err != nil {
		panic(fmt.Sprintf("arrange: encode a schedule: %v", err)) // whole numbers always marshal
	}
	return b
}

// parse reads a part, of a model of any number of stages.
func parse(b []byte) (p part, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || d.More() {
		return p, errors.New("what the schedule says of stages and ways can't be read")
	}
	if p.Stages < 1 || p.Ways < 1 || len(p.Cuts) != p.Stages+1 || p.Cuts[0] != 0 || !slices.IsSorted(p.Cuts) || len(slices.Compact(slices.Clone(p.Cuts))) != len(p.Cuts) {
		return p, fmt.Errorf("the schedule has %d stages of %d ways, cut at %v", p.Stages, p.Ways, p.Cuts)
	}
	return p, nil
}

// Follow moves the arrangement of a schedule to the front. units are those of the model.
func (c Candidates) Follow(b []byte, units []int) error {
	p, err := parse(b)
	if err != nil {
		return err
	}
	own := slices.IndexFunc(c, func(own Candidate) bool { return own.Stages == p.Stages && own.Ways == p.Ways })
	if own < 0 || !between(p.Cuts, units) {
		return fmt.Errorf("the schedule has %dx%d stages and ways, cut at %v, which this node has not considered: run the same version of hopmesh on all nodes of the job", p.Stages, p.Ways, p.Cuts)
	}
	first := c[own]
	first.Cuts, first.Recomputes = p.Cuts, p.Recomputes
	copy(c[1:own+1], c[:own])
	c[0] = first
	return nil
}

// Describe says in words what a schedule has.
func Describe(b []byte) (string, error) {
	p, err := parse(b)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%d stages of %d ways", p.Stages, p.Ways)
	switch {
	case p.Stages == 1 && p.Ways == 1:
		text = "1 stage of 1 way"
	case p.Stages == 1:
		text = fmt.Sprintf("1 stage of %d ways", p.Ways)
	case p.Ways == 1:
		text = fmt.Sprintf("%d stages of 1 way", p.Stages)
	}
	if p.Stages > 1 {
		text += fmt.Sprintf(", cut at the model's parts %v", p.Cuts[1:p.Stages])
	}
	if p.Recomputes {
		text += ", activations computed again"
	}
	return text, nil
}
