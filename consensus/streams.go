package consensus

import (
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// streams presents the Layer to Raft's transport and tracks the open streams. When the
// transport closes, it leaves accepted streams to handlers that wait on them for ever,
// and waits itself for dials to peers that are gone; closing the streams here ends
// both.
type streams struct {
	Layer

	mu     sync.Mutex
	open   map[*stream]struct{}
	closed chan struct{}
	shut   bool
}

var _ raft.StreamLayer = (*streams)(nil)

func newStreams(l Layer) *streams {
	return &streams{Layer: l, open: map[*stream]struct{}{}, closed: make(chan struct{})}
}

// Accept is called by the transport only.
func (s *streams) Accept() (net.Conn, error) {
	c, err := s.Layer.Accept()
	if err != nil {
		return nil, err
	}
	return s.keep(c)
}

// Dial returns at once when the streams are closed. The underlying dial then ends by
// its timeout, or when the owner of the Layer closes the network.
func (s *streams) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		c, err := s.Layer.Dial(string(to), timeout)
		select {
		case done <- result{c, err}:
		case <-s.closed:
			if err == nil {
				_ = c.Close()
			}
		}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, r.err
		}
		return s.keep(r.conn)
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *streams) keep(c net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	kept := &stream{Conn: c, of: s}
	s.open[kept] = struct{}{}
	return kept, nil
}

// Close ends the listener and every stream.
func (s *streams) Close() error {
	s.mu.Lock()
	var list []*stream
	if !s.shut {
		s.shut = true
		close(s.closed)
		for c := range s.open {
			list = append(list, c)
		}
	}
	s.mu.Unlock()
	for _, c := range list {
		_ = c.Close()
	}
	return s.Layer.Close()
}

// stream is one stream tracked for Close.
type stream struct {
	net.Conn
	of *streams
}

func (c *stream) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
