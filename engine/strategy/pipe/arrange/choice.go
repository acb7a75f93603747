package arrange

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// A Candidate is an arrangement of a job: how many stages and ways it has, where the
// layers are cut, and the seconds of an epoch. The ways decide what is learnt; stages and
// cuts do not.
type Candidate struct {
	Stages int   `json:"stages"`
	Ways   int   `json:"ways"`
	Cuts   []int `json:"-"` // the first of the model's stages in each stage, then their number

	// Seconds is the time of an epoch: as measured where the candidate was tried,
	// otherwise the sum of the following estimates.
	Seconds  float64 `json:"seconds"`
	Compute  float64 `json:"compute"`  // of the busiest stage
	Halo     float64 `json:"halo"`     // rows between ways
	Boundary float64 `json:"boundary"` // rows between stages
	Bubble   float64 `json:"bubble"`   // filling and draining the pipeline
	Sum      float64 `json:"sum"`      // adding up gradients
	History  float64 `json:"history"`  // a period's history, divided by its epochs
	Tried    bool    `json:"tried,omitempty"`

	Memory     uint64 `json:"memory"` // bytes of the node that needs most
	Fits       bool   `json:"fits"`   // all nodes have room
	Recomputes bool   `json:"recomputes,omitempty"`
}

// Record returns what an epoch's record has of a candidate, which may be nil.
func (c *Candidate) Record() *epoch.Layout {
	if c == nil {
		return nil
	}
	return &epoch.Layout{Stages: c.Stages, Ways: c.Ways, Seconds: c.Seconds, History: c.History}
}

// Candidates are arrangements, the best first.
type Candidates []Candidate

// MostTried bounds how many candidates are tried.
const MostTried = 3

// ToTry counts the candidates that are worth a trial: the first few that fit, or none
// where there is nothing to choose between.
func (c Candidates) ToTry() (n int) {
	for n < len(c) && n < MostTried && c[n].Fits {
		n++
	}
	if n < 2 {
		return 0
	}
	return n
}

// Choose moves the candidate that was fastest in a trial to the front. seconds are the
// measured epochs of the first candidates; a history's estimated share is added.
func (c Candidates) Choose(seconds []float64) {
	for i := range seconds {
		c[i].Seconds, c[i].Tried = seconds[i]+c[i].History, true
	}
	slices.SortStableFunc(c[:len(seconds)], func(a, b Candidate) int { return cmp.Compare(a.Seconds, b.Seconds) })
}

// The messages in which nodes agree on candidates: after those by which nodes meet, those
// ranked by formula, and after those by which they measure the network and layers, and before
// the first trial, those ranked by times.
var (
	ByFormula = exchange.Tag{Step: 6, Lane: exchange.LaneMessages}
	ByTimes   = exchange.Tag{Step: 17, Lane: exchange.LaneMessages}
)

// Agree moves the first node's best candidates to the front on all nodes. All compute the
// same candidates from the same facts, but processors of two kinds may round differently.
// units are those of the model.
func (c Candidates) Agree(ctx context.Context, at exchange.Tag, x *exchange.Exchange, names []string, units []int, tally *peer.Tally) error {
	messages, err := x.Gather(ctx, at, c.encode(), tally)
	if err != nil {
		return fmt.Errorf("agree on stages and ways: %w", err)
	}
	first, err := readCandidates(messages[0], units)
	if err != nil {
		return fmt.Errorf("node %s %w", names[0], err)
	}
	if strange := c.follow(first); strange != nil {
		return fmt.Errorf("node %s has planned %s, which this one has not considered: run the same version of hopmesh on all nodes of the job", names[0], strange)
	}
	return nil
}

// follow moves the first node's best candidates to the front, in its order. It returns
// one that this node does not have, if any.
func (c Candidates) follow(first Candidates) (strange *Candidate) {
	for i, of := range first {
		at := slices.IndexFunc(c[min(i, len(c)):], func(own Candidate) bool { return own.Stages == of.Stages && own.Ways == of.Ways })
		if at < 0 {
			return &first[i]
		}
		own := c[i+at]
		copy(c[i+1:i+at+1], c[i:i+at])
		// Whether it fits decides what is tried, so that is the first node's, too.
		own.Cuts, own.Fits, own.Recomputes = of.Cuts, of.Fits, of.Recomputes
		c[i] = own
	}
	return nil
}

// The flags of a candidate in a message.
const (
	fitsFlag = 1 << iota
	recomputesFlag
)

// encode returns the message about the best candidates.
func (c Candidates) encode() (to []byte) {
	for i := range c[:min(len(c), MostTried)] {
		of, flags := &c[i], 0
		if of.Fits {
			flags |= fitsFlag
		}
		if of.Recomputes {
			flags |= recomputesFlag
		}
		for _, n := range append([]int{of.Stages, of.Ways, flags}, of.Cuts...) {
			to = binary.LittleEndian.AppendUint32(to, uint32(n))
		}
	}
	return to
}

// readCandidates decodes such a message about a model that is divided into these units.
func readCandidates(m []byte, units []int) (all Candidates, err error) {
	of := units[len(units)-1]
	wrong := errors.New("sent a malformed plan of stages and ways: run the same version of hopmesh on all nodes of the job")
	if len(m)%4 != 0 {
		return nil, wrong
	}
	next := func() int {
		n := binary.LittleEndian.Uint32(m)
		m = m[4:]
		return int(n)
	}
	for len(m) > 0 {
		if len(m) < 3*4 {
			return nil, wrong
		}
		c := Candidate{Stages: next(), Ways: next()}
		flags := next()
		c.Fits, c.Recomputes = flags&fitsFlag != 0, flags&recomputesFlag != 0
		if c.Stages < 1 || c.Stages > of || c.Ways < 1 || flags >= 2*recomputesFlag || len(m) < 4*(c.Stages+1) {
			return nil, wrong
		}
		for range c.Stages + 1 {
			c.Cuts = append(c.Cuts, next())
		}
		if !between(c.Cuts, units) {
			return nil, wrong
		}
		all = append(all, c)
	}
	if len(all) < 1 || len(all) > MostTried {
		return nil, wrong
	}
	return all, nil
}

// between reports whether cuts ascend from the first unit to the end, between units. Two stages that
// share one would both learn its weights, and the first would lose what it has learnt.
func between(cuts, units []int) bool {
	for i, cut := range cuts {
		if _, found := slices.BinarySearch(units, cut); !found || i > 0 && cut <= cuts[i-1] {
			return false
		}
	}
	return cuts[0] == 0 && cuts[len(cuts)-1] == units[len(units)-1]
}

// Why says in a sentence why the first candidate is used, with the others that were
// measured or come next: empty where there was no other.
func (c Candidates) Why() string {
	if len(c) < 2 {
		return ""
	}
	best := &c[0]
	why := fmt.Sprintf("%s: estimated %s an epoch (%s), the least of %d arrangements", best, seconds(best.Seconds), best.parts(), len(c))
	if best.Tried {
		why = fmt.Sprintf("%s was fastest when tried: %s an epoch", best, seconds(best.Seconds))
	}
	const few = 2
	for i := range c[1:min(len(c), 1+few)] {
		o := &c[1+i]
		switch {
		case o.Tried:
			why += fmt.Sprintf(", %dx%d %s", o.Stages, o.Ways, seconds(o.Seconds))
		case !o.Fits:
			why += fmt.Sprintf("; %dx%d lacks memory", o.Stages, o.Ways)
		default:
			why += fmt.Sprintf("; %dx%d estimated %s", o.Stages, o.Ways, seconds(o.Seconds))
		}
	}
	return why
}

// String returns the arrangement in words.
func (c *Candidate) String() string {
	return fmt.Sprintf("%s x %s", counted(c.Stages, "stage"), counted(c.Ways, "way"))
}

// parts names the largest parts of an estimate.
func (c *Candidate) parts() string {
	type part struct {
		name    string
		seconds float64
	}
	all := []part{
		{"computing", c.Compute}, {"rows between ways", c.Halo}, {"rows between stages", c.Boundary},
		{"idle", c.Bubble}, {"sums", c.Sum}, {"histories", c.History},
	}
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(b.seconds, a.seconds) })
	var named []string
	for _, p := range all[:3] {
		named = append(named, p.name+" "+seconds(p.seconds))
	}
	return strings.Join(named, ", ")
}

// Table describes the best candidates in a sentence each, as many as there is room for.
func (c Candidates) Table(most int) (all []string) {
	for i := range c[:min(len(c), most)] {
		o := &c[i]
		said := fmt.Sprintf("%s: estimated computing %s, rows between ways %s, rows between stages %s, idle %s, sums %s, histories %s; %.1f MiB on the node that needs most",
			o, seconds(o.Compute), seconds(o.Halo), seconds(o.Boundary), seconds(o.Bubble), seconds(o.Sum), seconds(o.History), float64(o.Memory)/(1<<20))
		if o.Tried {
			said += fmt.Sprintf("; measured %s an epoch", seconds(o.Seconds))
		}
		if !o.Fits {
			said += ", which some node lacks"
		}
		all = append(all, said)
	}
	return all
}

// seconds returns a time as people read it.
func seconds(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.3g us", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

// counted returns a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
