package mesh

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/mesh/gate"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// Range is the numbers of one kind that a program works with.
type Range = identity.Range

// Wire is what this program speaks on the wire.
var Wire = identity.Wire

// Numbers are what programs of different versions must have in common to work together: what
// they speak on the wire, keep on disk, which bits they compute, and which commands of the plan
// they know. Two nodes use the highest number of a kind that both have.
type Numbers struct {
	Wire      Range `json:"wire"`
	Disk      Range `json:"disk"`
	Computing Range `json:"computing"`
	// Plan is not in gossip. The zero Range does not count as 1: a program has not said it.
	Plan Range `json:"plan,omitzero"`
}

// tags puts the numbers into gossip.
func (n Numbers) tags(to map[string]string) {
	to["wire"], to["disk"], to["computing"] = n.Wire.String(), n.Disk.String(), n.Computing.String()
}

// numbersOf reads them from gossip. What can't be read counts as from before there were
// numbers.
func numbersOf(tags map[string]string) (n Numbers) {
	n.Wire, _ = identity.ParseRange(tags["wire"])
	n.Disk, _ = identity.ParseRange(tags["disk"])
	n.Computing, _ = identity.ParseRange(tags["computing"])
	return n
}

// VersionError means that a node has no version of the mesh's protocols in common with this one.
// Version is "" and Wire the zero Range if it does not say what it runs.
type VersionError struct {
	Version string
	Wire    Range
}

func (e *VersionError) Error() string { return "it " + e.runs() }

func (e *VersionError) runs() string {
	switch {
	case e.Wire == Range{}:
		return "runs a version of hopmesh that speaks none of this one's protocols"
	case e.Version == "":
		return fmt.Sprintf("runs a version of hopmesh that speaks %s on the wire", e.Wire)
	}
	return fmt.Sprintf("runs hopmesh %s, which speaks %s on the wire", e.Version, e.Wire)
}

// And returns the sentence on a node that has nothing in common with one of this version.
func (e *VersionError) And(version string, wire Range) string {
	return fmt.Sprintf("%s, and this node runs hopmesh %s, which speaks %s: install the same version on both", e.runs(), version, wire)
}

// reasonVersion is what a connection is ended with, to a node of another version.
func reasonVersion(version string, wire Range) string {
	return fmt.Sprintf("hopmesh %s wire %s", version, wire)
}

func parseReason(s string) *VersionError {
	version, wire, ok := strings.Cut(strings.TrimPrefix(s, "hopmesh "), " wire ")
	r, err := identity.ParseRange(wire)
	if !ok || err != nil || !plainVersion(version) {
		return new(VersionError)
	}
	return &VersionError{version, r}
}

// plainVersion reports whether a version that another node has sent may be shown.
func plainVersion(s string) bool {
	return len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// noProtocol is TLS' alert of a server that knows none of the protocols that it is offered, as
// QUIC sends it.
const noProtocol quic.TransportErrorCode = 0x100 + 120

// sightingLasts is how long it counts that a node spoke another version. Nodes repeat it, as
// they seek each other.
const sightingLasts = time.Minute

// sighting is a node that spoke another version.
type sighting struct {
	what *VersionError
	at   time.Time
}

// sights are the nodes that spoke another version.
type sights struct {
	mu   sync.Mutex
	seen map[string]sighting
}

// add records that a proven node speaks another version.
func (s *sights) add(id string, what *VersionError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, in := s.seen[id]; in && what.Version == "" && old.what.Version != "" && time.Since(old.at) < sightingLasts {
		what = old.what // which says more
	}
	if s.seen == nil {
		s.seen = map[string]sighting{}
	}
	s.seen[id] = sighting{what, time.Now()}
}

// remove forgets a node that is back in a version that this one speaks.
func (s *sights) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, id)
}

// of returns what a node spoke lately, or nil.
func (s *sights) of(id string) *VersionError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, in := s.seen[id]; in && time.Since(one.at) < sightingLasts {
		return one.what
	}
	return nil
}

// all lists the nodes that spoke another version lately.
func (s *sights) all() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range s.seen {
		if time.Since(one.at) < sightingLasts {
			ids = append(ids, id)
		}
	}
	return ids
}

// turnAway ends a connection of another version with what this node speaks.
func (d *joinDesk) turnAway(conn *quic.Conn) {
	m := d.mesh
	state := conn.ConnectionState().TLS
	protocol, n := identity.Protocol(state.NegotiatedProtocol)
	if n == 0 {
		_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeProtocol), "unknown protocol")
		return
	}
	_ = conn.CloseWithError(quic.ApplicationErrorCode(CodeVersion), reasonVersion(m.cfg.Version, m.cfg.Numbers.Wire))
	what := &VersionError{Wire: Range{Min: n, Max: n}}
	name := ""
	if id, err := identity.PeerID(state); err == nil && (protocol == identity.ALPNControl || protocol == identity.ALPNBulk) {
		m.members.sights.add(id, what)
		p, _ := m.Member(id)
		name = p.Name
	}
	if d.warned.Take(gate.HostOf(conn.RemoteAddr()), time.Now()) {
		m.cfg.Log.Warn("a node of another version was turned away", "peer", name, "from", conn.RemoteAddr(), "err", "it "+what.And(m.cfg.Version, m.cfg.Numbers.Wire))
	}
}
