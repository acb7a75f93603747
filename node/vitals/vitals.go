// Package vitals says how the nodes of a mesh are at this moment: how much memory each takes,
// and how fast its links carry data. Each node answers for itself; nobody counts while nobody
// asks.
package vitals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
)

const (
	call = "vitals"
	// patience is how long one node may keep the others' answers back.
	patience = time.Second
	// span is the least time over which rates are counted.
	span = time.Second
	// maxLinks bounds what is believed of another node.
	maxLinks = 1024
	// longest bounds the text that is believed of another node, in bytes: ids and reasons.
	longest = 200
)

// Mesh is what vitals need of the mesh.
type Mesh interface {
	ID() string
	Members() []mesh.Member
	Traffic() []mesh.Traffic
	Call(ctx context.Context, peer, method string, body []byte) ([]byte, error)
	Handle(method string, h mesh.CallHandler)
}

// Vitals reports on this node, and asks the others. Its methods may be called from any goroutine.
type Vitals struct {
	mesh  Mesh
	bound uint64 // of this node's memory; 0: none

	mu     sync.Mutex
	last   time.Time
	counts map[uint64]mesh.Traffic // at last, by connection
	links  []link                  // over the span that ended then
}

// report is what a node says of itself.
type report struct {
	Memory uint64 `json:"memory"`
	Bound  uint64 `json:"bound,omitempty"`
	Links  []link `json:"links"`
}

// link is a node's connections to one peer.
type link struct {
	Peer string        `json:"peer"`
	RTT  time.Duration `json:"rtt"`
	// Sent and Received are bytes a second.
	Sent     float64 `json:"sent"`
	Received float64 `json:"received"`
}

// New registers the call by which others ask this node. Its memory is bounded by bound, or not
// at all if that is 0.
func New(m Mesh, bound uint64) *Vitals {
	v := &Vitals{mesh: m, bound: bound}
	m.Handle(call, func(context.Context, string, []byte) ([]byte, error) { return json.Marshal(v.own()) })
	return v
}

// own is this node's report. Rates are those since it was asked before, if that is long enough
// ago, and else what they were then.
func (v *Vitals) own() report {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.last.IsZero() || now.Sub(v.last) >= span {
		v.count(v.mesh.Traffic(), now)
	}
	return report{Memory: budget.Resident(), Bound: v.bound, Links: slices.Clone(v.links)}
}

// count takes the traffic so far.
func (v *Vitals) count(traffic []mesh.Traffic, now time.Time) {
	seconds := now.Sub(v.last).Seconds()
	first := v.last.IsZero()
	before := v.counts
	v.last, v.counts, v.links = now, make(map[uint64]mesh.Traffic, len(traffic)), []link{}
	slices.SortFunc(traffic, func(a, b mesh.Traffic) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Connection, b.Connection))
	})
	for _, t := range traffic {
		v.counts[t.Connection] = t
		if n := len(v.links); n == 0 || v.links[n-1].Peer != t.Peer {
			v.links = append(v.links, link{Peer: t.Peer})
		}
		l := &v.links[len(v.links)-1]
		if t.RTT > 0 && (l.RTT == 0 || t.RTT < l.RTT) {
			l.RTT = t.RTT
		}
		if !first {
			l.Sent += float64(t.Sent-before[t.Connection].Sent) / seconds
			l.Received += float64(t.Received-before[t.Connection].Received) / seconds
		}
	}
}

var errSilent = errors.New("it does not answer")

// All asks each of these nodes, by id, and returns what they say with their names. A node that
// does not answer in time is named with the reason.
func (v *Vitals) All(ctx context.Context, names map[string]string) []api.NodeVitals {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	alive := map[string]bool{v.mesh.ID(): true}
	for _, p := range v.mesh.Members() {
		alive[p.ID] = alive[p.ID] || p.Status == mesh.Alive
	}
	list := make([]api.NodeVitals, 0, len(names))
	var wg sync.WaitGroup
	var mu sync.Mutex
	for id, name := range names {
		wg.Go(func() {
			n := api.NodeVitals{Name: name, ID: id, Links: []api.Link{}}
			r, err := report{}, errSilent
			if alive[id] {
				r, err = v.ask(ctx, id)
			}
			if err != nil {
				n.Error = err.Error()
				if len(n.Error) > longest {
					n.Error = strings.ToValidUTF8(n.Error[:longest], "") + "…"
				}
			} else {
				n.MemoryUsed, n.MemoryBound = r.Memory, r.Bound
				for _, l := range r.Links {
					n.Links = append(n.Links, api.Link{To: cmp.Or(names[l.Peer], l.Peer), RTTSeconds: l.RTT.Seconds(), SentPerSecond: l.Sent, ReceivedPerSecond: l.Received})
				}
			}
			mu.Lock()
			defer mu.Unlock()
			list = append(list, n)
		})
	}
	wg.Wait()
	slices.SortFunc(list, func(a, b api.NodeVitals) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list
}

func (v *Vitals) ask(ctx context.Context, id string) (report, error) {
	if id == v.mesh.ID() {
		return v.own(), nil
	}
	b, err := v.mesh.Call(ctx, id, call, nil)
	if err != nil {
		return report{}, err
	}
	return decode(b)
}

// decode reads what another node says of itself.
func decode(b []byte) (report, error) {
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		return report{}, fmt.Errorf("its answer can't be read: %w", err)
	}
	if len(r.Links) > maxLinks {
		return report{}, fmt.Errorf("its answer has %d links, of at most %d", len(r.Links), maxLinks)
	}
	for _, l := range r.Links {
		if l.RTT < 0 || l.Sent < 0 || l.Received < 0 {
			return report{}, fmt.Errorf("its answer has negative figures for a link")
		}
		if len(l.Peer) > longest {
			return report{}, fmt.Errorf("its answer has an id of %d bytes", len(l.Peer))
		}
	}
	return r, nil
}
