package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
)

// start says how the node came to be a member.
type start struct {
	founded bool
	peers   []mesh.Peer // from the grant
}

// joinOrder is `hopmesh join` waiting for its outcome.
type joinOrder struct {
	ctx   context.Context
	peers []string
	token identity.Token
	done  chan error // buffered
}

// enter returns the node's identity: remembered, founded, granted by the peers
// of --join, or granted after an order from the API.
func (n *Node) enter(ctx context.Context, dir *dataDir, conn net.PacketConn) (*identity.Identity, start, error) {
	opts := identity.Options{LeafLife: n.opts.CertificateLife}
	id, err := identity.Load(dir.identity(), opts)
	if err == nil {
		if id.Name() != n.opts.Name {
			n.log.Info("this node keeps the name it joined with", "name", id.Name(), "asked", n.opts.Name)
		}
		if n.opts.ownDisk {
			err = dir.checkLog()
		}
		return id, start{}, err
	}
	if !errors.Is(err, identity.ErrNone) {
		return nil, start{}, err
	}
	if n.opts.Bootstrap {
		if err := errors.Join(emptyRaft(dir), dir.begin()); err != nil {
			return nil, start{}, err
		}
		id, err := identity.Found(dir.identity(), n.opts.Name, opts)
		if err != nil {
			return nil, start{}, fmt.Errorf("found a mesh: %w", err)
		}
		return id, start{founded: true}, nil
	}
	if len(n.opts.Join) > 0 {
		if n.opts.Token == "" {
			return nil, start{}, errors.New("this node is in no mesh, and --join alone lets nobody in: `hopmesh token create` on a member prints --join with its --token")
		}
		token, err := identity.ParseToken(n.opts.Token)
		if err != nil {
			return nil, start{}, err
		}
		return n.joinUntilIn(ctx, dir, conn, n.opts.Join, token)
	}
	n.log.Info("this node is in no mesh; waiting for `hopmesh join HOST:PORT --token TOKEN`")
	for {
		select {
		case <-ctx.Done():
			return nil, start{}, context.Cause(ctx)
		case o := <-n.orders:
			id, s, err := n.joinOnce(o.ctx, dir, conn, o.peers, o.token)
			o.done <- err
			if err == nil {
				return id, s, nil
			}
		}
	}
}

const (
	retryFirst = 500 * time.Millisecond
	retryLast  = 10 * time.Second
)

// joinUntilIn retries for ever where a peer does not answer or cannot decide,
// and ends where one refused.
func (n *Node) joinUntilIn(ctx context.Context, dir *dataDir, conn net.PacketConn, peers []string, token identity.Token) (*identity.Identity, start, error) {
	n.log.Info("asking to join", "peers", peers)
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		id, s, err := n.joinOnce(ctx, dir, conn, peers, token)
		if err == nil || finalRefusal(err) || ctx.Err() != nil {
			return id, s, err
		}
		n.log.Warn("not in the mesh yet; trying again", "in", wait, "err", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, start{}, context.Cause(ctx)
		}
	}
}

// finalRefusal says whether trying again is of no use. Only an answer can be
// final: silence, or trouble on this side of the wire, is not one.
func finalRefusal(err error) bool {
	reason := mesh.RefusalOf(err)
	return errors.Is(err, identity.ErrForeignMesh) || errors.Is(err, errLocal) || reason != "" && reason != mesh.RefusedLater
}

// errLocal marks trouble with this machine, which asking again does not cure.
var errLocal = errors.New("this node cannot join")

func (n *Node) joinOnce(ctx context.Context, dir *dataDir, conn net.PacketConn, peers []string, token identity.Token) (*identity.Identity, start, error) {
	// The request is kept on disk: after a crash, the same id and key are admitted
	// again instead of finding their own name taken.
	if err := errors.Join(emptyRaft(dir), dir.begin()); err != nil {
		return nil, start{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	req, err := identity.NewRequest(dir.identity(), n.opts.Name)
	if err != nil {
		return nil, start{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	grant, err := mesh.Join(ctx, conn, peers, token, mesh.JoinRequest{
		ID: req.ID(), Name: n.opts.Name, Version: n.opts.Version, Device: n.opts.Device,
		Memory: n.opts.Memory, CSR: req.CSR(), Clock: time.Now(),
	})
	if err != nil {
		return nil, start{}, err
	}
	// Before the identity: with one, but without a peer, the node could not find the
	// mesh again after a crash.
	if err := dir.savePeers(peersOf(grant)); err != nil {
		return nil, start{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	id, err := req.Accept(grant, token.CA)
	if err != nil {
		return nil, start{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	return id, start{peers: peersOf(grant)}, nil
}
