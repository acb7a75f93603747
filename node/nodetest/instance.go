package nodetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/api"
)

// Instance is one place where a node runs, stops and runs again.
type Instance struct {
	Name string
	// Set before Start to change what the next start does.
	Options node.Options
	// MayEnd, if not nil, reports whether the node may end by itself with this error. A node
	// may always leave.
	MayEnd func(err error) bool

	cluster *Cluster
	ip      string
	port    int
	stores  consensus.Stores // survive restarts; empty over loopback: disk
	disk    *Disk            // under stores
	strain  *strain
	node    *node.Node
	conn    net.PacketConn
	cancel  context.CancelCauseFunc
	done    chan struct{}
	err     error
}

// Reset replaces the instance by a machine with an empty disk.
func (i *Instance) Reset() {
	dir := filepath.Join(i.cluster.dir, i.Name)
	if err := os.RemoveAll(dir); err != nil {
		i.cluster.T.Fatal(err)
	}
	i.Options = node.Options{DataDir: dir, Name: i.Name, Version: "test", Device: "cpu", Speed: 1000, Log: slog.New(i.cluster.log)}
	i.Options.NoAPI = i.cluster.Network != nil
	i.strain = &strain{}
	i.Options.Watch, i.Options.Clock = i.strain.watch, i.strain.clock
	i.Forget()
}

// Forget empties the Raft log if it is in memory, as a node that left empties its disk.
func (i *Instance) Forget() {
	if i.cluster.Network == nil {
		return
	}
	i.stores, i.disk = diskInMemory()
	i.Options.Stores = func() (consensus.Stores, error) { return i.stores, nil }
	i.Options.Aside = func() error {
		i.stores, i.disk = diskInMemory()
		return nil
	}
}

// KeepOnDisk makes a node that has not started yet keep its log on a real disk, also in virtual
// time.
func (i *Instance) KeepOnDisk() { i.Options.Stores, i.Options.Aside = nil, nil }

// Start runs the node until it is killed or stopped.
func (i *Instance) Start() {
	t := i.cluster.T
	t.Helper()
	if i.done != nil {
		t.Fatalf("%s runs already", i.Name)
	}
	if network := i.cluster.Network; network != nil {
		i.conn = network.Listen(i.ip, i.port)
	} else {
		udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(i.ip), Port: i.port})
		if err != nil {
			t.Fatal(err)
		}
		i.conn, i.port = udp, udp.LocalAddr().(*net.UDPAddr).Port
	}
	i.Options.Conn = i.conn
	n, err := node.New(i.Options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	i.node, i.cancel, i.done, i.err = n, cancel, make(chan struct{}), nil
	go func() {
		defer close(i.done)
		i.err = n.Run(ctx)
	}()
}

// Stop stops the node as SIGTERM does.
func (i *Instance) Stop() error {
	if i.done == nil {
		return nil
	}
	i.cancel(errStopped)
	return i.ended()
}

// Kill takes the node off the network without a goodbye, as kill -9 or a power cut does,
// and then releases what is left of it.
func (i *Instance) Kill() {
	if i.done == nil {
		return
	}
	_ = i.conn.Close()
	i.cancel(errStopped)
	_ = i.ended()
}

// Exited waits until the node ends by itself and returns what Run returned.
func (i *Instance) Exited(within time.Duration) error {
	i.cluster.T.Helper()
	select {
	case <-i.done:
		return i.ended()
	case <-time.After(within):
		i.cluster.T.Fatalf("%s still runs after %s", i.Name, within)
		return nil
	}
}

// Ended reports whether the node has ended by itself. The error is what Run returned, if
// the node had no reason to.
func (i *Instance) Ended() (bool, error) {
	if i.done == nil {
		return false, nil
	}
	select {
	case <-i.done:
		if i.mayEnd(i.err) {
			return true, nil
		}
		return true, fmt.Errorf("%s ended by itself: %w", i.Name, i.err)
	default:
		return false, nil
	}
}

func (i *Instance) mayEnd(err error) bool {
	return errors.Is(err, node.ErrLeft) || i.MayEnd != nil && i.MayEnd(err)
}

func (i *Instance) ended() error {
	<-i.done
	_ = i.conn.Close()
	i.node, i.done = nil, nil
	return i.err
}

var errStopped = errors.New("stopped by the test")

// Restart starts a killed or stopped node again, with its disk, at its address.
func (i *Instance) Restart() {
	i.cluster.T.Helper()
	i.Start()
}

// Recover makes the nodes with these ids the only voters on this node, which must not
// run.
func (i *Instance) Recover(ids []string) {
	t := i.cluster.T
	t.Helper()
	file := filepath.Join(i.cluster.dir, i.Name+".voters")
	if err := os.WriteFile(file, []byte(strings.Join(ids, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Recover(i.Options, file); err != nil {
		t.Fatal(err)
	}
}

// Move gives the node a new address for its next start.
func (i *Instance) Move() {
	if i.cluster.Network == nil {
		i.port = 0
		return
	}
	i.port++
}

// Running reports whether the node was started and not killed or stopped since.
func (i *Instance) Running() bool { return i.done != nil }

// IP returns the node's address, for the Network's faults.
func (i *Instance) IP() string { return i.ip }

// Addr returns the address of the node's socket.
func (i *Instance) Addr() string { return fmt.Sprintf("%s:%d", i.ip, i.port) }

// API returns the node's backend, without HTTP.
func (i *Instance) API() api.Backend { return i.node.Backend() }

// Status returns the node's own status, or a zero one if it does not run.
func (i *Instance) Status() api.Status {
	if i.node == nil {
		return api.Status{}
	}
	s, err := i.API().Status(context.Background())
	if err != nil {
		return api.Status{}
	}
	return s
}

// Plan returns the plan that the node follows, or a zero one.
func (i *Instance) Plan() api.Plan {
	if i.node == nil {
		return api.Plan{}
	}
	p, err := i.API().Plan(context.Background())
	if err != nil {
		return api.Plan{}
	}
	return p
}

// Members returns the node's table of members.
func (i *Instance) Members() []api.Member {
	if i.node == nil {
		return nil
	}
	list, err := i.API().Members(context.Background())
	if err != nil {
		return nil
	}
	return list
}

// Token makes a join token.
func (i *Instance) Token() string {
	i.cluster.T.Helper()
	t, err := i.API().CreateToken(context.Background(), 0, 0)
	if err != nil {
		i.cluster.T.Fatalf("create a token on %s: %v", i.Name, err)
	}
	return t.Token
}

// WaitReady waits until the node is in the plan and knows a leader.
func (i *Instance) WaitReady() {
	i.cluster.T.Helper()
	i.cluster.Wait(i.Name+" is ready", time.Minute, func() bool { return i.Status().Ready })
}

// Voters returns the number of voters in the plan as this node sees it, the leader
// included.
func (i *Instance) Voters() int {
	n := 0
	for _, m := range i.Plan().Members {
		if m.Role != "nonvoter" {
			n++
		}
	}
	return n
}
