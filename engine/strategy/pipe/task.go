package pipe

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Task is what a node is to train, and with what. All nodes of a job are given the same,
// but for what is their own: device, memory, exchange.
type Task struct {
	Model              *nn.Model
	Device             tensor.Device // whose memory is the host's
	Weights, Gradients tensor.Matrix // 1 x Size, of all stages

	Topology *sample.Topology // with all edges
	Shape    *Shape
	Seats    *Seats
	Cuts     []int // where among the model's stages each stage begins, then how many those are
	Features Features
	// Labels sets those of the vertices from first on: negative where nothing is learnt.
	Labels func(to []int32, first uint32)
	// Loss is the sum of the losses of rows, with its gradient: that of the mean over all
	// that is learnt from in the whole graph.
	Loss func(dz, z tensor.Matrix, labels []int32) float64

	Options
	Exchange *exchange.Exchange // nil where one node does it all
	Work     strategy.Work
}

// Features are the rows that the first stage reads.
type Features interface {
	// Input is those of some vertices. There are so many places for inputs, and one holds
	// what it was given until it is given something else: grain says what that is of.
	Input(place, grain int, vertices []uint32) (nn.Input, error)
}

// Options say what is learnt, and the last how.
type Options struct {
	Seed uint64
	// Shuffle has each epoch take the positions in an order of its own.
	Shuffle bool
	// Period is for how many epochs a history is kept, and Histories what that is. Made,
	// a period begins with rows of the weights of then, without dropout: so what an epoch
	// makes depends on two rows of weights, and on nothing else of the epochs before.
	Period    int
	Histories string
	// Factor is what gradients count at rows of a history: the history of a chunk is of
	// use to another only in every other order of the two.
	Factor float64
	// Kept has the last epoch's gradients stand for those that are lost.
	Kept bool
	Halo Halo

	Recompute bool // forward once more for backward, in place of keeping all that it made
}

// Halo says which rows ways see of each other where those are computed at the same
// position.
type Halo struct {
	Policy string
	Share  float64 // of rows that an epoch samples
	Age    int     // of rows before they are sent anew, where sending is skipped
}

// The policies.
const (
	Exact    = strategy.RowsExact    // this epoch's
	Previous = strategy.RowsPrevious // the last epoch's, and its gradients
	Sampled  = strategy.RowsSampled  // a share, scaled up
	Skip     = strategy.RowsSkip     // what was sent before, for some epochs
)

// What histories are.
const (
	Made  = strategy.HistoriesMade
	Left  = strategy.HistoriesLeft  // by an epoch; the first are made
	Zeros = strategy.HistoriesZeros // by an epoch; the first are zeros
)

// Fresh is how often ways that see the last epoch's rows see those of now, which are
// there before the epoch goes on: what such an epoch makes does not depend on those before.
const Fresh = 23

// Exactly says whether an epoch, from 0, sees rows of now.
func (h *Halo) exactly(epoch int) bool {
	switch h.Policy {
	case Previous:
		return epoch%Fresh == 0
	case Skip:
		return epoch%(h.Age+1) == 0
	}
	return true
}

func (t *Task) check() error {
	shards := len(t.Shape.firsts) - 1
	switch o := &t.Options; {
	case t.Seats.Stages != len(t.Cuts)-1:
		return fmt.Errorf("pipe: %d stages are seated, and %d are cut", t.Seats.Stages, len(t.Cuts)-1)
	case o.Period < 1 || o.Factor <= 0:
		return fmt.Errorf("pipe: a history of %d epochs, whose gradients count %g", o.Period, o.Factor)
	case o.Kept && o.Factor != 1:
		return fmt.Errorf("pipe: gradients count %g where those of the last epoch stand for what is lost", o.Factor)
	case o.Halo.Policy != Exact && t.Shape.Positions() > 1:
		return fmt.Errorf("pipe: histories are made of rows of now, and not of %s ones", o.Halo.Policy)
	case o.Halo.Policy == Sampled && !(o.Halo.Share > 0 && o.Halo.Share <= 1):
		return fmt.Errorf("pipe: a share of %g is sampled", o.Halo.Share)
	case 2*len(t.Model.Stages())*parcels(t.Shape)+t.Shape.Ways() >= 1<<24 || 2*shards >= 1<<24:
		return fmt.Errorf("%d chunks in %d ways are more than can be told apart: take fewer", t.Shape.Chunks(), t.Shape.Ways())
	}
	return nil
}
