package leap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A part is what leap has in a schedule. Who computes which seed vertices follows from it, and
// from the assignment of shards.
type part struct {
	Slots  int  `json:"slots"`            // of a step; 0: models stay
	Frozen bool `json:"frozen,omitempty"` // for good
	// Best is the seconds of an epoch with the fastest slots so far, from which a search goes on.
	Best float64 `json:"best,omitempty"`
}

func (p part) encode() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("leap: encode a schedule: %v", err)) // numbers that are finite always marshal
	}
	return b
}

// parse reads a part of so many nodes' schedule; 0: it is not known how many there are.
func parse(b []byte, nodes int) (p part, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || d.More() {
		return p, errors.New("what the schedule says of leap can't be read")
	}
	if p.Slots < 0 || nodes > 0 && p.Slots > nodes || !(p.Best >= 0 && p.Best <= math.MaxFloat64) {
		return p, fmt.Errorf("the schedule has leap train in %d slots on %d nodes, in %v s", p.Slots, nodes, p.Best)
	}
	return p, nil
}

// travels reports whether models travel.
func (s *Settings) travels() bool {
	if s.Mode == strategy.Auto {
		return s.SyncEvery > 1 || s.Merge != strategy.Auto
	}
	return s.Mode == migrates
}

// begins returns the part that a job begins with.
func begins(job *strategy.Settings, at strategy.Place) []byte {
	s := Of(job)
	if !s.travels() {
		return part{}.encode()
	}
	t := s.tuner(at.Nodes, 0)
	return t.part().encode()
}

// describe says a part in words.
func describe(b []byte) (string, error) {
	p, err := parse(b, 0)
	switch {
	case err != nil:
		return "", err
	case p.Slots == 0:
		return "models stay", nil
	case p.Slots == 1:
		return "models travel in 1 slot", nil
	case p.Frozen:
		return fmt.Sprintf("models travel in %d slots", p.Slots), nil
	}
	return fmt.Sprintf("models travel in %d slots, in fewer if that is faster", p.Slots), nil
}

func (t *tuner) part() part { return part{Slots: t.Slots, Frozen: t.Frozen, Best: t.Best} }

// follow sets the slots of the next epochs.
func (t *tuner) follow(b []byte) error {
	p, err := parse(b, t.Nodes)
	if err != nil {
		return err
	}
	if p.Slots == 0 {
		return errors.New("the schedule has the models of leap stay, and this job has them travel")
	}
	if p != t.part() {
		t.Slots, t.Frozen, t.Best, t.Seen = p.Slots, p.Frozen, p.Best, [2]float64{}
	}
	return nil
}

var _, _ deal.Scheduled = (*migration)(nil), (*stay)(nil)

// Part implements deal.Scheduled.
func (d *migration) Part() []byte { return d.tuner.part().encode() }

// Follow implements deal.Scheduled.
func (d *migration) Follow(b []byte) error { return d.tuner.follow(b) }

// Part implements deal.Scheduled.
func (*stay) Part() []byte { return part{}.encode() }

// Follow implements deal.Scheduled.
func (d *stay) Follow(b []byte) error {
	p, err := parse(b, d.layout.Nodes)
	if err == nil && p.Slots > 0 {
		return fmt.Errorf("the schedule has the models of leap travel in %d slots, and this job has them stay", p.Slots)
	}
	return err
}
