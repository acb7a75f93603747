package mesh

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/hopmesh/hopmesh/mesh/gate"
	"github.com/hopmesh/hopmesh/mesh/pace"
	"golang.org/x/time/rate"
)

// LeastPacket is the size in bytes of the largest packet that every path must carry, without
// the headers of UDP and IP: QUIC needs it. MostPacket is the largest that is ever sent.
const (
	LeastPacket = 1200
	MostPacket  = 1452
)

// ErrMTU means that small packets reach a node and large ones do not.
var ErrMTU = errors.New("large packets do not get through")

// pingSizes are the packets that show what a path carries: one that every path does, the
// least for QUIC, and what is left of common MTUs.
var pingSizes = [...]int{64, LeastPacket, 1252, 1352, 1392, MostPacket}

const (
	// pongSize is the length of an answer: its tag, the nonce, the size of what came.
	pongSize   = 1 + nonceSize + 2
	pingRounds = 3
	pingWait   = 400 * time.Millisecond
)

// Reach is how large packets may be that reach a node.
type Reach struct {
	Passed int // the largest that did, in bytes without headers; 0: none
	Lost   int // the smallest that did not, although smaller ones did; 0: all did
}

// Fits reports whether the path carries what a mesh needs, or nothing is known of it.
func (r Reach) Fits() bool { return r.Passed == 0 || r.Passed >= LeastPacket }

// MTU returns the MTU of a path to that address that carries packets of this size.
func MTU(to netip.Addr, packet int) int {
	if to.Is4() {
		return packet + 28
	}
	return packet + 48
}

// measure sends packets of several sizes to a node and awaits its answers. Nothing else may
// use conn meanwhile. The kernel must not cut packets into fragments: QUIC has seen to that on
// a socket that it has used.
func measure(ctx context.Context, conn net.PacketConn, to netip.AddrPort) Reach {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never fails
	answered := map[int]bool{}
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	buf := make([]byte, 2048)
	for range pingRounds {
		for _, size := range pingSizes {
			if !answered[size] {
				// A packet that this machine itself can't send is lost like any other.
				_, _ = conn.WriteTo(append(append([]byte{tagPing}, nonce...), make([]byte, size-1-nonceSize)...), net.UDPAddrFromAddrPort(to))
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(pingWait))
		for len(answered) < len(pingSizes) && ctx.Err() == nil {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				break
			}
			if size, ok := parsePong(buf[:n], nonce); ok {
				answered[size] = true
			}
		}
		if len(answered) == len(pingSizes) || ctx.Err() != nil {
			break
		}
	}
	var r Reach
	for _, size := range pingSizes {
		switch {
		case answered[size]:
			r.Passed = size
		case r.Passed > 0 && r.Lost < r.Passed:
			r.Lost = size
		}
	}
	if r.Lost < r.Passed {
		r.Lost = 0
	}
	return r
}

// parsePong returns the size that the answer to a ping names.
func parsePong(b, nonce []byte) (size int, ok bool) {
	if len(b) != pongSize || b[0] != tagPong || !bytes.Equal(b[1:1+nonceSize], nonce) {
		return 0, false
	}
	size = int(binary.LittleEndian.Uint16(b[1+nonceSize:]))
	for _, sent := range pingSizes {
		if size == sent {
			return size, true
		}
	}
	return 0, false
}

// pings limits answers to pings, which anyone may send, from any address. An answer is smaller
// than its question, so this node helps nobody to flood another.
type pings struct {
	hosts *pace.Hosts
	all   *rate.Limiter
}

func newPings() *pings {
	return &pings{hosts: pace.New(10, 4*float64(len(pingSizes)), gate.MaxHosts), all: rate.NewLimiter(200, 400)}
}

// answer returns the answer to a ping, or nil.
func (p *pings) answer(b []byte, from net.Addr) []byte {
	if len(b) < pingSizes[0] || !p.hosts.Take(gate.HostOf(from), time.Now()) || !p.all.Allow() {
		return nil
	}
	return binary.LittleEndian.AppendUint16(append([]byte{tagPong}, b[1:1+nonceSize]...), uint16(len(b)))
}

// tooLarge names the MTU in the error of a handshake that got no answer, if small packets
// reach the node and come back.
func tooLarge(ctx context.Context, conn net.PacketConn, to netip.AddrPort, err error) error {
	r := measure(ctx, conn, to)
	switch {
	case r.Passed == 0:
		return err
	case r.Fits():
		return fmt.Errorf("%w: %s gets packets of %d bytes and answers small ones, but its large ones do not come back, so the MTU of the way back seems to be below %d: raise it on every tunnel, VPN and interface between there and here (%w)",
			ErrMTU, to, r.Passed, MTU(to.Addr(), LeastPacket), err)
	}
	return fmt.Errorf("%w: %s answers packets of %d bytes, but not those of %d, so the MTU of the path is below %d: raise it to %d or more on every tunnel, VPN and interface between here and there (%w)",
		ErrMTU, to, r.Passed, r.Lost, MTU(to.Addr(), r.Lost), MTU(to.Addr(), LeastPacket), err)
}
