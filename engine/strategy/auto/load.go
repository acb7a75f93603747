package auto

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A Load is the work of one node in some steps as a strategy deals them: sums over
// these steps.
type Load struct {
	Roots uint64
	// Rows are the computed rows: the sources of all blocks, or the roots where there
	// are none.
	Rows uint64
	// Local and Remote are rows of features, as gather counts them. Cached rows of
	// other nodes are in neither.
	Local, Remote uint64
	Topology      uint64 // bytes of questions for neighbours, and of their answers
	// Inputs and First are the sources and targets of the outermost blocks, Edges theirs.
	Inputs, First, Edges uint64
	Slots                uint64
	// Keeps are how many rows of other nodes stay once they have come, and Far how many there are.
	// They are no sums.
	Keeps, Far uint64
}

// features returns the bytes of rows that come in a step, and those that come once, in all epochs
// together, and stay. Of rows that are drawn so often, so many are drawn at least once.
func (l *Load) features(f *facts, looks float64) (each, once float64) {
	each = float64(l.Remote) * f.row / looks
	if l.Keeps == 0 || f.once || f.row <= 0 {
		return each, 0
	}
	share, all := float64(l.Keeps)/float64(l.Far), float64(l.Far)*f.row
	drawn := each * float64(f.steps) * float64(max(1, f.epochs))
	return each * (1 - share), share * all * -math.Expm1(-drawn/all)
}

// mostCounted is more than any count can be.
const mostCounted = 1 << 48

func (l *Load) check() error {
	for _, n := range []uint64{l.Roots, l.Rows, l.Local, l.Remote, l.Topology, l.Inputs, l.First, l.Edges, l.Slots, l.Keeps, l.Far} {
		if n > mostCounted {
			return fmt.Errorf("counts %d of something in a few steps", n)
		}
	}
	if l.Keeps > l.Far {
		return fmt.Errorf("keeps %d rows of %d", l.Keeps, l.Far)
	}
	return nil
}

// A census is a node's message on what it has counted.
type census struct {
	Steps uint64  // that were counted
	Row   float64 // average bytes of a local row of features; 0: there are none
	Room  bool    // for columns of features
	Loads []Load  // of each candidate
}

// head is the part of a census of a fixed size.
type head struct {
	Steps uint64
	Row   float64
	Room  bool
}

func (c *census) encode() ([]byte, error) {
	to, err := binary.Append(nil, binary.LittleEndian, head{c.Steps, c.Row, c.Room})
	if err == nil {
		to, err = binary.Append(to, binary.LittleEndian, c.Loads)
	}
	return to, err
}

// readCensus parses the census of another node, of so many candidates.
func readCensus(m []byte, candidates int) (census, error) {
	var h head
	c := census{Loads: make([]Load, candidates)}
	want := binary.Size(h) + binary.Size(c.Loads)
	if len(m) != want {
		return c, fmt.Errorf("tells in %d bytes what %d strategies would ask of it, which takes %d: run the same version of hopmesh on all nodes of the job", len(m), candidates, want)
	}
	n, err := binary.Decode(m, binary.LittleEndian, &h)
	if err == nil {
		_, err = binary.Decode(m[n:], binary.LittleEndian, c.Loads)
	}
	if err != nil {
		return c, err
	}
	c.Steps, c.Row, c.Room = h.Steps, h.Row, h.Room
	if c.Steps == 0 || c.Steps > mostLooks || !(c.Row >= 0) || c.Row > mostCounted {
		return c, fmt.Errorf("has looked at %d steps, with rows of %g bytes", c.Steps, c.Row)
	}
	for i := range c.Loads {
		if err := c.Loads[i].check(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Rates are how fast nodes are: those of the slowest.
type Rates struct {
	Bandwidth float64 // bytes a second that come to a node
	RoundTrip float64 // seconds of the smallest question
	Compute   float64 // seconds of computing a row
	Sample    float64 // seconds of sampling that row, by one of Hands
	Hands     float64 // threads that sample at once
}

// slower returns the slower of two nodes' rates.
func (r Rates) slower(o Rates) Rates {
	return Rates{
		Bandwidth: min(r.Bandwidth, o.Bandwidth), RoundTrip: max(r.RoundTrip, o.RoundTrip),
		Compute: max(r.Compute, o.Compute), Sample: max(r.Sample, o.Sample), Hands: min(r.Hands, o.Hands),
	}
}

func (r Rates) encode() ([]byte, error) { return binary.Append(nil, binary.LittleEndian, r) }

func readRates(m []byte) (r Rates, err error) {
	if n, err := binary.Decode(m, binary.LittleEndian, &r); err != nil || n != len(m) {
		return r, fmt.Errorf("tells its rates in %d bytes, which is not what they take", len(m))
	}
	for _, x := range []float64{r.RoundTrip, r.Compute, r.Sample} {
		if !(x >= 0) || x > math.MaxUint32 {
			return r, fmt.Errorf("takes %g s for a row or a question", x)
		}
	}
	if !(r.Hands >= 1) || r.Hands > math.MaxUint32 {
		return r, fmt.Errorf("draws in %g threads", r.Hands)
	}
	if !(r.Bandwidth >= 1) || r.Bandwidth > mostCounted {
		return r, fmt.Errorf("gets %g bytes a second from other nodes", r.Bandwidth)
	}
	return r, nil
}
