package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
)

// Start records how the node became a member.
type Start struct {
	Founded bool
	peers   []mesh.Peer // from the grant
}

// About describes a node to others.
type About struct {
	Name, Version string
	Numbers       mesh.Numbers
	Device        string
	Memory        uint64 // bytes that it may use for graphs; 0: no bound
	Speed         uint64
}

// Computing returns the numbers of computing as the plan has them.
func Computing(n mesh.Numbers) plan.Numbers {
	return plan.Numbers{Min: uint32(n.Computing.Min), Max: uint32(n.Computing.Max)}
}

// Knows returns the newest command of the plan that a program knows which has these numbers; 0: it
// does not say.
func Knows(n mesh.Numbers) plan.Kind { return plan.Kind(max(0, min(n.Plan.Max, math.MaxUint8))) }

// Entry configures how a node that belongs to no mesh enters one.
type Entry struct {
	About
	// AnyName allows names such as NAME-2 if another node has the name.
	AnyName bool
	// Bootstrap founds a mesh; Join lists members to ask, with Token or what ReadToken
	// returns.
	Bootstrap bool
	Join      []string
	Token     string
	ReadToken func() (string, error)
	// CertificateLife shortens the lifetime of the certificates that this node signs.
	CertificateLife time.Duration
	// Disk reports whether the log of the plan is in the directory.
	Disk bool
	Log  *slog.Logger
}

// Entrance gets one node into a mesh.
type Entrance struct {
	orders  chan joinOrder         // from Join, while Enter waits
	trouble atomic.Pointer[string] // why it is not in yet, while it tries by itself
}

// Problem says why the node is in no mesh yet, and what to do about it.
func (e *Entrance) Problem() string {
	if why := e.trouble.Load(); why != nil {
		return *why
	}
	return "this node is in no mesh: run `hopmesh join HOST:PORT --token TOKEN`"
}

// NewEntrance makes an Entrance.
func NewEntrance() *Entrance { return &Entrance{orders: make(chan joinOrder)} }

// joinOrder is `hopmesh join` waiting for its outcome.
type joinOrder struct {
	ctx   context.Context
	peers []string
	token identity.Token
	done  chan error // buffered
}

// joinPatience bounds how long `hopmesh join` takes.
const joinPatience = 30 * time.Second

// Join makes the node that waits in Enter ask these members for admission. Its errors are the
// API's.
func (e *Entrance) Join(ctx context.Context, r api.JoinRequest) error {
	token, err := identity.ParseToken(r.Token)
	if err != nil {
		return api.Invalid("%v", err)
	}
	if len(r.Peers) == 0 {
		return api.Invalid("no HOST:PORT of a member was given")
	}
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	o := joinOrder{ctx: ctx, peers: r.Peers, token: token, done: make(chan error, 1)}
	select {
	case e.orders <- o:
	case <-ctx.Done():
		return api.Unavailable("this node is busy with another join")
	}
	select {
	case err = <-o.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return api.Conflict("%v", err)
	}
	return nil
}

// Enter returns the node's identity: loaded from disk, founded, granted by the members in
// entry.Join, or granted after a call of Join.
func (e *Entrance) Enter(ctx context.Context, dir *Dir, conn net.PacketConn, entry Entry) (*identity.Identity, Start, error) {
	n := candidate{entry, dir, conn}
	opts := identity.Options{LeafLife: n.CertificateLife}
	id, err := identity.Load(dir.Identity(), opts)
	if err == nil {
		if id.Name() != n.Name && !n.AnyName {
			n.Log.Info("this node keeps the name it joined with", "name", id.Name(), "asked", n.Name)
		}
		if n.Disk {
			err = dir.checkLog()
		}
		return id, Start{}, err
	}
	if !errors.Is(err, identity.ErrNone) {
		return nil, Start{}, err
	}
	if n.Bootstrap {
		if err := errors.Join(emptyRaft(dir), dir.begin()); err != nil {
			return nil, Start{}, err
		}
		id, err := identity.Found(dir.Identity(), n.Name, opts)
		if err != nil {
			return nil, Start{}, fmt.Errorf("found a mesh: %w", err)
		}
		return id, Start{Founded: true}, nil
	}
	if len(n.Join) > 0 {
		text := n.Token
		if text == "" && n.ReadToken != nil {
			if text, err = n.ReadToken(); err != nil {
				return nil, Start{}, err
			}
		}
		if text == "" {
			return nil, Start{}, errors.New("this node is in no mesh, and --join alone lets nobody in: `hopmesh token create` on a member prints --join with its --token")
		}
		token, err := identity.ParseToken(text)
		if err != nil {
			return nil, Start{}, err
		}
		return n.joinUntilIn(ctx, n.Join, token, func(why string) { e.trouble.Store(&why) })
	}
	n.Log.Info("this node is in no mesh; waiting for `hopmesh join HOST:PORT --token TOKEN`")
	for {
		select {
		case <-ctx.Done():
			return nil, Start{}, context.Cause(ctx)
		case o := <-e.orders:
			id, s, err := n.joinOnce(o.ctx, o.peers, o.token)
			o.done <- err
			if err == nil {
				return id, s, nil
			}
		}
	}
}

// candidate is a node that is joining a mesh.
type candidate struct {
	Entry
	dir  *Dir
	conn net.PacketConn
}

const (
	retryFirst = 500 * time.Millisecond
	retryLast  = 10 * time.Second
)

// joinUntilIn retries until the node is admitted. It returns an error if a peer refuses it
// for good. Meanwhile it says why the node is not in yet.
func (n candidate) joinUntilIn(ctx context.Context, peers []string, token identity.Token, say func(why string)) (*identity.Identity, Start, error) {
	n.Log.Info("asking to join", "peers", peers)
	say(fmt.Sprintf("this node asks %s to let it in", strings.Join(peers, ", ")))
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		id, s, err := n.joinOnce(ctx, peers, token)
		if err == nil || finalRefusal(err) || ctx.Err() != nil {
			return id, s, err
		}
		say(fmt.Sprintf("this node is not in the mesh yet and tries again: %s; `hopmesh doctor HOST:PORT` shows what is in the way", strings.ReplaceAll(err.Error(), "\n", "; ")))
		n.Log.Warn("not in the mesh yet; trying again", "in", wait, "err", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, Start{}, context.Cause(ctx)
		}
	}
}

// finalRefusal reports whether trying again is useless, because a peer said so or this
// machine itself can't join.
func finalRefusal(err error) bool {
	reason := mesh.RefusalOf(err)
	return errors.Is(err, identity.ErrForeignMesh) || errors.Is(err, errLocal) || reason != "" && reason != mesh.RefusedLater
}

// errLocal marks failures of this machine, which asking again does not fix.
var errLocal = errors.New("this node cannot join")

// mostNames bounds how many names a node tries that does not insist on its own.
const mostNames = 100

// joinOnce asks for admission, under another name if it may and must.
func (n candidate) joinOnce(ctx context.Context, peers []string, token identity.Token) (*identity.Identity, Start, error) {
	name, from := n.Name, 2
	if n.AnyName {
		// Under the name of the last attempt the mesh may have let it in already.
		asked, err := identity.Asked(n.dir.Identity())
		if err != nil {
			return nil, Start{}, fmt.Errorf("%w: %w", errLocal, err)
		}
		if rest, found := strings.CutPrefix(asked, n.Name+"-"); found {
			if i, err := strconv.Atoi(rest); err == nil && from <= i && i < mostNames {
				name, from = asked, i+1
			}
		}
	}
	for i := from; ; i++ {
		id, s, err := n.joinAs(ctx, name, peers, token)
		next := fmt.Sprintf("%s-%d", n.Name, i)
		if mesh.RefusalOf(err) != mesh.RefusedName || !n.AnyName || i > mostNames || mesh.CheckName(next) != nil {
			return id, s, err
		}
		n.Log.Info("another node has this name", "name", name, "next", next)
		name = next
	}
}

func (n candidate) joinAs(ctx context.Context, name string, peers []string, token identity.Token) (*identity.Identity, Start, error) {
	// The request is kept on disk: after a crash, the same id and key are admitted
	// again instead of finding their own name taken.
	if err := errors.Join(emptyRaft(n.dir), n.dir.begin()); err != nil {
		return nil, Start{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	req, err := identity.NewRequest(n.dir.Identity(), name)
	if err != nil {
		return nil, Start{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	grant, err := mesh.Join(ctx, n.conn, peers, token, mesh.JoinRequest{
		ID: req.ID(), Name: name, Version: n.Version, Device: n.Device,
		Memory: n.Memory, CSR: req.CSR(), Clock: time.Now(), Numbers: n.Numbers,
	})
	if err != nil {
		return nil, Start{}, err
	}
	// Saved before the identity: a node with an identity but no peers could not find the
	// mesh again after a crash.
	if err := n.dir.savePeers(peersOf(grant)); err != nil {
		return nil, Start{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	id, err := req.Accept(grant, token.CA)
	if err != nil {
		return nil, Start{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	return id, Start{peers: peersOf(grant)}, nil
}

// peersOf returns the addresses of other nodes from a grant.
func peersOf(g identity.Grant) []mesh.Peer {
	var peers []mesh.Peer
	for _, p := range g.Peers {
		if a, err := netip.ParseAddrPort(p.Addr); err == nil {
			peers = append(peers, mesh.Peer{ID: p.ID, Addr: a})
		}
	}
	return peers
}
