package mesh

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
)

// probeRequest asks a node to identify itself and to send one packet, marked with the
// nonce, from a socket that the requester has not contacted. Whether that arrives shows
// whether inbound packets pass that are not answers.
type probeRequest struct {
	Nonce []byte `json:"nonce"`
}

const nonceSize = 16

// ProbeReply is a node's answer to anyone who can reach it. It contains no more than
// the handshake shows anyway, and what is needed to find out why a join fails.
type ProbeReply struct {
	MeshID   string    `json:"mesh"`
	Version  string    `json:"version"`
	Numbers  Numbers   `json:"numbers"`
	Clock    time.Time `json:"clock"`
	Observed string    `json:"observed"` // the requester's address as this node sees it
}

// ProbeResult is the result of Probe.
type ProbeResult struct {
	ProbeReply
	RoundTrip time.Duration
	Skew      time.Duration // how far the peer's clock is ahead
	Inbound   bool          // an unrequested packet from the peer arrived
	Reach     Reach         // how large packets reach the peer
}

// Probe asks the node at peer to identify itself and whether it can reach this machine
// unasked. conn must not be used otherwise meanwhile.
func Probe(ctx context.Context, conn net.PacketConn, peer string) (ProbeResult, error) {
	nonce := make([]byte, nonceSize)
	if _, err := rand.Read(nonce); err != nil {
		return ProbeResult{}, fmt.Errorf("make a nonce: %w", err)
	}
	begin := time.Now()
	reply, err := ask(ctx, conn, peer, identity.ProbeTLS(), deskRequest{Probe: &probeRequest{Nonce: nonce}})
	if err != nil {
		return ProbeResult{}, fmt.Errorf("probe %s: %w", peer, err)
	}
	if reply.Probe == nil {
		return ProbeResult{}, fmt.Errorf("probe %s: %w", peer, errors.Join(ErrProtocol, errors.New(reply.Message)))
	}
	r := ProbeResult{ProbeReply: *reply.Probe, RoundTrip: time.Since(begin)}
	r.Skew = r.Clock.Sub(begin.Add(r.RoundTrip / 2)).Round(time.Millisecond)
	r.Inbound = awaitProbe(conn, nonce)
	if to, err := Resolve(ctx, peer); err == nil {
		r.Reach = measure(ctx, conn, to)
	}
	return r, nil
}

// awaitProbe waits for the probe packet on a socket that QUIC no longer uses, and
// reports whether it came.
func awaitProbe(conn net.PacketConn, nonce []byte) bool {
	want := append([]byte{tagProbe}, nonce...)
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	buf := make([]byte, 2048)
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return false
		}
		if bytes.Equal(buf[:n], want) {
			return true
		}
	}
}

// answerProbe sends the probe packet from a new socket to an address that the handshake
// has proven. It waits a moment, so that the requester has stopped QUIC on its socket.
func (m *Mesh) answerProbe(from net.Addr, q probeRequest) *ProbeReply {
	to := addrPort(from)
	if len(q.Nonce) == nonceSize {
		m.wg.Go(func() {
			select {
			case <-time.After(500 * time.Millisecond):
			case <-m.ctx.Done():
				return
			}
			c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = c.Write(append([]byte{tagProbe}, q.Nonce...))
		})
	}
	return &ProbeReply{MeshID: m.cfg.Identity.MeshID(), Version: m.cfg.Version, Numbers: m.cfg.Numbers, Clock: m.cfg.Identity.Now(), Observed: to.String()}
}
