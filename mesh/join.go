package mesh

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// JoinRequest is a newcomer's request to join. Nothing in it is proven except that the
// newcomer holds the key of its signing request.
type JoinRequest struct {
	Secret  string    `json:"secret"` // the token's, in hex
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Device  string    `json:"device"`
	Memory  uint64    `json:"memory"`
	CSR     []byte    `json:"csr"`
	Clock   time.Time `json:"clock"`
	Numbers Numbers   `json:"numbers"`
}

// Reasons to refuse a newcomer. All but RefusedLater are final.
const (
	RefusedToken   = "token"   // unknown, expired or revoked
	RefusedName    = "name"    // the name or the id is in use
	RefusedClock   = "clock"   // the clocks differ too much for certificates
	RefusedRequest = "request" // the request is malformed
	RefusedVersion = "version" // the newcomer and the mesh speak other versions
	RefusedLater   = "later"   // no decision is possible just now
)

// deskRequest and deskReply are one JSON document each way on one stream.
type deskRequest struct {
	Join  *JoinRequest  `json:"join,omitempty"`
	Probe *probeRequest `json:"probe,omitempty"`
}

type deskReply struct {
	Grant   *identity.Grant `json:"grant,omitempty"`
	Probe   *ProbeReply     `json:"probe,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
}

const (
	maxDeskRequest = 16 << 10
	maxDeskReply   = 256 << 10
	deskTimeout    = 12 * time.Second
)

// Join asks the peers, one after another, to admit this newcomer, and returns the first
// answer. conn must not be in use by a Mesh. A *Refusal is final unless its reason is
// RefusedLater, and so is identity.ErrForeignMesh, if all peers show another CA; any other error may be retried.
func Join(ctx context.Context, conn net.PacketConn, peers []string, token identity.Token, r JoinRequest) (identity.Grant, error) {
	r.Secret = fmt.Sprintf("%x", token.Secret)
	var errs, unlike []error
	var foreign error
	for _, peer := range peers {
		reply, err := ask(ctx, conn, peer, identity.JoinTLS(token.CA), deskRequest{Join: &r})
		what, other := errors.AsType[*VersionError](err)
		switch {
		case errors.Is(err, identity.ErrForeignMesh):
			foreign = fmt.Errorf("ask %s to join with this token: %w, or the mesh has replaced its CA since: {token.create} on a member makes a new one", peer, identity.ErrForeignMesh)
			continue
		case other:
			unlike = append(unlike, Refuse(RefusedVersion, "%s %s", peer, what.And(r.Version, r.Numbers.Wire)))
			continue
		case err != nil:
			errs = append(errs, fmt.Errorf("ask %s to join: %w", peer, err))
			continue
		case reply.Reason == RefusedVersion:
			unlike = append(unlike, Refuse(RefusedVersion, "%s refused this node: %s", peer, reply.Message))
			continue
		case reply.Reason != "" && reply.Reason != RefusedLater:
			return identity.Grant{}, Refuse(reply.Reason, "%s refused this node: %s", peer, reply.Message)
		case reply.Grant != nil:
			return *reply.Grant, nil
		}
		errs = append(errs, Refuse(RefusedLater, "%s can't decide now: %s", peer, reply.Message))
	}
	switch {
	case foreign != nil && len(errs)+len(unlike) == 0:
		return identity.Grant{}, foreign // all say so
	case foreign != nil:
		errs = append(errs, errors.New(foreign.Error())) // another may yet admit it
	}
	if len(errs) > 0 && len(unlike) > 0 {
		// Another peer may yet admit it, so this is not final.
		return identity.Grant{}, fmt.Errorf("%w; %s", errors.Join(errs...), errors.Join(unlike...).Error())
	}
	return identity.Grant{}, errors.Join(append(errs, unlike...)...)
}

// ask makes one exchange with the joinDesk of the node at peer.
func ask(ctx context.Context, conn net.PacketConn, peer string, tlsConf *tls.Config, q deskRequest) (deskReply, error) {
	addr, err := Resolve(ctx, peer)
	if err != nil {
		return deskReply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, deskTimeout)
	defer cancel()
	tr := &quic.Transport{Conn: conn}
	defer tr.Close()
	c, err := tr.Dial(ctx, net.UDPAddrFromAddrPort(addr), tlsConf, quicConfig(control, newWindows()))
	if errors.Is(explain(err), ErrClosed) {
		return deskReply{}, fmt.Errorf("%s does not take packets: nothing listens there", addr)
	}
	if lost(err) {
		_ = tr.Close() // conn is free then
		return deskReply{}, tooLarge(ctx, conn, addr, explain(err))
	}
	if err != nil {
		return deskReply{}, explain(err)
	}
	defer func() { _ = c.CloseWithError(quic.ApplicationErrorCode(CodeDone), "") }()
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		return deskReply{}, explain(err)
	}
	deadline, _ := ctx.Deadline()
	_ = s.SetDeadline(deadline)
	body, err := json.Marshal(q)
	if err != nil {
		return deskReply{}, fmt.Errorf("write the request: %w", err)
	}
	if _, err := s.Write(body); err != nil {
		return deskReply{}, explain(err)
	}
	_ = s.Close()
	answer, err := io.ReadAll(io.LimitReader(s, maxDeskReply))
	if err != nil {
		return deskReply{}, explain(err)
	}
	var reply deskReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return deskReply{}, fmt.Errorf("%w: its answer is no JSON document of this protocol", ErrProtocol)
	}
	return reply, nil
}

func parseDeskRequest(b []byte) (deskRequest, error) {
	var q deskRequest
	if err := json.Unmarshal(b, &q); err != nil {
		return q, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if (q.Join == nil) == (q.Probe == nil) {
		return q, fmt.Errorf("%w: neither a join nor a probe", ErrProtocol)
	}
	if j := q.Join; j != nil {
		if err := CheckName(j.Name); err != nil {
			return q, err
		}
	}
	return q, nil
}

// CheckName returns an error unless a node may have this name. Names are shown in
// tables and typed in commands, so they are short and plain.
func CheckName(name string) error {
	if name == "" || len(name) > 63 {
		return fmt.Errorf("a node's name has 1 to 63 characters, %q has %d", name, len(name))
	}
	if i := strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}); i >= 0 {
		return fmt.Errorf("a node's name has letters, digits, '-', '_' and '.' only, %q has %q", name, name[i:i+1])
	}
	return nil
}

// RoutedAddr returns the local address from which packets to peer leave. A node that
// listens on a wildcard address should advertise it.
func RoutedAddr(peer netip.AddrPort) (netip.Addr, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(peer))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find the way to %s: %w", peer, err)
	}
	defer c.Close()
	return addrPort(c.LocalAddr()).Addr(), nil
}
