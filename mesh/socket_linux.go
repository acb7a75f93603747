package mesh

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	// mostJoined is the largest possible datagram, and so the most that the kernel can
	// join.
	mostJoined = 1 << 16
	// mostControl is room for a datagram's control messages: its ECN marks, destination
	// and segment size.
	mostControl = 128
)

// joiningSocket reads several consecutive packets of one peer at a time through UDP
// generic receive offload (GRO) and splits them for quic-go, which would read each
// separately. On loopback, packets sent together are never split; on a network the
// driver joins them again. It is quic-go's OOBCapablePacketConn with a ReadBatch of its
// own, which only one goroutine calls.
type joiningSocket struct {
	*net.UDPConn

	joined  [mostJoined]byte
	control [mostControl]byte
	rest    []byte // of joined: not yet returned
	size    int    // of each packet in joined but the last
	said    []byte // of control
	flags   int
	from    netip.AddrPort
	addr    *net.UDPAddr // from as a net.Addr for quic-go; never modified
}

// joining enables GRO on the socket if the kernel supports it, which needs Linux 5.0.
// Otherwise it returns the socket unchanged.
func joining(c net.PacketConn) net.PacketConn {
	udp, ok := c.(*net.UDPConn)
	if !ok {
		return c
	}
	raw, err := udp.SyscallConn()
	if err != nil {
		return c
	}
	refused := err
	err = raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	})
	if err != nil || refused != nil {
		return c
	}
	return &joiningSocket{UDPConn: udp}
}

// ReadBatch fills messages with one packet each, at least one. It waits only if no
// packet of the last read is left.
func (s *joiningSocket) ReadBatch(ms []ipv4.Message, _ int) (int, error) {
	if len(s.rest) == 0 {
		n, said, flags, from, err := s.ReadMsgUDPAddrPort(s.joined[:], s.control[:])
		if err != nil {
			return 0, err
		}
		if s.addr == nil || from != s.from {
			s.from, s.addr = from, net.UDPAddrFromAddrPort(from)
		}
		s.rest, s.said, s.flags = s.joined[:n], s.control[:said], flags
		if s.size = joinedBy(s.said); s.size == 0 {
			s.size = n
		}
	}
	filled := 0
	for filled < len(ms) && (len(s.rest) > 0 || filled == 0) {
		m, packet := &ms[filled], s.rest[:min(s.size, len(s.rest))]
		s.rest = s.rest[len(packet):]
		m.Addr, m.Flags = s.addr, s.flags
		m.N, m.NN = copy(m.Buffers[0], packet), copy(m.OOB, s.said)
		filled++
	}
	return filled, nil
}

// joinedBy returns the size of the packets joined in a datagram, or 0 if none were
// joined.
func joinedBy(said []byte) int {
	for len(said) > 0 {
		h, data, rest, err := unix.ParseOneSocketControlMessage(said)
		if err != nil {
			return 0
		}
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(data) >= 4 {
			return int(binary.NativeEndian.Uint32(data))
		}
		said = rest
	}
	return 0
}
