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

// probeRequest asks a node what it is and, by its nonce, for one packet from a
// socket that the asker has not talked to: whether that arrives tells whether
// the way back is open by itself, not only as an answer.
type probeRequest struct {
	Nonce []byte `json:"nonce"`
}

const nonceSize = 16

// A ProbeReply is what a node tells anyone who can reach it: no more than the
// handshake shows anyway, and what is needed to find out why a join fails.
type ProbeReply struct {
	MeshID   string    `json:"mesh"`
	Version  string    `json:"version"`
	Clock    time.Time `json:"clock"`
	Observed string    `json:"observed"` // the asker's address as seen from there
}

// A ProbeResult is what Probe found.
type ProbeResult struct {
	ProbeReply
	RoundTrip time.Duration
	Skew      time.Duration // how far the peer's clock is ahead
	Inbound   bool          // an unasked packet from the peer arrived
}

// Probe asks the node at peer what it is and whether it can reach this machine
// unasked. conn is used for nothing else meanwhile.
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
	return r, nil
}

// awaitProbe reads what comes to a socket that QUIC no longer uses.
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

// answerProbe sends the one packet from a fresh socket, a moment later so that
// the asker has put QUIC aside, to an address that the handshake has proven.
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
	return &ProbeReply{MeshID: m.cfg.Identity.MeshID(), Version: m.cfg.Version, Clock: time.Now(), Observed: to.String()}
}
