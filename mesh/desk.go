package mesh

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/time/rate"
)

// joinDesk serves peers that are not members: newcomers with a token, and `doctor`.
// They show no certificate and have access to nothing else. It allows one exchange per
// connection and a few connections at a time.
type joinDesk struct {
	mesh  *Mesh
	seats chan struct{}
	pace  *rate.Limiter

	mu    sync.Mutex
	conns map[*quic.Conn]struct{}
	shut  bool
}

const (
	// lingerTimeout is how long a newcomer may take to read its answer.
	lingerTimeout = 2 * time.Second
	// seatsPerHost keeps one machine from occupying all connections.
	seatsPerHost = 4
)

func newJoinDesk(m *Mesh) *joinDesk {
	return &joinDesk{mesh: m, seats: make(chan struct{}, 16), pace: rate.NewLimiter(20, 40), conns: map[*quic.Conn]struct{}{}}
}

// take serves one connection, or refuses it if there are too many.
func (d *joinDesk) take(conn *quic.Conn) {
	select {
	case d.seats <- struct{}{}:
	default:
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeOverload), "too many newcomers at once; try again")
		return
	}
	if !d.pace.Allow() || !d.note(conn) {
		<-d.seats
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeOverload), "too many newcomers at once; try again")
		return
	}
	d.mesh.wg.Go(func() {
		defer func() {
			d.mesh.windows.release(conn)
			d.mu.Lock()
			delete(d.conns, conn)
			d.mu.Unlock()
			<-d.seats
		}()
		ctx, cancel := context.WithTimeout(d.mesh.ctx, deskTimeout)
		defer cancel()
		code := CodeDone
		if err := d.exchange(ctx, conn); err != nil {
			code = codeOf(err)
		}
		// The newcomer closes the connection once it has read the answer. Closing it
		// here first could discard the answer.
		if code == CodeDone {
			select {
			case <-conn.Context().Done():
			case <-time.After(lingerTimeout):
			}
		}
		_ = conn.CloseWithError(quic.ApplicationErrorCode(code), "")
	})
}

func (d *joinDesk) note(c *quic.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	host, here := addrPort(c.RemoteAddr()).Addr(), 0
	for o := range d.conns {
		if addrPort(o.RemoteAddr()).Addr() == host {
			here++
		}
	}
	if d.shut || here >= seatsPerHost {
		return false
	}
	d.conns[c] = struct{}{}
	return true
}

func (d *joinDesk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	for c := range d.conns {
		_ = c.CloseWithError(quic.ApplicationErrorCode(CodeShutdown), "stopping")
	}
}

func (d *joinDesk) exchange(ctx context.Context, conn *quic.Conn) error {
	first, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	s, err := conn.AcceptStream(first)
	if err != nil {
		return err
	}
	_ = s.SetReadDeadline(time.Now().Add(openTimeout))
	body, err := io.ReadAll(io.LimitReader(s, maxDeskRequest+1))
	if err != nil {
		return err
	}
	if len(body) > maxDeskRequest {
		return ErrProtocol
	}
	q, err := parseDeskRequest(body)
	var reply deskReply
	switch {
	case err != nil:
		reply = deskReply{Reason: RefusedRequest, Message: err.Error()}
	case q.Join != nil:
		reply = d.join(ctx, *q.Join)
	default:
		reply.Probe = d.mesh.answerProbe(conn.RemoteAddr(), *q.Probe)
	}
	out, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	_ = s.SetWriteDeadline(deadline)
	if _, err := s.Write(out); err != nil {
		return err
	}
	return s.Close()
}

func (d *joinDesk) join(ctx context.Context, r JoinRequest) deskReply {
	if d.mesh.cfg.Admit == nil {
		return deskReply{Reason: RefusedLater, Message: "this node admits nobody; ask another"}
	}
	grant, err := d.mesh.cfg.Admit(ctx, r)
	if err == nil {
		return deskReply{Grant: &grant}
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return deskReply{Reason: refusal.Reason, Message: refusal.Message}
	}
	d.mesh.cfg.Log.Warn("could not decide on a newcomer", "name", r.Name, "err", err)
	return deskReply{Reason: RefusedLater, Message: "no leader answers just now; try again"}
}
