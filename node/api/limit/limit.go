// Package limit slows down hosts that fail again and again. It keeps a number for each, and for no
// more hosts than it has room for.
package limit

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// burst is how many failures a host may have at once, and each how long one counts.
	burst = 10
	each  = 6 * time.Second
	// maxHosts bounds the hosts that are known. Each takes some 100 bytes.
	maxHosts = 4096
)

// Failures counts the failures of hosts. The zero value has none. It may be used from many
// goroutines.
type Failures struct {
	mu sync.Mutex
	// until is when the failures of a host will all be forgotten.
	until map[netip.Prefix]time.Time
}

// Wait returns how long a host must wait until it may try again; 0: not at all.
func (f *Failures) Wait(host netip.Addr, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, known := f.until[network(host)]
	if !known {
		return 0
	}
	return max(0, until.Sub(now)-(burst-1)*each)
}

// Note counts a failure of a host.
func (f *Failures) Note(host netip.Addr, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.until == nil {
		f.until = map[netip.Prefix]time.Time{}
	}
	key := network(host)
	before, known := f.until[key]
	if !known && len(f.until) >= maxHosts {
		f.forget(now)
	}
	if before.Before(now) {
		before = now
	}
	f.until[key] = before.Add(each)
}

// forget makes room: it drops hosts with no more to be forgotten than the mean.
func (f *Failures) forget(now time.Time) {
	var sum time.Duration
	for _, until := range f.until {
		sum += max(0, until.Sub(now))
	}
	mean := now.Add(sum / time.Duration(len(f.until)))
	for host, until := range f.until {
		if !until.After(mean) {
			delete(f.until, host)
		}
	}
}

// network returns what counts as one host: an IPv4 address, or the network that one holder of IPv6
// addresses has at least.
func network(host netip.Addr) netip.Prefix {
	host = host.Unmap().WithZone("")
	bits := 32
	if host.Is6() {
		bits = 64
	}
	p, err := host.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address: all such are one host
	}
	return p
}
