package peer

import (
	"context"
	"errors"
)

// A Service is a kind of questions that a node of a job answers.
type Service uint8

// The services, with their packages.
const (
	Rows       Service = iota + 1 // engine/gather: rows of features
	Draws                         // engine/frontier: neighbours of vertices
	Skeletons                     // engine/replica: shards without their features
	Offers                        // engine/exchange: results of a step
	Checkpoint                    // engine/train: the file to resume from
	Columns                       // engine/strategy/p3: columns of features
	Contexts                      // engine/vicinity: edges of vertices, ahead of epochs
	Labels                        // engine/labels: labels of seed vertices
)

// A Query is a question to another node of a job.
type Query struct {
	Service     Service
	Kind        Kind
	Epoch, Step uint32 // of its subject
	Part        uint32 // up to the service
	Body        []byte
	Limit       int // bound of the answer's bytes
	// Tally, if not nil, counts it.
	Tally *Tally
}

// Framing is how many bytes a question takes beside its body, and an answer.
const (
	QueryFraming  = 64
	AnswerFraming = 32
)

// A Handler answers the questions of one service. It may wait for the requested data
// until ctx ends. It calls reply once; the parts, which are sent one after another, may
// be reused when reply returns. q.Body is valid until the handler returns.
type Handler func(ctx context.Context, from int, q Query, reply func(parts ...[]byte) error) error

// Peers are the nodes of one job, in one generation of the plan, as one of them sees
// them. Any number of goroutines may ask.
type Peers interface {
	// Ask returns the answer of another node, in buf if that is large enough. If the
	// node can't be reached for a moment it is asked again, so handlers may be called
	// twice. Ask gives up with an error that names the node, when the plan changes or
	// after longer than a working node takes.
	Ask(ctx context.Context, node int, q Query, buf []byte) ([]byte, error)
	// Answer registers the handler of a service, before Open.
	Answer(s Service, h Handler)
	// Open lets questions in; earlier ones have waited.
	Open()
}

var (
	// ErrRefused marks an answer that refuses a question: it is useless to ask again.
	ErrRefused = errors.New("the other node refuses")
	// ErrEarly is the error of a handler that can't answer yet, and will soon: the other node asks again.
	ErrEarly = errors.New("it is too early to answer")
	// ErrUnreached marks the question to a node that could not be reached for long.
	ErrUnreached = errors.New("it can't be reached")
)
