package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/cuda"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/member"
)

// Options configures a node. Zero values are usable unless noted.
type Options struct {
	// DataDir holds the node's state. Required.
	DataDir string
	// Name is what people call the node, unique in its mesh. Default: the host's, with a
	// number if another node has it. It is fixed when the node founds or joins a mesh.
	Name    string
	anyName bool // the name is the host's
	// Version is the program's. Default: "dev".
	Version string
	// Numbers replace what the program works with, for tests of other versions.
	Numbers mesh.Numbers
	// Listen is the UDP address. Default 0.0.0.0:7946.
	Listen string
	// Advertise is the address others dial. Default: the one that routes to the
	// first peer.
	Advertise string
	// API lists where the HTTP API listens beside the socket in DataDir:
	// "unix:PATH", HOST:PORT, or https://HOST:PORT. HOST:PORT off loopback serves only
	// health and metrics.
	API []string
	// APIGroup is the group of the machine that may use the API's sockets. Default: none,
	// only the user that runs the node.
	APIGroup string
	// Bootstrap founds a mesh if the node belongs to none, else does nothing.
	Bootstrap bool
	// Join lists HOST:PORT of members to ask, with Token, if the node belongs to
	// no mesh.
	Join  []string
	Token string
	// ReadToken returns the token if Token is empty. It is called only if the node belongs
	// to no mesh.
	ReadToken func() (string, error)
	// Device is auto, cpu, cuda or cuda:N. Default auto.
	Device string
	// deviceReason is why New chose the device.
	deviceReason string
	// Memory bounds what the node may use for graphs, in bytes; 0: no bound.
	Memory uint64
	// Speed is the relative speed of the node, 1000 being ordinary; 0: found at the
	// start.
	Speed uint64
	// LogDir is where event files of all jobs go, for TensorBoard. "": none are written.
	LogDir string
	// Python is the program that runs scripts of users of the mesh beside this node. "": where
	// Listen is an address of loopback python3, else this node runs none; so it does with "off".
	Python string
	// Log receives everything. Default: discard.
	Log *slog.Logger
	// OnReady is called once, when this node is in the plan and knows a leader.
	OnReady func(Ready)

	// Conn replaces the UDP socket, for tests in virtual time and for faults. The
	// caller closes it.
	Conn net.PacketConn
	// NoAPI serves no HTTP, for tests in virtual time: a goroutine that waits for a
	// real connection stops the clock.
	NoAPI bool
	// Stores replaces the disk under Raft.
	Stores func() (consensus.Stores, error)
	// Watch wraps what Stores opens, or the disk, for tests.
	Watch func(consensus.Stores) consensus.Stores
	// Aside sets what Stores opens aside, so that it then opens an empty log. It must be given
	// with Stores.
	Aside func() error
	// Train replaces the engine, for tests in virtual time.
	Train jobs.Train
	// CertificateLife shortens the life of the certificates this node signs.
	CertificateLife time.Duration
	// Clock replaces the machine's, for tests of clocks that are wrong. What a node waits for
	// does not depend on it.
	Clock func() time.Time

	ownDisk bool // Stores are the default, on disk
}

// Ready is the argument of OnReady.
type Ready struct {
	ID, Name, MeshID string
	Addr             netip.AddrPort
	Founded          bool // this start founded the mesh
}

const defaultListen = "0.0.0.0:7946"

func (o Options) withDefaults() Options {
	if o.Name == "" {
		if host, err := os.Hostname(); err == nil {
			o.Name, o.anyName = host, true
		}
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	for own, number := range map[*mesh.Range]mesh.Range{
		&o.Numbers.Wire: mesh.Wire, &o.Numbers.Disk: member.Disk, &o.Numbers.Computing: {Min: recipe.Computing, Max: recipe.Computing},
		&o.Numbers.Plan: {Min: 1, Max: int(plan.Newest)},
	} {
		*own = cmp.Or(*own, number)
	}
	if o.Listen == "" {
		o.Listen = defaultListen
	}
	if o.Device == "" {
		o.Device = "auto"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Train == nil {
		o.Train = train.Run
	}
	if o.Aside == nil {
		o.Aside = func() error { return errors.New("what is damaged can't be set aside") }
	}
	if o.Stores == nil {
		dir, log := filepath.Join(o.DataDir, "raft"), o.Log
		o.Stores = func() (consensus.Stores, error) { return consensus.DiskStores(dir, log) }
		o.Aside = func() error { return member.Aside(dir) }
		o.ownDisk = true
	}
	if watch, open := o.Watch, o.Stores; watch != nil {
		o.Stores = func() (consensus.Stores, error) {
			s, err := open()
			if err == nil {
				s = watch(s)
			}
			return s, err
		}
	}
	return o
}

// about describes the node to others.
func (o *Options) about() member.About {
	return member.About{Name: o.Name, Version: o.Version, Numbers: o.Numbers, Device: o.Device, Memory: o.Memory, Speed: o.Speed}
}

// computing returns the numbers by which the program computes, as the plan has them.
func (o *Options) computing() plan.Numbers { return member.Computing(o.Numbers) }

// entry says how the node gets into a mesh.
func (o *Options) entry(log *slog.Logger) member.Entry {
	return member.Entry{
		About: o.about(), AnyName: o.anyName, Bootstrap: o.Bootstrap, Join: o.Join, Token: o.Token, ReadToken: o.ReadToken, CertificateLife: o.CertificateLife, Disk: o.ownDisk, Log: log,
	}
}

// computes returns a function that opens the device that New has chosen; nil: the processor.
func (o *Options) computes() jobs.Device {
	name := o.Device
	if name == "cpu" {
		return nil
	}
	return func(int) (tensor.Device, error) { return cuda.Open(name) }
}

func (o Options) validate() error {
	if o.DataDir == "" {
		return errors.New("a data directory is required: pass --data-dir DIR")
	}
	if err := mesh.CheckName(o.Name); err != nil {
		return fmt.Errorf("%w; choose another with --name", err)
	}
	if o.Bootstrap && len(o.Join) > 0 {
		return errors.New("--bootstrap founds a mesh and --join enters one: pass one of them")
	}
	if o.Token != "" && len(o.Join) == 0 {
		return errors.New("--token needs --join: `hopmesh token create` on a member prints both")
	}
	if o.ReadToken != nil && len(o.Join) == 0 {
		return errors.New("--token-file needs --join HOST:PORT of a member")
	}
	if o.Conn == nil {
		if _, err := net.ResolveUDPAddr("udp", o.Listen); err != nil {
			return fmt.Errorf("--listen %s is no address to listen on, such as 0.0.0.0:7946: %w", o.Listen, err)
		}
	}
	for _, peer := range o.Join {
		if _, port, err := net.SplitHostPort(peer); err != nil || port == "" {
			return fmt.Errorf("--join %s is no HOST:PORT, such as 10.0.0.1:7946", peer)
		}
	}
	if o.Advertise != "" {
		a, err := netip.ParseAddrPort(o.Advertise)
		if err != nil || a.Addr().IsUnspecified() || a.Port() == 0 {
			return fmt.Errorf("--advertise %s must be an IP:PORT that other machines can dial", o.Advertise)
		}
	}
	return nil
}
