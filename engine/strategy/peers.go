package strategy

import (
	"context"
	"errors"
)

// A Service is what a node of a job answers questions of.
type Service uint8

// The services, and the packages whose they are.
const (
	Rows       Service = iota + 1 // engine/gather: rows of features
	Draws                         // engine/frontier: neighbours of vertices
	Skeletons                     // engine/replica: shards without their features
	Offers                        // engine/exchange: what a step makes
	Checkpoint                    // engine/train: the file to go on from
	Columns                       // engine/strategy/p3: columns of features
	Contexts                      // engine/vicinity: edges of vertices, ahead of epochs
)

// A Query is a question to another node of a job.
type Query struct {
	Service     Service
	Kind        Kind
	Epoch, Step uint32 // that it is about
	Part        uint32 // the service's own
	Body        []byte
	Limit       int // of the answer's bytes: no more are accepted
	// Tally, if not nil, counts it.
	Tally *Tally
}

// Framing is how many bytes a question takes beside its body, and an answer.
const (
	QueryFraming  = 64
	AnswerFraming = 32
)

// A Handler answers the questions of one service. It may wait, until ctx ends, for
// what it is asked for. It calls reply once; the parts, which are sent one after
// another, may be used again when reply returns. q.Body is valid until the handler
// returns.
type Handler func(ctx context.Context, from int, q Query, reply func(parts ...[]byte) error) error

// Peers are the nodes of one job, in one generation of the plan, as one of them sees
// them. Any number of goroutines may ask.
type Peers interface {
	// Ask returns the answer of another node, in buf if that is large enough. Where
	// the node can't be reached for a moment it is asked again, so that handlers may
	// be called twice; it gives up with an error that names the node, when the plan
	// changes or after longer than a working node takes.
	Ask(ctx context.Context, node int, q Query, buf []byte) ([]byte, error)
	// Answer registers who answers questions of a service. Before Open only.
	Answer(s Service, h Handler)
	// Open lets questions in; those that came before have waited.
	Open()
}

var (
	// ErrRefused marks an answer that says no: it makes no sense to ask again.
	ErrRefused = errors.New("the other node refuses")
	// ErrUnreached marks the question to a node that could not be reached for long.
	ErrUnreached = errors.New("it can't be reached")
)
