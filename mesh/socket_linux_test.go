package mesh

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// sockets are one that joins packets, and another to send from.
func sockets(t *testing.T) (to *joiningSocket, from *net.UDPConn) {
	t.Helper()
	listen := func() *net.UDPConn {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		must(t, c.SetDeadline(time.Now().Add(10*time.Second)))
		return c
	}
	to, ok := joining(listen()).(*joiningSocket)
	if !ok {
		t.Fatal("the kernel joins no packets: it is older than Linux 5.0")
	}
	return to, listen()
}

// cutInto asks the kernel to cut what is sent into packets of a size.
func cutInto(size uint16) []byte {
	const segment = 103 // UDP_SEGMENT
	b := make([]byte, unix.CmsgSpace(2))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(2)))
	binary.NativeEndian.PutUint32(b[8:], unix.IPPROTO_UDP)
	binary.NativeEndian.PutUint32(b[12:], segment)
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], size)
	return b
}

// batch has room for some packets of so many bytes.
func batch(packets, size int) []ipv4.Message {
	ms := make([]ipv4.Message, packets)
	for i := range ms {
		ms[i].Buffers, ms[i].OOB = [][]byte{make([]byte, size)}, make([]byte, 128)
	}
	return ms
}

func TestJoinedPacketsAreTakenApart(t *testing.T) {
	to, from := sockets(t)
	whole := make([]byte, 3500)
	for i := range whole {
		whole[i] = byte(i / 7)
	}
	there := to.LocalAddr().(*net.UDPAddr)
	_, _, err := from.WriteMsgUDP(whole, cutInto(1000), there)
	must(t, err)
	_, err = from.WriteToUDP(nil, there)
	must(t, err)
	_, err = from.WriteToUDP(whole[:1500], there)
	must(t, err)

	// As many as there is room for, and no more than came together; what has no room in
	// its message is cut, as the kernel does.
	want := [][][]byte{{whole[:1000], whole[1000:2000], whole[2000:3000]}, {whole[3000:]}, {nil}, {whole[:1452]}}
	ms := batch(3, 1452)
	for turn, packets := range want {
		n, err := to.ReadBatch(ms, 0)
		must(t, err)
		if n != len(packets) {
			t.Fatalf("turn %d brings %d packets, not %d", turn, n, len(packets))
		}
		for i, p := range packets {
			m := &ms[i]
			if got := m.Buffers[0][:m.N]; !bytes.Equal(got, p) {
				t.Errorf("turn %d, packet %d: %d bytes of %d, or others", turn, i, len(got), len(p))
			}
			if m.Addr.String() != from.LocalAddr().String() {
				t.Errorf("turn %d, packet %d comes from %v, not %v", turn, i, m.Addr, from.LocalAddr())
			}
		}
	}
	must(t, to.SetReadDeadline(time.Now()))
	if n, err := to.ReadBatch(ms, 0); err == nil {
		t.Errorf("%d packets more", n)
	}
}

// What the kernel says of joined packets, each of them is handed on with: quic-go reads
// marks of congestion there.
func TestMarksOfJoinedPackets(t *testing.T) {
	to, from := sockets(t)
	raw, err := to.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTOS, 1) }))
	must(t, err)
	raw, err = from.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, 3) }))
	must(t, err)
	_, _, err = from.WriteMsgUDP(make([]byte, 3000), cutInto(1000), to.LocalAddr().(*net.UDPAddr))
	must(t, err)
	ms := batch(8, 1452)
	n, err := to.ReadBatch(ms, 0)
	must(t, err)
	if n != 3 {
		t.Fatalf("%d packets came of 3", n)
	}
	for i, m := range ms[:n] {
		marked := false
		for rest := m.OOB[:m.NN]; len(rest) > 0; {
			h, data, after, err := unix.ParseOneSocketControlMessage(rest)
			must(t, err)
			marked = marked || h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS && data[0] == 3
			rest = after
		}
		if !marked {
			t.Errorf("packet %d has lost its mark", i)
		}
	}
}

// Another's connection stays as it is.
func TestOnlySocketsJoin(t *testing.T) {
	other := struct{ net.PacketConn }{}
	if got := joining(other); got != other {
		t.Errorf("it has become %T", got)
	}
}

func TestReadingJoinedPacketsAllocatesNothing(t *testing.T) {
	to, from := sockets(t)
	whole, cut, there := make([]byte, 3000), cutInto(1000), to.LocalAddr().(*net.UDPAddr).AddrPort()
	ms := batch(8, 1452)
	turn := func() {
		if _, _, err := from.WriteMsgUDPAddrPort(whole, cut, there); err != nil {
			t.Fatal(err)
		}
		if n, err := to.ReadBatch(ms, 0); n != 3 || err != nil {
			t.Fatal(n, err)
		}
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n > 0 {
		t.Errorf("a turn takes memory %.0f times", n)
	}
}
