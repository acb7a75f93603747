package mesh

import (
	"sync/atomic"
	"time"
)

var linkNumbers atomic.Uint64

// Traffic is what went over one connection to a peer so far, with QUIC's own part and what was
// sent again, without the headers of UDP and IP.
type Traffic struct {
	Peer string
	// Connection is a number that no other connection of this process has.
	Connection     uint64
	Sent, Received uint64 // bytes
	RTT            time.Duration
}
