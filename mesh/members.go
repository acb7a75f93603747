package mesh

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"
)

// Status is a node's state according to gossip. It is a rumour: the plan decides
// whether a node is a member.
type Status string

const (
	Alive  Status = "alive"
	Failed Status = "failed"
	Left   Status = "left"
)

// Member is a node as gossip knows it.
type Member struct {
	ID, Name, Version string
	Numbers           Numbers
	Addr              netip.AddrPort
	Status            Status
	Since             time.Time // when this node first saw that status
}

// Change is one event of gossip.
type Change struct {
	ID, Name string
	Status   Status // "" when gossip forgot the node
}

// members is the table that gossip fills. known holds earlier addresses, for nodes that
// gossip has not heard of yet.
type members struct {
	events chan serf.Event
	stop   chan struct{} // closed once Serf is shut down

	mu    sync.RWMutex
	byID  map[string]Member
	known map[string]netip.AddrPort
	// parted are the nodes that stopped, by their own word; heeded is when each last said so.
	parted map[string]parting
	heeded map[string]time.Time
	words  chan word
	// sights are the nodes that spoke another version.
	sights sights
}

func (t *members) init(peers []Peer) {
	t.events, t.stop = make(chan serf.Event, 1024), make(chan struct{})
	t.byID, t.known = map[string]Member{}, map[string]netip.AddrPort{}
	t.parted, t.heeded, t.words = map[string]parting{}, map[string]time.Time{}, make(chan word, 64)
	for _, p := range peers {
		t.known[p.ID] = p.Addr
	}
}

func (t *members) address(id string) (netip.AddrPort, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if m, ok := t.byID[id]; ok {
		return m.Addr, true
	}
	a, ok := t.known[id]
	return a, ok
}

// watchMembers is the only reader of Serf's events, and of what connections say. It must never
// block.
func (m *Mesh) watchMembers() {
	for {
		var me serf.MemberEvent
		select {
		case w := <-m.members.words:
			c, news := m.members.take(w)
			if news && m.cfg.OnChange != nil {
				m.cfg.OnChange(c)
			}
			continue
		case e := <-m.members.events:
			var ok bool
			if me, ok = e.(serf.MemberEvent); !ok {
				continue
			}
		case <-m.members.stop:
			return
		}
		for _, sm := range me.Members {
			status, news := m.learn(sm, me.Type)
			c := Change{ID: sm.Name, Name: sm.Tags["name"], Status: status}
			if news && m.cfg.OnChange != nil && c.ID != m.ID() {
				m.cfg.OnChange(c)
			}
		}
	}
}

// refresh takes over what Serf knew before events flowed.
func (m *Mesh) refresh() {
	for _, sm := range m.serf.Members() {
		m.learn(sm, serf.EventMemberJoin)
	}
}

// learn takes over an event of gossip, and reports whether it is news: not, if a node has failed
// that had said so.
func (m *Mesh) learn(sm serf.Member, what serf.EventType) (now Status, news bool) {
	t := &m.members
	t.mu.Lock()
	defer t.mu.Unlock()
	parted := what != serf.EventMemberUpdate && t.settle(sm.Name) // an update may be older than a goodbye
	if what == serf.EventMemberReap {
		delete(t.byID, sm.Name)
		delete(t.known, sm.Name)
		delete(t.heeded, sm.Name)
		return "", true
	}
	ip, _ := netip.AddrFromSlice(sm.Addr)
	n := Member{
		ID: sm.Name, Name: sm.Tags["name"], Version: sm.Tags["version"], Numbers: numbersOf(sm.Tags),
		Addr:   netip.AddrPortFrom(ip.Unmap(), sm.Port),
		Status: statusOf(sm.Status), Since: time.Now(),
	}
	if old, ok := t.byID[n.ID]; ok && (old.Status == n.Status || parted && n.Status == Failed) {
		n.Since = old.Since
	}
	t.byID[n.ID] = n
	return t.view(n).Status, !parted || n.Status != Failed
}

func statusOf(s serf.MemberStatus) Status {
	switch s {
	case serf.StatusAlive, serf.StatusLeaving:
		return Alive
	case serf.StatusLeft:
		return Left
	}
	return Failed
}

// Members lists all nodes that gossip knows, including this one, by id.
func (m *Mesh) Members() []Member {
	m.members.mu.RLock()
	defer m.members.mu.RUnlock()
	list := make([]Member, 0, len(m.members.byID))
	for _, n := range m.members.byID {
		list = append(list, m.members.view(n))
	}
	slices.SortFunc(list, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Member returns what gossip knows of one node.
func (m *Mesh) Member(id string) (Member, bool) {
	m.members.mu.RLock()
	defer m.members.mu.RUnlock()
	n, ok := m.members.byID[id]
	return m.members.view(n), ok
}

// Unlike returns what is wrong if a node has no version on the wire in common with this one, or
// "": a sentence that begins after the node's name.
func (m *Mesh) Unlike(id string) string {
	own := m.cfg.Numbers.Wire
	if what := m.members.sights.of(id); what != nil {
		return what.And(m.cfg.Version, own)
	}
	n, in := m.Member(id)
	if _, ok := n.Numbers.Wire.Common(own); !in || ok || id == m.ID() {
		return ""
	}
	return (&VersionError{n.Version, n.Numbers.Wire}).And(m.cfg.Version, own)
}

// Strangers lists the nodes that spoke another version lately.
func (m *Mesh) Strangers() []string { return m.members.sights.all() }

const (
	seekSoon  = time.Second
	seekLater = 10 * time.Second
)

// seekPeers keeps trying to join gossip with every known node that is not alive. A
// single attempt after a restart at a new address usually fails, because the others
// still believe the old address to be alive.
func (m *Mesh) seekPeers() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-m.ctx.Done():
			return
		}
		settled := m.cfg.Settled == nil || m.cfg.Settled()
		if absent := m.absent(!settled); len(absent) > 0 {
			// Serf tries one after another. The error names all failures, and the loop
			// retries them.
			_, _ = m.serf.Join(absent, true)
		}
		if settled {
			timer.Reset(seekLater)
		} else {
			timer.Reset(seekSoon)
		}
	}
}

// absent lists "id/address" of the nodes to seek: those not alive, or all.
func (m *Mesh) absent(all bool) []string {
	t := &m.members
	t.mu.RLock()
	defer t.mu.RUnlock()
	seek := maps.Clone(t.known)
	for id, n := range t.byID {
		seek[id] = n.Addr
		if n.Status == Left || (t.view(n).Status == Alive && !all) {
			delete(seek, id)
		}
	}
	delete(seek, m.ID())
	var list []string
	if all {
		for _, a := range m.cfg.Seeds {
			if a != m.cfg.Advertise {
				list = append(list, a.String())
			}
		}
	}
	for id, a := range seek {
		if m.cfg.Allow(id) == nil {
			list = append(list, id+"/"+a.String())
		}
	}
	slices.Sort(list)
	return list
}

// Peers lists the last known address, from gossip or from before, of every node except
// this one and those that left. They are the nodes to seek, and to store for the next
// start.
func (m *Mesh) Peers() []Peer {
	m.members.mu.RLock()
	defer m.members.mu.RUnlock()
	at := maps.Clone(m.members.known)
	for id, n := range m.members.byID {
		at[id] = n.Addr
		if n.Status == Left {
			delete(at, id)
		}
	}
	delete(at, m.ID())
	list := make([]Peer, 0, len(at))
	for id, a := range at {
		list = append(list, Peer{ID: id, Addr: a})
	}
	slices.SortFunc(list, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Leave announces that this node leaves for good.
func (m *Mesh) Leave() error {
	if err := m.serf.Leave(); err != nil {
		return fmt.Errorf("leave gossip: %w", err)
	}
	return nil
}

// Forget removes a node from gossip. A node that is alive comes back by itself, unless
// it no longer holds the gossip key.
func (m *Mesh) Forget(id string) error {
	m.members.mu.Lock()
	delete(m.members.known, id)
	m.members.mu.Unlock()
	if err := m.serf.RemoveFailedNodePrune(id); err != nil {
		return fmt.Errorf("remove node %s from gossip: %w", id, err)
	}
	return nil
}

// Resolve turns HOST:PORT into an address to dial.
func Resolve(ctx context.Context, hostport string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no HOST:PORT: %w", hostport, err)
	}
	if a, err := netip.ParseAddrPort(hostport); err == nil {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
	}
	p, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("port of %q: %w", hostport, err)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("look up %q: %w", host, err)
	}
	return netip.AddrPortFrom(addrs[0].Unmap(), uint16(p)), nil
}
