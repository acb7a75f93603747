package pipe

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/arrange"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/blocks"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/timing"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Task is what a node trains, and with what. It is the same on all nodes of a job, except
// for the device, memory and exchange.
type Task struct {
	Model              *nn.Model
	Device             tensor.Device // in the host's memory
	Weights, Gradients tensor.Matrix // 1 x Size, of all stages

	Topology *sample.Topology // with all edges, unless Edges brings others
	Blocks   blocks.From
	Shape    *arrange.Shape
	Seats    *arrange.Seats
	Cuts     []int // the first of the model's stages in each stage, then their number
	Features Features
	// Labels sets those of the vertices from first on: negative where nothing is learnt.
	Labels func(to []int32, first uint32)
	// Loss returns the sum of the losses of rows and sets its gradient, for the mean over
	// all training vertices of the graph.
	Loss func(dz, z tensor.Matrix, labels []int32) float64

	Options
	Exchange *exchange.Exchange // nil on a single node
	Work     peer.Work
}

// Features are the rows that the first stage reads.
type Features interface {
	// Input returns the features of some vertices. Each place holds one input until it is
	// given another; grain identifies it. Places may share their memory, so a grain asks
	// for its input again before it goes back, and finds it where it was.
	Input(place, grain int, vertices []uint32) (nn.Input, error)
}

// Options decide what is learnt; the last one only decides how.
type Options struct {
	Seed uint64
	// Shuffle draws another order of positions for each epoch.
	Shuffle bool
	// Period is how many epochs a history is used for, and Histories how it is made. With
	// Made, a period begins with a forward pass by the current weights, without dropout. An
	// epoch then depends on two rows of weights and on nothing else of earlier epochs.
	Period    int
	Histories string
	// Factor multiplies gradients at rows of a history. The history of one chunk is used by
	// another only in every other order of the two.
	Factor float64
	// Kept replaces lost gradients by those of the last epoch.
	Kept bool
	Halo Halo

	Recompute bool // backward computes again what forward made, instead of keeping it
}

// Halo decides which rows ways read of each other at the same position.
type Halo struct {
	Policy string
	Share  float64 // of the rows that an epoch samples
	Age    int     // epochs after which rows are sent again, with Skip
}

// The policies for rows between ways.
const (
	Exact    = "exact"          // of this epoch
	Previous = "previous-epoch" // of the last epoch, with its gradients
	Sampled  = "sampled"        // a share, scaled up
	Skip     = "skip"           // those sent before, for some epochs
)

// The kinds of histories.
const (
	Made  = "made"
	Left  = "left"  // left by an epoch; the first one is made
	Zeros = "zeros" // left by an epoch; the first one is zeros
)

// Fresh is how often the Previous policy uses current rows, so that such an epoch does not
// depend on earlier ones.
const Fresh = 23

// turns reports whether what ways offer each other takes turns in two rooms: where nothing is
// read again, and layers follow each other.
func (h *Halo) turns(positions int) bool {
	return positions == 1 && (h.Policy == Exact || h.Policy == Sampled)
}

// Offered returns the columns of what is offered of a row, before layers that read so many, of
// ways with so many positions.
func (h *Halo) Offered(widths []int, positions int) (n int) {
	if !h.turns(positions) {
		for _, width := range widths {
			n += width
		}
		return n
	}
	most := [2]int{}
	for i, width := range widths {
		most[i%2] = max(most[i%2], width)
	}
	return most[0] + most[1]
}

// exactly reports whether an epoch, from 0, uses current rows.
func (h *Halo) exactly(epoch int) bool {
	switch h.Policy {
	case Previous:
		return epoch%Fresh == 0
	case Skip:
		return epoch%(h.Age+1) == 0
	}
	return true
}

// subject returns what of a task is timed.
func (t *Task) subject() timing.Subject {
	return timing.Subject{
		Model: t.Model, Device: t.Device, Weights: t.Weights, Topology: t.Topology, Input: t.Features.Input, Labels: t.Labels, Loss: t.Loss,
	}
}

func (t *Task) check() error {
	shards := len(t.Shape.Firsts) - 1
	switch o := &t.Options; {
	case t.Seats.Stages != len(t.Cuts)-1:
		return fmt.Errorf("pipe: seats for %d stages, and cuts for %d", t.Seats.Stages, len(t.Cuts)-1)
	case o.Period < 1 || o.Factor <= 0:
		return fmt.Errorf("pipe: a period of %d epochs, and gradients times %g", o.Period, o.Factor)
	case o.Kept && o.Factor != 1:
		return fmt.Errorf("pipe: gradients times %g where lost ones are replaced by those of the last epoch", o.Factor)
	case o.Halo.Policy != Exact && t.Shape.Positions() > 1:
		return fmt.Errorf("pipe: histories need current rows, not %s ones", o.Halo.Policy)
	case o.Halo.Policy == Sampled && !(o.Halo.Share > 0 && o.Halo.Share <= 1):
		return fmt.Errorf("pipe: a sampled share of %g", o.Halo.Share)
	case 2*len(t.Model.Stages())*pieces(t.Shape)+t.Shape.Ways()*t.Shape.Positions() >= 1<<24 || 2*shards >= 1<<24:
		return fmt.Errorf("%d chunks in %d ways are too many to number: set fewer", t.Shape.Chunks(), t.Shape.Ways())
	}
	return nil
}
