package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/damage"
	"github.com/hopmesh/hopmesh/node/lead"
)

// orderRejoin asks the leader to take the asking node out of those who decide, since it has lost
// its part of the plan.
const orderRejoin = "rejoin"

// onRejoin releases a node. The rounds then take it in again, as they do every member.
func (a *admission) onRejoin(ctx context.Context, id string, _ lead.None) (lead.None, error) {
	s := a.plan.State()
	if s.Refused(id) {
		return lead.None{}, mesh.Refuse(lead.Conflict, "this node is no member any more")
	}
	if err := a.plan.Release(ctx, id); err != nil {
		return lead.None{}, err
	}
	a.plan.Hint()
	return lead.None{}, nil
}

// Rejoin is what a node needs that has had a setback, until it may take part again.
type Rejoin struct {
	Dir       *Dir
	Conn      net.PacketConn
	ID        *identity.Identity
	About     About
	Advertise string
	Join      []string
	Damage    *damage.Board
	Log       *slog.Logger
}

// logKey is the entry of the board that is about this node's log.
const logKey = "log"

const (
	askEvery   = time.Second
	askTimeout = 12 * time.Second // the leader commits a change of the voters meanwhile
	// quietPatience is how long to go without a leader before saying what can be done.
	quietPatience = 10 * time.Second
)

// Wait returns nil once this node may take part: at once if it has had no setback or was released
// before, else when the leader has taken it out of those who decide. It says on the board what is
// the matter.
func (r *Rejoin) Wait(ctx context.Context) error {
	s := r.Dir.setback()
	if s == nil || s.Released {
		return nil
	}
	r.Damage.Found(damage.Log, logKey, s.What+": it was set aside, and this node asks the others for the plan")
	known := r.Dir.loadPeers()
	advertise, err := advertised(r.Advertise, r.Conn, known)
	if err != nil {
		return err
	}
	var refused atomic.Bool
	m, err := mesh.Open(mesh.Config{
		Conn: r.Conn, Identity: r.ID, Advertise: advertise, Name: r.ID.Name(), Version: r.About.Version, Numbers: r.About.Numbers, Peers: known, Seeds: seedsOf(r.Join, r.Log),
		Settled: func() bool { return false }, Allow: func(string) error { return nil }, OnRefused: func(string) { refused.Store(true) }, Log: r.Log,
	})
	if err != nil {
		return err
	}
	// Nobody may count on what this node would acknowledge.
	if err := m.Raft().Close(); err != nil {
		return errors.Join(err, m.Close())
	}
	r.Damage.Serve(m)
	m.Ready()
	telling, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Damage.Run(telling, m) })
	err = r.ask(ctx, m, *s, refused.Load)
	end()
	wg.Wait()
	return errors.Join(err, m.Close())
}

// ask asks until the leader has released this node. refused reports whether a peer has said that
// it is no member.
func (r *Rejoin) ask(ctx context.Context, m *mesh.Mesh, s setback, refused func() bool) error {
	begin := time.Now()
	for {
		peers := m.Peers()
		if r.askOnce(ctx, m, peers) {
			s.Released = true
			r.Log.Info("the mesh expects nothing of this node any more; it comes back with an empty log")
			return r.Dir.keepSetback(s)
		}
		switch {
		case len(peers) == 0:
			r.Damage.Found(damage.Log, logKey, s.What+": it was set aside, and this node knows no other that has the plan; if it was the only one of its mesh, stop it and run `hopmesh recover`, which keeps what can be read, else start it with --join HOST:PORT of another")
		case refused():
			r.Damage.Found(damage.Log, logKey, s.What+": it was set aside, and other nodes refuse this one: if it was removed from the mesh, move its data directory away and join anew with a fresh token")
		case time.Since(begin) > quietPatience:
			r.Damage.Found(damage.Log, logKey, s.What+": it was set aside, and no leader answers that could give this node the plan: more than half of the voters must be up without it; if they are not to be had, stop the nodes and run `hopmesh recover` on one whose log is whole")
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// askOnce asks every peer, as nobody says who leads, and reports whether the leader did it.
func (r *Rejoin) askOnce(ctx context.Context, m *mesh.Mesh, peers []mesh.Peer) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	done := make(chan error, len(peers))
	for _, p := range peers {
		go func() {
			_, err := m.Call(ctx, p.ID, lead.Method(orderRejoin), []byte("{}"))
			if err != nil {
				err = fmt.Errorf("node %s: %w", p.ID, err)
			}
			done <- err
		}()
	}
	released := false
	for range peers {
		err := <-done
		if err == nil {
			released = true
			cancel() // the others need not answer
		} else if ctx.Err() == nil {
			r.Log.Debug("asked to be released", "err", err)
		}
	}
	return released
}
