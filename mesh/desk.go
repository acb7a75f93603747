package mesh

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/mesh/gate"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/mesh/pace"
	"github.com/quic-go/quic-go"
	"golang.org/x/time/rate"
)

// joinDesk serves peers that are not members: newcomers with a token, and `doctor`.
// They show no certificate and have access to nothing else. It allows one exchange per
// connection and a few connections at a time.
type joinDesk struct {
	mesh  *Mesh
	gate  *gate.Gate
	pings *pings
	// warned limits the warnings about nodes of other versions.
	warned *pace.Hosts
	hosts  *pace.Hosts   // of each host
	pace   *rate.Limiter // of all together

	mu    sync.Mutex
	conns map[*quic.Conn]netip.Prefix // with their hosts
	shut  bool
}

const (
	// lingerTimeout is how long a newcomer may take to read its answer.
	lingerTimeout = 2 * time.Second
	// seatsPerHost keeps one machine from occupying all seats, and hostRate from being all
	// that is served: see note.
	seats, seatsPerHost = 64, 4
	hostRate, hostBurst = 5, 20
	deskRate, deskBurst = 50, 100
)

func newJoinDesk(m *Mesh) *joinDesk {
	return &joinDesk{
		mesh: m, gate: gate.New(), pings: newPings(), warned: pace.New(0.1, 1, 256), hosts: pace.New(hostRate, hostBurst, gate.MaxHosts), pace: rate.NewLimiter(deskRate, deskBurst),
		conns: map[*quic.Conn]netip.Prefix{},
	}
}

// take serves one connection, or refuses it if there are too many.
func (d *joinDesk) take(conn *quic.Conn) {
	if !d.note(conn) {
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeOverload), "too many newcomers at once; try again")
		return
	}
	d.mesh.wg.Go(func() {
		defer func() {
			d.mesh.windows.release(conn)
			d.mu.Lock()
			delete(d.conns, conn)
			d.mu.Unlock()
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

// note gives a connection a seat, and reports whether it did. What its host has and takes is
// looked at first: a host that floods this node uses up nothing that others need.
func (d *joinDesk) note(c *quic.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	host, here := gate.HostOf(c.RemoteAddr()), 0
	for _, o := range d.conns {
		if o == host {
			here++
		}
	}
	switch {
	case d.shut, here >= seatsPerHost, !d.hosts.Take(host, time.Now()):
		return false
	case len(d.conns) >= seats, !d.pace.Allow():
		return false
	}
	d.conns[c] = host
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
	err := d.mesh.CheckNewcomer(r)
	var grant identity.Grant
	if err == nil {
		grant, err = d.mesh.cfg.Admit(ctx, r)
	}
	if err == nil {
		return deskReply{Grant: &grant}
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return deskReply{Reason: refusal.Reason, Message: refusal.Message}
	}
	d.mesh.cfg.Log.Warn("could not decide on a newcomer", "name", r.Name, "err", err)
	return deskReply{Reason: RefusedLater, Message: "no leader answers just now; try again"}
}
