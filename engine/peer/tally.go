package peer

import (
	"sync/atomic"

	"github.com/hopmesh/hopmesh/engine/epoch"
)

// A Kind is a purpose of bytes.
type Kind uint8

const (
	Control Kind = iota
	Feature
	Topology
	Model
	Gradient
	Activation
	Shard
	Kinds // how many there are
)

func (k Kind) String() string {
	return [...]string{"control", "feature", "topology", "model", "gradient", "activation", "shard"}[k]
}

// A Tally counts the bytes that nodes exchange for one purpose: an epoch, an
// evaluation. The node that asks counts questions and answers alike, with their
// framing: the sum over all nodes of a job is what all of them sent, but for what is
// asked again. It is safe for concurrent use.
type Tally struct {
	bytes, requests [Kinds]atomic.Uint64
}

// Count adds one request whose question and answer took so many bytes together.
func (t *Tally) Count(k Kind, bytes int) {
	if t == nil {
		return
	}
	t.bytes[k].Add(uint64(bytes))
	t.requests[k].Add(1)
}

// Add adds what was counted elsewhere.
func (t *Tally) Add(c Counts) {
	for k := range Kinds {
		t.bytes[k].Add(c.Bytes[k])
		t.requests[k].Add(c.Requests[k])
	}
}

// Counts are the counted requests and bytes, by kind.
type Counts struct {
	Bytes, Requests [Kinds]uint64
}

// Record returns what an epoch's record has of the counts.
func (c *Counts) Record() (epoch.Requests, epoch.Bytes) {
	r, b := &c.Requests, &c.Bytes
	return epoch.Requests{Feature: r[Feature], Topology: r[Topology], Activation: r[Activation], Gradient: r[Gradient]},
		epoch.Bytes{
			Feature: b[Feature], Topology: b[Topology], Model: b[Model], Gradient: b[Gradient],
			Activation: b[Activation], Shard: b[Shard], Control: b[Control],
		}
}

// Read returns what was counted so far.
func (t *Tally) Read() (c Counts) {
	for k := range Kinds {
		c.Bytes[k], c.Requests[k] = t.bytes[k].Load(), t.requests[k].Load()
	}
	return c
}

// Take returns what was counted so far, and resets only that: what is counted meanwhile
// stays.
func (t *Tally) Take() (c Counts) {
	for k := range Kinds {
		c.Bytes[k], c.Requests[k] = t.bytes[k].Swap(0), t.requests[k].Swap(0)
	}
	return c
}

// Reset sets all counts to zero.
func (t *Tally) Reset() {
	for k := range Kinds {
		t.bytes[k].Store(0)
		t.requests[k].Store(0)
	}
}

// Add adds other counts.
func (c *Counts) Add(o Counts) {
	for k := range Kinds {
		c.Bytes[k] += o.Bytes[k]
		c.Requests[k] += o.Requests[k]
	}
}
