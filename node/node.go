package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/cuda"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/backup"
	"github.com/hopmesh/hopmesh/node/damage"
	"github.com/hopmesh/hopmesh/node/events"
	"github.com/hopmesh/hopmesh/node/member"
	"github.com/hopmesh/hopmesh/node/serve"
	"github.com/hopmesh/hopmesh/node/speed"
	"github.com/hopmesh/hopmesh/node/wording"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// Node is one daemon: New checks its options, and Run runs it.
type Node struct {
	opts    Options
	log     *slog.Logger
	logs    events.Hub[events.Line]
	events  events.Hub[api.Event]
	metrics *prometheus.Registry
	damage  *damage.Board
	// entrance is where `hopmesh join` asks, and parts are nil, while in no mesh.
	entrance *member.Entrance
	parts    atomic.Pointer[parts]
	// rejoining is the node's name while it belongs to a mesh and waits to take part in it
	// again, else nil.
	rejoining atomic.Pointer[string]
}

var (
	// ErrLeft is how Run ends after the node gave up its membership on request.
	ErrLeft = member.ErrLeft
	// ErrRemoved is how Run ends when the mesh no longer wants this node.
	ErrRemoved = member.ErrRemoved
)

// New checks the options and detects the device. It acquires nothing.
func New(o Options) (*Node, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	device, why, err := cuda.Detect(o.Device)
	if err != nil {
		return nil, err
	}
	n := &Node{opts: o, entrance: member.NewEntrance()}
	n.log = slog.New(wording.Handler(events.Tee(o.Log.Handler(), &n.logs).Handler()))
	n.log.Info("device", "device", device, "why", why)
	n.opts.Device, n.opts.deviceReason = device, why
	n.metrics, n.damage = newMetrics(&n.parts), damage.New(n.log)
	return n, nil
}

// Run acquires what the node needs, runs until ctx ends, and releases everything in
// this order: the API; then, in Member.Close, leadership, Raft with its transport,
// gossip and connections; last the socket and the directory. It returns nil if ctx
// ended it. Its errors are worded for users.
func (n *Node) Run(ctx context.Context) error { return wording.Error(n.run(ctx)) }

func (n *Node) run(ctx context.Context) (err error) {
	dir, err := member.OpenDir(n.opts.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	n.findSpeed(ctx)
	conn, err := n.listen()
	if err != nil {
		return err
	}
	if n.opts.Conn == nil {
		defer conn.Close()
	}
	listeners, err := n.listenAPI(dir)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Add(1)
		g.Go(func() error {
			defer serving.Done()
			return l.Serve(ctx)
		})
	}
	g.Go(func() error {
		<-ctx.Done()
		serving.Wait() // so that no request finds a member that is closing
		end()
		return nil
	})
	g.Go(func() error { return n.live(life, dir, conn) })
	return g.Wait()
}

// findSpeed sets the node's speed unless it was given. Nothing may read it before.
func (n *Node) findSpeed(ctx context.Context) {
	if n.opts.Speed > 0 {
		return
	}
	var err error
	if n.opts.Speed, err = speed.Of(ctx, speed.Open(n.opts.computes())); err != nil && ctx.Err() == nil {
		n.log.Warn("the device's speed could not be measured; the processor's counts", "device", n.opts.Device, "err", err)
	}
}

func (n *Node) listen() (net.PacketConn, error) {
	if n.opts.Conn != nil {
		return n.opts.Conn, nil
	}
	addr, err := net.ResolveUDPAddr("udp", n.opts.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", n.opts.Listen, err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on UDP %s: %w; is another agent running there? choose another with --listen", n.opts.Listen, err)
	}
	return conn, nil
}

// listenAPI opens the addresses of the API.
func (n *Node) listenAPI(dir *member.Dir) ([]*serve.Listener, error) {
	if n.opts.NoAPI {
		return nil, nil
	}
	metrics := promhttp.HandlerFor(n.metrics, promhttp.HandlerOpts{})
	return serve.Open(serve.Config{
		Socket: dir.Socket(), Addresses: n.opts.API, Group: n.opts.APIGroup, Full: api.Handler(n.Backend(), metrics), Public: api.PublicHandler(n.Backend(), metrics),
		Remote: api.Remote(n.Backend(), metrics), TLS: n.apiTLS, Log: n.log,
	})
}

var errNoCertificate = errors.New("this node is in no mesh, so it has no certificate")

// apiTLS returns how the API is served over TLS, by the certificate that the node has now.
func (n *Node) apiTLS() (*tls.Config, error) {
	if p := n.parts.Load(); p != nil {
		return p.id.APITLS(), nil
	}
	return nil, errNoCertificate
}

// say sends an event to whoever watches.
func (n *Node) say(kind, node, message string, generation uint64) {
	n.events.Send(api.Event{Time: time.Now(), Type: kind, Node: node, Message: message, Generation: generation})
}

// live makes the node a member of a mesh, from what is on disk or on request, and runs it as
// one.
func (n *Node) live(ctx context.Context, dir *member.Dir, conn net.PacketConn) error {
	id, start, err := n.entrance.Enter(ctx, dir, conn, n.opts.entry(n.log))
	select {
	case <-ctx.Done():
		return nil // stopped before it had joined
	default:
	}
	if id != nil {
		id.Follow(n.opts.Clock)
	}
	if err == nil && dir.Behind() {
		err = n.opts.Aside() // a crash may have come before it was done
	}
	for {
		if err == nil {
			err = n.liveOnce(ctx, dir, conn, id, start)
		}
		if id == nil || !errors.Is(err, consensus.ErrDamaged) {
			return err
		}
		// Its part of the plan is damaged. It goes on as a node that has none.
		start = member.Start{}
		if err = dir.SetBack(wording.Error(err), n.opts.Aside); err != nil {
			return err
		}
	}
}

// liveOnce runs the node until ctx ends, or until it can't go on with what it has.
func (n *Node) liveOnce(ctx context.Context, dir *member.Dir, conn net.PacketConn, id *identity.Identity, start member.Start) error {
	if err := n.rejoin(ctx, dir, conn, id); err != nil || ctx.Err() != nil {
		return err
	}
	p, err := n.open(dir, conn, id, start)
	if err != nil {
		return err
	}
	n.parts.Store(p)
	err = p.run(ctx)
	n.parts.Store(nil)
	err = errors.Join(err, p.member.Close())
	if errors.Is(err, ErrLeft) {
		if eraseErr := dir.Erase(identity.Erase); eraseErr != nil {
			return eraseErr
		}
		n.log.Info("left the mesh; this directory may join anew")
	}
	return err
}

// rejoin waits until a node whose part of the plan was damaged may take part again. The API
// answers meanwhile.
func (n *Node) rejoin(ctx context.Context, dir *member.Dir, conn net.PacketConn, id *identity.Identity) error {
	if !dir.Behind() {
		return nil
	}
	name := id.Name()
	n.rejoining.Store(&name)
	defer n.rejoining.Store(nil)
	r := member.Rejoin{
		Dir: dir, Conn: conn, ID: id, About: n.opts.about(), Advertise: n.opts.Advertise, Join: n.opts.Join, Damage: n.damage, Log: n.log.With("node", id.Name()),
	}
	return r.Wait(ctx)
}

// Recovered reports what Recover did.
type Recovered = member.Recovered

// Recover makes the voters in file the only ones, on this node, which must not be running: see
// member.Recover.
func Recover(o Options, file string) (Recovered, error) {
	o = o.withDefaults()
	r, err := member.Recover(o.DataDir, file, o.Stores, o.Log)
	return r, wording.Error(err)
}

// Restored reports what Restore did.
type Restored = backup.Restored

// Restore makes a data directory from a backup: see backup.Restore.
func Restore(ctx context.Context, o Options, file string) (Restored, error) {
	o = o.withDefaults()
	r, err := backup.Restore(ctx, file, o.DataDir, time.Now(), o.Log)
	return r, wording.Error(err)
}

// TrainSettings lists what a training request's settings may be.
func TrainSettings() []nn.Option { return wording.Options(strategies.Settings()) }
