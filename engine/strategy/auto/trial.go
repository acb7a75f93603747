package auto

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/schedule"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A trial has strategies take turns for some steps each, from the first step of an epoch on. The
// steps count like any others, since gradients are the same. It is the part that auto has in a
// schedule, so whoever repeats the steps repeats the turns.
type trial struct {
	Tries []try `json:"tries"` // in their order; the first also trains what follows
	Steps int   `json:"steps"` // of each
	// From is the epoch with which it was meant to begin. By it a trial that is repeated since the one
	// before was interrupted is another entry of the schedule, which has no entry twice in a row.
	From int `json:"from,omitempty"`
}

// A try is a strategy, with its part of a schedule.
type try struct {
	By   string `json:"by"`
	Part []byte `json:"part,omitempty"`
}

// Limits of a trial that comes from the schedule.
const (
	mostTries = 8
	mostSteps = 1 << 10
)

// A turn has at least leastSteps. It takes up to longTurn seconds, as long as all turns together are
// no more than one part in longPart of what is left of the job. A step of some milliseconds says
// little: processors are given and taken in longer slices.
const (
	leastSteps = 8
	longTurn   = 0.25
	longPart   = 20
)

// turnSteps returns how many steps a turn has. pace is how many seconds a step takes, 0 if that is
// not known, and share is what each strategy would have of the steps that are left.
func turnSteps(pace float64, share int) int {
	if !(pace > 0) {
		return leastSteps
	}
	return int(max(leastSteps, min(math.Ceil(longTurn/pace), float64(share/longPart), mostSteps)))
}

// all returns the steps of all turns.
func (x *trial) all() int { return len(x.Tries) * x.Steps }

// entry returns the entry of a schedule that begins the trial, and why it does.
func (x *trial) entry(because string) schedule.Entry {
	return schedule.Entry{Strategy: strategy.Auto, Part: x.encode(), Why: x.words() + " " + because}
}

func (x *trial) encode() []byte {
	b, err := json.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("auto: encode a trial: %v", err)) // words and numbers always marshal
	}
	return b
}

// parseTrial reads the part of a schedule.
func parseTrial(b []byte) (*trial, error) {
	var x trial
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil || d.More() {
		return nil, errors.New("what the schedule says of strategies to try can't be read: run the same version of hopmesh on all nodes of the job")
	}
	if n := len(x.Tries); n < 2 || n > mostTries || x.Steps < 1 || x.Steps > mostSteps {
		return nil, fmt.Errorf("the schedule has %d strategies tried for %d steps each, and 2 to %d can be, for 1 to %d steps: run the same version of hopmesh on all nodes of the job", n, x.Steps, mostTries, mostSteps)
	}
	return &x, nil
}

// describe says the part in words.
func describe(part []byte) (string, error) {
	x, err := parseTrial(part)
	if err != nil {
		return "", err
	}
	return x.words(), nil
}

func (x *trial) words() string {
	var names []string
	for _, t := range x.Tries {
		names = append(names, t.By)
	}
	last := len(names) - 1
	return fmt.Sprintf("%s and %s are tried for %d steps each", strings.Join(names[:last], ", "), names[last], x.Steps)
}

// turn returns whose turn a step is, counted from the trial's first, and how many steps of that
// turn precede it. After all turns it is the first one's.
func (x *trial) turn(step int) (at, before int) {
	if at = step / x.Steps; at >= len(x.Tries) {
		return 0, step
	}
	return at, step % x.Steps
}

// epochs returns how many epochs the trial takes, of so many steps each.
func (x *trial) epochs(steps int) int { return (x.all() + steps - 1) / steps }

// A clock has the times of a trial's steps on this node.
type clock struct {
	warm  int         // steps of each turn that don't count: they were prepared during the turn before
	times [][]float64 // of each try, in seconds
}

func newClock(x *trial, warm int) *clock {
	return &clock{warm: min(warm, x.Steps-1), times: make([][]float64, len(x.Tries))}
}

// note records how long a step took.
func (c *clock) note(x *trial, step int, seconds float64) {
	if step >= x.all() {
		return
	}
	if at, before := x.turn(step); before >= c.warm {
		c.times[at] = append(c.times[at], seconds)
	}
}

// whole reports whether each turn was measured. A run that goes on amid a trial has not seen the first
// ones, on all nodes alike.
func (c *clock) whole() bool {
	return !slices.ContainsFunc(c.times, func(of []float64) bool { return len(of) == 0 })
}

// encode returns the median time of a step of each try; 0: none was measured here.
func (c *clock) encode() []byte {
	var b []byte
	for _, of := range c.times {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(median(of)))
	}
	return b
}

// readTimes parses the times of another node, of so many tries.
func readTimes(b []byte, tries int) ([]float64, error) {
	if len(b) != 8*tries {
		return nil, fmt.Errorf("sent the times of %d strategies in %d bytes: run the same version of hopmesh on all nodes of the job", tries, len(b))
	}
	all := make([]float64, tries)
	for i := range all {
		all[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		if !(all[i] >= 0) || all[i] > math.MaxUint32 {
			return nil, fmt.Errorf("says that a step took it %g s", all[i])
		}
	}
	return all, nil
}

// alike is how much longer than the fastest the first try may take and still be kept: a change
// for less would follow noise.
const alike = 1.03

// quickest returns the fastest try by the times of all nodes, and the times of the slowest node
// with each; 0 if nobody has measured it.
func quickest(nodes [][]float64) (best int, slowest []float64) {
	slowest = make([]float64, len(nodes[0]))
	for _, of := range nodes {
		for i, x := range of {
			slowest[i] = max(slowest[i], x)
		}
	}
	for i, x := range slowest {
		if x > 0 && (slowest[best] == 0 || x < slowest[best]) {
			best = i
		}
	}
	if slowest[0] > 0 && slowest[0] <= alike*slowest[best] {
		best = 0
	}
	return best, slowest
}

// verdict says in words what a trial has shown.
func (x *trial) verdict(best int, slowest []float64) string {
	var others []string
	for i, t := range x.Tries {
		switch {
		case i == best:
		case slowest[i] == 0:
			others = append(others, t.By+" could not be tried")
		default:
			others = append(others, fmt.Sprintf("%s took %s", t.By, duration(slowest[i])))
		}
	}
	if slowest[best] == 0 {
		return fmt.Sprintf("%s: no strategy could be tried", x.Tries[best].By)
	}
	return fmt.Sprintf("%s: a step took %s where it was tried, and %s", x.Tries[best].By, duration(slowest[best]), strings.Join(others, " and "))
}

// median returns the median of some times; 0: there are none.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
