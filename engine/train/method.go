package train

import (
	"context"
	"time"

	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// A Method makes the updates of a run: it is a strategy while it trains. All nodes of a
// run use the same one.
//
// The run's goroutine calls its methods in the order given here, those on epochs and
// steps again and again. Prepare and Look are called by prefetch workers.
type Method interface {
	// Rows returns how many rows as long as the weights the method keeps of each model,
	// beside those of every run.
	Rows() int
	// Attach allocates the method's part of a learner, whose weights have just been
	// made.
	Attach(l *Learner) error

	// Open makes the state that lives as long as the run, once the nodes have met.
	Open(ctx context.Context) error
	// Needs adds the memory of the method, beside weights and steps.
	Needs(n *Needs)
	// SumRows returns how many rows of a learner's weights are in memory while they are
	// added up, or 0 if nothing is; gradients is that number if only gradients are.
	SumRows(l *Learner, gradients uint64) uint64
	// See adds the memory of a step that Look has looked at.
	See(n *Needs, o *slot.Outline)
	// Fit is called once all needs of the run are known. It reports whether the method
	// changed its own, so that steps have to be looked at again.
	Fit(ctx context.Context, n *Needs) (again bool, err error)
	// Start takes the memory, of which all nodes have enough, before batches take theirs.
	Start(ctx context.Context) error

	// BeginEpoch is called before the remaining steps of an epoch, and BeginSteps
	// before they are prepared. EndSteps is called after them, even after an error.
	BeginEpoch(ctx context.Context, epoch int) error
	BeginSteps(epoch, step int)
	EndSteps()
	// Inflight returns how many steps are under way at once: so many are prepared when
	// the first of them is computed.
	Inflight() int
	// Prepare deals a step's seed vertices and gathers this node's input. Look finds how
	// large all of that gets, and takes no memory for it.
	Prepare(ctx context.Context, h *slot.Worker, s *slot.Slot, epoch int) error
	Look(ctx context.Context, h *slot.Looker, o *slot.Outline, epoch int) error
	// Step makes one update of a learner. later are the following steps that are to be
	// under way meanwhile. It returns the sum of the losses of this node's seed
	// vertices (of all nodes', where losses are added up), and how long it waited for
	// other nodes.
	Step(ctx context.Context, l *Learner, s *slot.Slot, later []*slot.Slot, rate float64) (loss float64, waited time.Duration, err error)
	// Finite reports whether the input of a step is finite. Stage names the first stage
	// whose output is not, or returns "". They are called after a step that diverged.
	Finite(l *Learner, s *slot.Slot) bool
	Stage(l *Learner, s *slot.Slot, g *slot.Group) string
	// Common reports whether this node's state of a learner is the same on all nodes,
	// so that a checkpoint may be written. Back restores the last such state.
	Common(l *Learner) bool
	Back(l *Learner)
	// Resumes reports whether a run can go on from a learner's state.
	Resumes(l *Learner) bool
	// SavesFirst reports whether a checkpoint is written before the first step, since a
	// run can't be resumed at every step. Gathers reports whether nodes have to combine
	// their weights before these can be saved.
	SavesFirst() bool
	Gathers() bool
	// Whole reports whether this node has all weights of a learner, and Complete
	// whether it has all that a checkpoint holds. Hash returns the hash of all weights
	// where this node does not have them all; "" if other nodes report it.
	Whole(l *Learner) bool
	Complete(l *Learner) bool
	Hash(l *Learner) string
	// Mine adds to this node's share of an epoch, and Report to the sum of all nodes'
	// shares.
	Mine(l *Learner, h *Share)
	Report(l *Learner, e *trained.Epoch, all Share)
	// Evaluates reports whether epochs are evaluated by the run. If they are not, Report adds
	// what is known of them.
	Evaluates() bool
	// Evaluated is called when an epoch is over, whether it was evaluated or not.
	Evaluated(l *Learner)
	// Finish brings all weights to all nodes that need them when a run is done.
	Finish(ctx context.Context) error
	// Close ends what is under way and releases memory, however far the run has come.
	Close()
}

// Basic is a Method's default: most of it does nothing. Methods embed it.
type Basic struct{}

// Rows implements Method, as all methods of Basic do.
func (Basic) Rows() int                                      { return 0 }
func (Basic) Attach(*Learner) error                          { return nil }
func (Basic) Needs(*Needs)                                   {}
func (Basic) Fit(context.Context, *Needs) (bool, error)      { return false, nil }
func (Basic) Start(context.Context) error                    { return nil }
func (Basic) BeginEpoch(context.Context, int) error          { return nil }
func (Basic) BeginSteps(int, int)                            {}
func (Basic) EndSteps()                                      {}
func (Basic) Inflight() int                                  { return 1 }
func (Basic) Common(*Learner) bool                           { return true }
func (Basic) Back(*Learner)                                  {}
func (Basic) Resumes(*Learner) bool                          { return true }
func (Basic) Whole(*Learner) bool                            { return true }
func (Basic) Complete(*Learner) bool                         { return true }
func (Basic) Hash(*Learner) string                           { return "" }
func (Basic) Mine(*Learner, *Share)                          {}
func (Basic) Report(*Learner, *trained.Epoch, Share)         {}
func (Basic) Evaluates() bool                                { return true }
func (Basic) Evaluated(*Learner)                             {}
func (Basic) Finish(context.Context) error                   { return nil }
func (Basic) Close()                                         {}
func (Basic) SavesFirst() bool                               { return false }
func (Basic) Gathers() bool                                  { return false }
func (Basic) Finite(*Learner, *slot.Slot) bool               { return true }
func (Basic) Stage(*Learner, *slot.Slot, *slot.Group) string { return "" }
func (Basic) SumRows(*Learner, uint64) uint64                { return 0 }
