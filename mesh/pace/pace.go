// Package pace limits how often each of many hosts may do something, in memory that no number of hosts
// exceeds.
package pace

import (
	"net/netip"
	"sync"
	"time"
)

// Hosts limits how often each host may do something, in bounded memory.
type Hosts struct {
	rate, burst float64
	room        int

	mu    sync.Mutex
	hosts map[netip.Prefix]allowance
	rest  allowance // of all hosts for which there is no room, together
	swept time.Time
}

// allowance is how often a host may act at once, and when that was so.
type allowance struct {
	left float64
	at   time.Time
}

// New returns Hosts that may each act so often a second, and so often at once. Those for which there is no
// room share what one may.
func New(perSecond, burst float64, room int) *Hosts {
	return &Hosts{rate: perSecond, burst: burst, room: room, hosts: map[netip.Prefix]allowance{}, rest: allowance{left: burst}}
}

// Take reports whether the host may act now, and counts it if so.
func (h *Hosts) Take(host netip.Prefix, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, in := h.hosts[host]
	if !in {
		h.sweep(now)
		if len(h.hosts) >= h.room {
			return h.spend(&h.rest, now)
		}
		a = allowance{h.burst, now}
	}
	ok := h.spend(&a, now)
	h.hosts[host] = a
	return ok
}

func (h *Hosts) spend(a *allowance, now time.Time) bool {
	a.left, a.at = min(h.burst, a.left+now.Sub(a.at).Seconds()*h.rate), now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

// sweep forgets hosts that may do again all that they may at once. It is called with mu held
// and does nothing while there is room, or if it was done lately.
func (h *Hosts) sweep(now time.Time) {
	full := time.Duration(h.burst / h.rate * float64(time.Second))
	if len(h.hosts) < h.room || now.Sub(h.swept) < full/4 {
		return
	}
	h.swept = now
	for host, a := range h.hosts {
		if now.Sub(a.at) >= full {
			delete(h.hosts, host)
		}
	}
}
