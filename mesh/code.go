package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

// Code is the reason why a stream or a connection was ended. It crosses the wire, so
// its values never change meaning.
type Code uint64

const (
	CodeDone         Code = 0 // no error
	CodeSuperseded   Code = 1 // the stream's generation is no longer current
	CodeIdle         Code = 2 // nobody has begun the request, since the connection is not used any more; of one that ends: see movedOn
	CodeShutdown     Code = 3 // the work ends: what it belongs to is stopping
	CodeProtocol     Code = 4 // the peer violated the protocol
	CodeOverload     Code = 5 // the peer exceeded this node's limits
	CodeUnauthorised Code = 6 // the peer is not, or no longer, a member
	CodeVersion      Code = 8 // the peer speaks other versions of the protocols; the reason says which this node does
	CodeGoodbye      Code = 9 // the node stops, and ends all its connections
	CodePath         Code = 7 // large packets vanish on this connection; a new one replaces it
)

var (
	ErrClosed       = errors.New("the mesh is closed")
	ErrSuperseded   = errors.New("the plan has moved on to a newer generation")
	ErrUnauthorised = errors.New("the peer is not, or no longer, a member of this mesh")
	ErrOverload     = errors.New("the peer has too much to do")
	ErrProtocol     = errors.New("the peer does not speak this node's protocol")
	ErrShutdown     = errors.New("the peer is stopping")
	ErrLost         = errors.New("the connection to the peer was lost")
	ErrPath         = errors.New("large packets vanish on the connection to the peer: it is replaced by one with smaller packets")
	ErrStalled      = errors.New("nothing moved for too long")
	ErrNoAddress    = errors.New("no address is known for this node")
	ErrSelf         = errors.New("the address is this node's own")
)

// explain maps quic-go's errors to this package's, so that no caller depends on
// quic-go.
func explain(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if se, ok := errors.AsType[*quic.StreamError](err); ok {
		return byCode(Code(se.ErrorCode), err)
	}
	if ae, ok := errors.AsType[*quic.ApplicationError](err); ok {
		if Code(ae.ErrorCode) == CodeVersion && ae.Remote {
			return parseReason(ae.ErrorMessage)
		}
		return byCode(Code(ae.ErrorCode), err)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w (%w)", ErrStalled, err)
	}
	if te, ok := errors.AsType[*quic.TransportError](err); ok && te.ErrorCode == noProtocol {
		return new(VersionError)
	} else if ok {
		return err // also a net.ErrClosed, but with a reason, such as a refused handshake
	}
	if lost(err) {
		return fmt.Errorf("%w (%w)", ErrLost, err)
	}
	if errors.Is(err, net.ErrClosed) || errors.Is(err, quic.ErrTransportClosed) {
		return ErrClosed
	}
	return err
}

// moves is the greatest age of a request that is made again when its connection is closed as idle.
// No request has been begun on it for (retireQuiet-1)*retireCheck before: a late check takes some off.
const moves = retireCheck

// movedOn reports whether the peer has retired the connection and not begun a request of this age,
// which may be made again on another. The answer to an older one may have been sent and lost: the
// peer closes a connection that has been quiet for a while (retire).
func movedOn(err error, age time.Duration) bool {
	if se, ok := errors.AsType[*quic.StreamError](err); ok {
		return se.Remote && Code(se.ErrorCode) == CodeIdle
	}
	ae, ok := errors.AsType[*quic.ApplicationError](err)
	return ok && ae.Remote && Code(ae.ErrorCode) == CodeIdle && age < moves
}

// lost reports whether a connection ended because its peer stopped or did not begin to
// answer. quic-go counts that as net.ErrClosed, too.
func lost(err error) bool {
	if _, ok := errors.AsType[*quic.IdleTimeoutError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*quic.HandshakeTimeoutError](err); ok {
		return true
	}
	_, ok := errors.AsType[*quic.StatelessResetError](err)
	return ok
}

func byCode(c Code, err error) error {
	switch c {
	case CodeSuperseded:
		return ErrSuperseded
	case CodeUnauthorised:
		return ErrUnauthorised
	case CodeOverload:
		return ErrOverload
	case CodeProtocol:
		return ErrProtocol
	case CodePath:
		return ErrPath
	case CodeShutdown, CodeGoodbye:
		return ErrShutdown
	case CodeIdle:
		return replaced{}
	}
	return err
}

// replaced is ErrShutdown of a connection alone. Its peer lives.
type replaced struct{}

func (replaced) Error() string {
	return "the connection was replaced before the answer had come, and what was asked may have been done"
}

func (replaced) Is(target error) bool { return target == ErrShutdown }

// codeOf returns the code with which to end a stream whose work ended with err.
func codeOf(err error) Code {
	switch {
	case err == nil:
		return CodeDone
	case errors.Is(err, ErrSuperseded):
		return CodeSuperseded
	case errors.Is(err, ErrOverload):
		return CodeOverload
	case errors.Is(err, ErrClosed), errors.Is(err, ErrShutdown), errors.Is(err, context.Canceled):
		return CodeShutdown
	}
	return CodeProtocol
}
