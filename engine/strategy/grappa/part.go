package grappa

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// planned is what grappa has in the schedule of a run: which contexts its groups train in.
type planned struct {
	Shards int    `json:"shards"`
	Groups int    `json:"groups"`
	Sweep  string `json:"sweep"` // how shards of others pass through the groups
	Swept  int    `json:"swept"` // so many at a time
	Supers int    `json:"supers"`
}

func (s *Schedule) part() []byte {
	b, err := json.Marshal(planned{s.shards, s.groups, s.sweep, s.swept, s.slots})
	if err != nil {
		panic(fmt.Sprintf("grappa: encode a schedule: %v", err)) // numbers and words always marshal
	}
	return b
}

// begins returns the part that a job begins with. The seed decides in which order shards pass
// through the groups, and not how many.
func begins(job *strategy.Settings, at strategy.Place) []byte {
	o := Of(job)
	s, err := NewSchedule(at.Shards, &o, 0)
	if err != nil {
		return nil // the nodes of the job say so
	}
	return s.part()
}

// describe says a part in words.
func describe(b []byte) (string, error) {
	var p planned
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || d.More() || p.Groups < 1 || p.Shards < p.Groups || p.Swept < 0 || p.Supers < 1 {
		return "", errors.New("what the schedule says of grappa can't be read")
	}
	text := fmt.Sprintf("%d groups of %d shards", p.Groups, p.Shards)
	if p.Swept > 0 {
		text += fmt.Sprintf(", each with %d of others at a time", p.Swept)
	}
	if p.Supers > 1 {
		text += fmt.Sprintf(", all in %d super-epochs", p.Supers)
	}
	return text, nil
}

var _, _ deal.Scheduled = (*dealer)(nil), (*settled)(nil)

// Part implements deal.Scheduled.
func (d *dealer) Part() []byte { return d.schedule.part() }

// Follow implements deal.Scheduled. Contexts follow from the settings and the dataset, so
// there are no others to follow.
func (d *dealer) Follow(b []byte) error {
	if bytes.Equal(b, d.schedule.part()) {
		return nil
	}
	return fmt.Errorf("the schedule has other contexts than grappa's settings lead to here (%.200q and %s)", b, d.schedule.part())
}
