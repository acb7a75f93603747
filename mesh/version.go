package mesh

import (
	"fmt"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/quic-go/quic-go"
)

// Range is the numbers of one kind that a program works with.
type Range = identity.Range

// Wire is what this program speaks on the wire.
var Wire = identity.Wire

// Numbers are what programs of different versions must have in common to work together: what
// they speak on the wire, keep on disk, and which bits they compute. Two nodes use the highest
// number of a kind that both have.
type Numbers struct {
	Wire      Range `json:"wire"`
	Disk      Range `json:"disk"`
	Computing Range `json:"computing"`
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

// sight records that a proven node speaks another version.
func (m *Mesh) sight(id string, what *VersionError) {
	m.members.mu.Lock()
	defer m.members.mu.Unlock()
	if old, in := m.members.sights[id]; in && what.Version == "" && old.what.Version != "" && time.Since(old.at) < sightingLasts {
		what = old.what // which says more
	}
	m.members.sights[id] = sighting{what, time.Now()}
}

// unsight forgets it, as the node is back in a version that this one speaks.
func (m *Mesh) unsight(id string) {
	m.members.mu.Lock()
	defer m.members.mu.Unlock()
	delete(m.members.sights, id)
}

// Unlike returns what is wrong if a node has no version on the wire in common with this one, or
// "": a sentence that begins after the node's name.
func (m *Mesh) Unlike(id string) string {
	m.members.mu.RLock()
	defer m.members.mu.RUnlock()
	if id == m.ID() {
		return ""
	}
	own := m.cfg.Numbers.Wire
	if s, in := m.members.sights[id]; in && time.Since(s.at) < sightingLasts {
		return s.what.And(m.cfg.Version, own)
	}
	n, in := m.members.byID[id]
	if _, ok := n.Numbers.Wire.Common(own); !in || ok {
		return ""
	}
	return (&VersionError{n.Version, n.Numbers.Wire}).And(m.cfg.Version, own)
}

// Strangers lists the nodes that were seen to speak another version lately.
func (m *Mesh) Strangers() (ids []string) {
	m.members.mu.RLock()
	defer m.members.mu.RUnlock()
	for id, s := range m.members.sights {
		if time.Since(s.at) < sightingLasts {
			ids = append(ids, id)
		}
	}
	return ids
}

// turnAway ends a connection of another version with what this node speaks.
func (m *Mesh) turnAway(conn *quic.Conn) {
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
		m.sight(id, what)
		p, _ := m.Member(id)
		name = p.Name
	}
	if m.joins.warned.take(hostOf(conn.RemoteAddr()), time.Now()) {
		m.cfg.Log.Warn("a node of another version was turned away", "peer", name, "from", conn.RemoteAddr(), "err", "it "+what.And(m.cfg.Version, m.cfg.Numbers.Wire))
	}
}

// unlikeNewcomer returns a refusal of a newcomer that speaks no version of this node's, or nil.
func (m *Mesh) unlikeNewcomer(r JoinRequest) error {
	if _, ok := r.Numbers.Wire.Common(m.cfg.Numbers.Wire); ok {
		return nil
	}
	version := r.Version
	if !plainVersion(version) {
		version = ""
	}
	m.cfg.Log.Warn("refused a newcomer of another version", "name", r.Name, "err", "it "+(&VersionError{version, r.Numbers.Wire}).And(m.cfg.Version, m.cfg.Numbers.Wire))
	return Refuse(RefusedVersion, "it runs hopmesh %s, which speaks %s on the wire, and this node hopmesh %s, which speaks %s: install the mesh's version here",
		m.cfg.Version, m.cfg.Numbers.Wire, version, r.Numbers.Wire)
}
