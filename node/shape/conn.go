package shape

import (
	"net"
	"sync"
	"time"
)

// Conn is a socket that sends packets at a limited rate and with a delay. Like a switch,
// it drops packets that would be queued for too long.
type Conn struct {
	net.PacketConn
	link Link

	mu    sync.Mutex
	free  time.Time // when the link will have sent all that was written
	queue chan packet
	done  chan struct{}
	sent  sync.WaitGroup
}

type packet struct {
	bytes []byte
	to    net.Addr
	at    time.Time
}

// queued is how long packets may wait for the link.
const queued = 40 * time.Millisecond

// overhead is the number of bytes on the wire per packet beyond its payload.
const overhead = 42

// Wrap makes a Conn over a socket, which Close closes.
func Wrap(c net.PacketConn, link Link) *Conn {
	s := &Conn{PacketConn: c, link: link, queue: make(chan packet, 1<<14), done: make(chan struct{})}
	s.sent.Go(s.send)
	return s
}

// WriteTo implements net.PacketConn.
func (s *Conn) WriteTo(b []byte, to net.Addr) (int, error) {
	now := time.Now()
	s.mu.Lock()
	start := now
	if s.free.After(start) {
		start = s.free
	}
	if start.Sub(now) > queued {
		s.mu.Unlock()
		return len(b), nil // dropped, as in a network
	}
	if s.link.Rate > 0 {
		start = start.Add(time.Duration(uint64(len(b)+overhead) * 8 * uint64(time.Second) / s.link.Rate))
	}
	s.free = start
	s.mu.Unlock()
	select {
	case s.queue <- packet{append([]byte(nil), b...), to, start.Add(s.link.Delay)}:
	default: // dropped
	}
	return len(b), nil
}

// send sends packets when they are due, in the order in which they came.
func (s *Conn) send() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case p := <-s.queue:
			timer.Reset(time.Until(p.at))
			select {
			case <-timer.C:
			case <-s.done:
				return
			}
			_, _ = s.PacketConn.WriteTo(p.bytes, p.to) // a lost packet is lost, as in a network
		case <-s.done:
			return
		}
	}
}

// Close implements net.PacketConn.
func (s *Conn) Close() error {
	close(s.done)
	s.sent.Wait()
	return s.PacketConn.Close()
}
