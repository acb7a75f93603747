package mesh

import "sync/atomic"

// Kind is the purpose of a byte on the wire. Strategies are compared by the bytes of
// each kind, so every send names one.
type Kind uint8

const (
	Control Kind = iota // gossip, Raft, calls
	Feature
	Topology
	Model
	Gradient
	Activation
	Shard
	kinds
)

// Kinds lists every kind, in the order of their numbers on the wire.
func Kinds() []Kind {
	return []Kind{Control, Feature, Topology, Model, Gradient, Activation, Shard}
}

func (k Kind) String() string {
	if k >= kinds {
		return "unknown"
	}
	return [...]string{"control", "feature", "topology", "model", "gradient", "activation", "shard"}[k]
}

// Count is the traffic of one kind through this node's socket: payload and framing,
// without the overhead of QUIC and UDP.
type Count struct {
	Sent, Received, Requests uint64
}

// Meter counts bytes by kind where they are sent and received. A node has one.
type Meter struct {
	counts [kinds]meterCell
}

// meterCell is padded so that two kinds counted on two cores share no cache line.
type meterCell struct {
	sent, received, requests atomic.Uint64
	_                        [104]byte
}

func (m *Meter) sent(k Kind, n int)     { m.counts[k].sent.Add(uint64(n)) }
func (m *Meter) received(k Kind, n int) { m.counts[k].received.Add(uint64(n)) }
func (m *Meter) request(k Kind)         { m.counts[k].requests.Add(1) }

// Read returns the count of one kind.
func (m *Meter) Read(k Kind) Count {
	c := &m.counts[k]
	return Count{Sent: c.sent.Load(), Received: c.received.Load(), Requests: c.requests.Load()}
}
