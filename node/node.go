package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/hopmesh/hopmesh/cuda"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// A Node is one daemon: New checks its options, Run is its life.
type Node struct {
	opts    Options
	log     *slog.Logger
	logs    hub[leveled]
	events  hub[api.Event]
	metrics *prometheus.Registry
	orders  chan joinOrder         // from `hopmesh join`, while in no mesh
	member  atomic.Pointer[member] // nil while in no mesh
}

var (
	// ErrLeft is how Run ends after the node gave up its membership on request.
	ErrLeft = errors.New("this node has left the mesh")
	// ErrRemoved is how Run ends when the mesh no longer wants this node.
	ErrRemoved = errors.New("this node was removed from the mesh")
)

// New checks the options and looks which device there is. It acquires nothing.
func New(o Options) (*Node, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	device, why, err := cuda.Detect(o.Device)
	if err != nil {
		return nil, err
	}
	n := &Node{opts: o, metrics: prometheus.NewRegistry(), orders: make(chan joinOrder)}
	n.log = slog.New(&logTee{next: o.Log.Handler(), lines: &n.logs})
	n.log.Info("device", "device", device, "why", why)
	n.opts.Device, n.opts.deviceReason = device, why
	n.registerMetrics()
	return n, nil
}

// Run acquires what the node needs, runs until ctx ends, and releases all of it
// in this order: the API, then (member.close) leadership, Raft with its
// transport, gossip, connections and the use of the socket, and last the socket
// and the directory. It returns nil after a stop by ctx.
func (n *Node) Run(ctx context.Context) (err error) {
	dir, err := openDataDir(n.opts.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	n.measure(ctx)
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
			return l.serve(ctx)
		})
	}
	g.Go(func() error {
		<-ctx.Done()
		serving.Wait() // no request meets a member that is closing
		end()
		return nil
	})
	g.Go(func() error { return n.live(life, dir, conn) })
	return g.Wait()
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

// live makes the node a member of a mesh, by what it remembers or by what it
// was told, and keeps it one.
func (n *Node) live(ctx context.Context, dir *dataDir, conn net.PacketConn) error {
	id, start, err := n.enter(ctx, dir, conn)
	select {
	case <-ctx.Done():
		return nil // stopped before it was in
	default:
	}
	if err != nil {
		return err
	}
	m, err := n.openMember(dir, conn, id, start)
	if err != nil {
		return err
	}
	n.member.Store(m)
	err = m.run(ctx)
	n.member.Store(nil)
	err = errors.Join(err, m.close())
	if errors.Is(err, ErrLeft) {
		if eraseErr := dir.erase(identity.Erase); eraseErr != nil {
			return eraseErr
		}
		n.log.Info("left the mesh; this directory may join anew")
	}
	return err
}
