package budget

// Program is what the program takes for itself, beside what Needs counts.
const Program = 38 << 20

// Kind is what memory is for.
type Kind int

// The kinds of memory that a run takes.
const (
	Weights Kind = iota // with gradients, moments and copies
	Graph               // what samplers, features and strategies keep of the graph
	Slots               // batches that are prepared ahead
	Pass                // activations of the largest batch
	Beside              // what the device keeps beside activations
	Step                // what a strategy takes for the steps under way
	Copies              // of a batch, in a device's own memory
	Held                // of the graph and of rows brought ahead, in a device's own memory
	Mapped              // files that the page cache shall have room for; no memory of the process
	kinds
)

// Needs is the memory that a run takes on a node, in bytes.
type Needs struct {
	// Foreign reports whether passes and inference run on a device with memory of its own.
	Foreign   bool
	Inference Inference
	bytes     [kinds]uint64
}

// Inference is the memory of exact inference over the whole graph, in bytes.
type Inference struct {
	Least uint64 // it fails with less
	May   uint64 // the most that it may take
	Takes uint64 // what it takes of that
	// Instead is how much of batches is given back before it runs, so that it takes that
	// much of what they took.
	Instead uint64
}

// Of returns what a run takes for a kind.
func (n *Needs) Of(k Kind) uint64 { return n.bytes[k] }

// Add adds to what a run takes for a kind.
func (n *Needs) Add(k Kind, bytes uint64) { n.bytes[k] += bytes }

// Sub subtracts from what a run takes for a kind, at most all of it.
func (n *Needs) Sub(k Kind, bytes uint64) { n.bytes[k] -= min(n.bytes[k], bytes) }

// Set replaces what a run takes for a kind.
func (n *Needs) Set(k Kind, bytes uint64) { n.bytes[k] = bytes }

// Raise has a run take at least so much for a kind, such as what one of several batches
// takes.
func (n *Needs) Raise(k Kind, bytes uint64) { n.bytes[k] = max(n.bytes[k], bytes) }

// Grow adds a share to what a run takes for some kinds, such as those that depend on
// batches of which some were measured.
func (n *Needs) Grow(share float64, of ...Kind) {
	for _, k := range of {
		n.bytes[k] += uint64(float64(n.bytes[k]) * share)
	}
}

// Base returns what a run takes of the host's memory throughout: all but passes and
// inference.
func (n *Needs) Base() uint64 {
	return Program + n.bytes[Weights] + n.bytes[Graph] + n.bytes[Slots] + n.bytes[Beside] + n.bytes[Step]
}

// OnHost returns what of the host's memory there must be for a run, with the least that
// inference does with, and room for mapped files.
func (n *Needs) OnHost() uint64 {
	if n.Foreign {
		return n.Base() + n.bytes[Mapped]
	}
	return n.Base() + n.bytes[Mapped] + n.bytes[Pass] + n.Inference.beyond(n.Inference.Least)
}

// OnDevice returns what a run takes of a device's own memory, beside weights and
// inference.
func (n *Needs) OnDevice() uint64 {
	return n.bytes[Pass] + n.bytes[Beside] + n.bytes[Copies] + n.bytes[Held]
}

// Total returns all that a run takes where the host's memory is the device's. Inference
// keeps some of its memory during passes, and takes the rest in turns with them. Mapped
// files are not counted: the kernel drops their pages where memory is short.
func (n *Needs) Total() uint64 {
	return n.Base() + n.bytes[Pass] + n.Inference.beyond(n.Inference.Takes)
}

// beyond returns what inference takes of some bytes beside what a run takes throughout.
func (i *Inference) beyond(bytes uint64) uint64 { return bytes - min(bytes, i.Instead) }

// Bound sets what inference may take, if the run may take so much memory; 0: there is no
// bound. What runs once on several nodes keeps to what is given back for it, since that
// falls with nodes, and what all rows take does not.
func (n *Needs) Bound(memory uint64, once, alone bool) {
	i := &n.Inference
	i.May = max(LeastInference, n.Of(Pass))
	if memory > 0 {
		i.May = Left(memory, n.Base()+n.Of(Mapped)+n.Of(Pass)) + i.Instead
	}
	if once && !alone {
		i.May = min(i.May, max(leastOnce, i.Least, i.Instead))
	}
}

// leastOnce is what inference may take that runs once, however little is given back for it.
const leastOnce = 64 << 20

// LeastInference is the memory that evaluation may use where there is no bound, even if
// training takes less.
const LeastInference = 1 << 30
