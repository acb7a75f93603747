package mesh

import (
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	idleTimeout      = 20 * time.Second
	keepAlive        = 5 * time.Second
	handshakeTimeout = 4 * time.Second
	maxStreams       = 256

	// windowBudget bounds the sum of the receive windows beyond each connection's
	// initial window.
	windowBudget = 1 << 30
)

// quicConfig returns the settings of a connection of this class. A listener cannot know
// the class before the handshake and uses bulk's: windows only grow when data is read.
func quicConfig(c class, w *windows) *quic.Config {
	q := &quic.Config{
		HandshakeIdleTimeout: handshakeTimeout,
		// The least that QUIC may begin with. It finds out by itself how much larger packets
		// may be.
		InitialPacketSize:     LeastPacket,
		MaxIdleTimeout:        idleTimeout,
		KeepAlivePeriod:       keepAlive,
		MaxIncomingStreams:    maxStreams,
		MaxIncomingUniStreams: -1,

		AllowConnectionWindowIncrease: w.take,
	}
	if c == bulk {
		q.InitialStreamReceiveWindow = 2 << 20
		q.MaxStreamReceiveWindow = 16 << 20
		q.InitialConnectionReceiveWindow = 4 << 20
		q.MaxConnectionReceiveWindow = 64 << 20
	}
	return q
}

// windows bounds the sum of all receive windows, so that many peers cannot make this
// node promise more memory than it has.
type windows struct {
	mu    sync.Mutex
	total uint64
	given map[*quic.Conn]uint64
}

func newWindows() *windows { return &windows{given: map[*quic.Conn]uint64{}} }

// take is called by quic-go from a connection's own goroutine.
func (w *windows) take(c *quic.Conn, delta uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.total+delta > windowBudget {
		return false
	}
	w.total += delta
	w.given[c] += delta
	return true
}

// release returns a connection's share to the budget when it has ended.
func (w *windows) release(c *quic.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total -= w.given[c]
	delete(w.given, c)
}
