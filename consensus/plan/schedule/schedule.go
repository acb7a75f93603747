// Package schedule is the pure part of epoch schedules: the list of what the nodes of a job have
// agreed on, from which epoch on and why, with the rules by which it grows.
package schedule

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Limits of a schedule. All of it goes to every node with every snapshot.
const (
	// MaxEntries bounds the entries of a job. When it is reached, the oldest go: epochs that
	// far back are not trained again.
	MaxEntries = 32
	// MaxPart bounds a strategy's part of an entry, in bytes.
	MaxPart = 1 << 10
	// MaxWork bounds the digest of an assignment, in bytes.
	MaxWork = 64
)

// An Entry is how the nodes of a job share its epochs, from one epoch on until another entry
// begins. Who computes which shards is the assignment of its generation.
type Entry struct {
	From       int    `json:"from"`       // its first epoch, from 1
	Generation uint64 `json:"generation"` // the job's, in which it was agreed on
	// Work is the digest of the assignment that it was made for. With other nodes, or other
	// owners of shards, the job needs another entry.
	Work     string `json:"work"`
	Strategy string `json:"strategy"`
	// Part is what the strategy has decided beside. Only the strategy reads it.
	Part []byte `json:"part,omitempty"`
	// Rate is the learning rate before the recipe's own schedule changes it; 0: each model of
	// a sweep has its own.
	Rate float64 `json:"rate,omitempty"`
	Why  string  `json:"why,omitempty"`
}

// same reports whether two entries say the same of their epochs.
func (e *Entry) same(o *Entry) bool {
	return e.Work == o.Work && e.Strategy == o.Strategy && bytes.Equal(e.Part, o.Part) && e.Rate == o.Rate
}

// fits reports whether an entry is for an assignment and a learning rate.
func (e *Entry) fits(work string, rate float64) bool { return e.Work == work && e.Rate == rate }

// check returns an error unless an entry is within bounds. Its texts are checked elsewhere.
func (e *Entry) check(epochs int) error {
	switch {
	case e.From < 1 || e.From > epochs:
		return fmt.Errorf("an entry of the schedule is from epoch %d on, of %d", e.From, epochs)
	case e.Strategy == "":
		return fmt.Errorf("the schedule names no strategy from epoch %d on", e.From)
	case e.Work == "" || len(e.Work) > MaxWork:
		return fmt.Errorf("the schedule is for no assignment from epoch %d on", e.From)
	case len(e.Part) > MaxPart:
		return fmt.Errorf("what %s says of its epochs has %d bytes, and there may be %d", e.Strategy, len(e.Part), MaxPart)
	case !(e.Rate >= 0 && e.Rate <= math.MaxFloat64):
		return fmt.Errorf("the learning rate is %v from epoch %d on", e.Rate, e.From)
	}
	return nil
}

// A List is a schedule: entries in ascending order of their epochs, no two of the same. A List
// never changes; With returns another one.
type List []Entry

// At returns the entry that is in force in an epoch, for an assignment and a learning rate: the
// last that began until then or, if that one is for others, the next that fits. So a run that
// repeats epochs which other nodes have trained repeats them as its own nodes go on.
func (l List) At(epoch int, work string, rate float64) (Entry, bool) {
	next := l.after(epoch)
	for at := max(0, next-1); at < len(l); at++ {
		if l[at].fits(work, rate) {
			return l[at], true
		}
	}
	return Entry{}, false
}

// after returns the index of the first entry that begins after an epoch.
func (l List) after(epoch int) int {
	at, _ := slices.BinarySearchFunc(l, epoch+1, func(e Entry, from int) int { return cmp.Compare(e.From, from) })
	return at
}

// ErrDecided means that the nodes have agreed on something else already.
var ErrDecided = errors.New("the schedule of these epochs is decided already")

// With returns the schedule with another entry, which replaces all that begin with it or later.
// An entry that changes nothing is not added. Of two entries of one generation that begin with the
// same epoch the first holds, since some nodes may have followed it.
func (l List) With(e Entry, epochs int) (List, error) {
	if err := e.check(epochs); err != nil {
		return l, err
	}
	before := l.after(e.From - 1)
	if before < len(l) && l[before].From == e.From && l[before].Generation == e.Generation {
		if l[before].same(&e) {
			return l, nil
		}
		return l, fmt.Errorf("%w: from epoch %d on", ErrDecided, e.From)
	}
	kept := l[:before:before]
	if before > 0 && kept[before-1].same(&e) {
		return kept, nil
	}
	kept = append(kept, e)
	return kept[max(0, len(kept)-MaxEntries):], nil
}

// Says reports whether what is in force when an entry begins is what the entry says.
func (l List) Says(e *Entry) bool {
	at := l.after(e.From)
	return at > 0 && l[at-1].same(e)
}

// Check returns an error if no sequence of entries leads to this schedule.
func (l List) Check(epochs int) error {
	if len(l) > MaxEntries {
		return fmt.Errorf("a schedule of %d entries", len(l))
	}
	for i := range l {
		if err := l[i].check(epochs); err != nil {
			return err
		}
		if i > 0 && l[i].From <= l[i-1].From {
			return fmt.Errorf("an entry from epoch %d on after one from epoch %d on", l[i].From, l[i-1].From)
		}
	}
	return nil
}
