// Package doctor looks for problems that keep a node from working well, on this machine
// and on the path to another node. It changes nothing.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/cuda"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/mesh"
)

// Config configures the checks.
type Config struct {
	Peer    string // HOST:PORT of a node, or ""
	Listen  string // the UDP address to probe from
	Version string
	JSON    bool
	// ProcSys is the folder of the kernel's settings: /proc/sys, except in tests.
	ProcSys string
}

// Finding is the result of one check.
type Finding struct {
	Name   string `json:"name"`
	Level  string `json:"level"` // ok, warning or failure
	Detail string `json:"detail"`
}

const (
	ok      = "ok"
	warning = "warning"
	failure = "failure"
)

// ErrFailure is returned if a finding keeps a node from working.
var ErrFailure = errors.New("something keeps a node from working; see the failures above")

// Run performs the checks and prints the findings. It takes a few seconds with a peer.
func Run(ctx context.Context, cfg Config, stdout io.Writer) error {
	if cfg.ProcSys == "" {
		cfg.ProcSys = "/proc/sys"
	}
	findings := []Finding{{"version", ok, "hopmesh " + cfg.Version}, kernel(cfg.ProcSys)}
	findings = append(findings, buffer(cfg.ProcSys, "rmem_max"), buffer(cfg.ProcSys, "wmem_max"), gpu())
	if cfg.Peer != "" {
		findings = append(findings, peer(ctx, cfg)...)
	}
	if err := show(stdout, cfg.JSON, findings); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Level == failure {
			return ErrFailure
		}
	}
	return nil
}

func show(out io.Writer, asJSON bool, findings []Finding) error {
	if asJSON {
		return json.NewEncoder(out).Encode(struct {
			Findings []Finding `json:"findings"`
		}{findings})
	}
	for _, f := range findings {
		if _, err := fmt.Fprintf(out, "%-8s %-18s %s\n", f.Level, f.Name, f.Detail); err != nil {
			return err
		}
	}
	return nil
}

// wantBuffer is the buffer size that quic-go requests from the kernel.
const wantBuffer = 7_500_000

func buffer(procSys, name string) Finding {
	f := Finding{Name: "net.core." + name}
	b, err := os.ReadFile(filepath.Join(procSys, "net/core", name))
	if err != nil {
		f.Level, f.Detail = warning, fmt.Sprintf("can't be read: %v", err)
		return f
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	switch {
	case err != nil:
		f.Level, f.Detail = warning, fmt.Sprintf("is no number: %q", b)
	case n < wantBuffer:
		f.Level = warning
		f.Detail = fmt.Sprintf("%d bytes, too small for fast transfers: sudo sysctl -w net.core.%s=%d", n, name, wantBuffer)
	default:
		f.Level, f.Detail = ok, fmt.Sprintf("%d bytes", n)
	}
	return f
}

func kernel(procSys string) Finding {
	f := Finding{Name: "kernel"}
	b, err := os.ReadFile(filepath.Join(procSys, "kernel/osrelease"))
	if err != nil {
		f.Level, f.Detail = warning, fmt.Sprintf("can't be read: %v", err)
		return f
	}
	release := strings.TrimSpace(string(b))
	major, _, _ := strings.Cut(release, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 5 {
		f.Level, f.Detail = warning, release+": before Linux 5 UDP is slow"
		return f
	}
	f.Level, f.Detail = ok, release
	return f
}

func gpu() Finding {
	device, why, err := cuda.Detect("auto")
	if err != nil {
		return Finding{"device", failure, err.Error()}
	}
	return Finding{"device", ok, device + ": " + why}
}

// peer checks the path to a node and back.
func peer(ctx context.Context, cfg Config) []Finding {
	conn, err := listen(cfg.Listen)
	if err != nil {
		return []Finding{{"way there", failure, err.Error()}}
	}
	defer conn.Close()
	r, err := mesh.Probe(ctx, conn, cfg.Peer)
	if err != nil {
		if errors.Is(err, mesh.ErrMTU) {
			return []Finding{{"way there", failure, err.Error()}}
		}
		if other, unlike := errors.AsType[*mesh.VersionError](err); unlike {
			return []Finding{{"their version", failure, fmt.Sprintf("the node at %s %s", cfg.Peer, other.And(cfg.Version, mesh.Wire))}}
		}
		return []Finding{{"way there", failure, fmt.Sprintf("%v; is an agent running there, and is its UDP port open?", err)}}
	}
	list := []Finding{
		{"way there", ok, fmt.Sprintf("%s answered after %s; it sees this machine as %s", cfg.Peer, r.RoundTrip.Round(time.Millisecond), r.Observed)},
		{"mesh", ok, r.MeshID},
		{"their version", ok, r.Version},
		{"clock", ok, fmt.Sprintf("theirs is %s from ours", r.Skew)},
		{"way back", ok, "a packet nobody asked for arrived"},
		packets(r.Reach),
	}
	list[2].Level, list[2].Detail = versions(r.ProbeReply, cfg.Version)
	if r.Skew.Abs() > 2*time.Second {
		list[3].Level, list[3].Detail = warning, list[3].Detail+": set the clocks (NTP)"
	}
	if !r.Inbound {
		list[4].Level = failure
		list[4].Detail = fmt.Sprintf("no packet from %s reached %s unasked: open this machine's firewall for the UDP port that the agent will use", cfg.Peer, r.Observed)
	}
	return list
}

// versions compares the other node's version with this one's.
func versions(r mesh.ProbeReply, version string) (level, detail string) {
	_, speak := r.Numbers.Wire.Common(mesh.Wire)
	_, share := r.Numbers.Computing.Common(mesh.Range{Min: recipe.Computing, Max: recipe.Computing})
	switch {
	case !speak:
		return failure, "the other node " + (&mesh.VersionError{Version: r.Version, Wire: r.Numbers.Wire}).And(version, mesh.Wire)
	case !share:
		return warning, fmt.Sprintf("%s, which computes by %s, here %s, which computes by %d: they can be in one mesh, but not share a job: run the same version on all nodes",
			r.Version, r.Numbers.Computing, version, recipe.Computing)
	case r.Version != version:
		return ok, fmt.Sprintf("%s, here %s: they work together", r.Version, version)
	}
	return ok, r.Version
}

// packets says how large packets pass.
func packets(r mesh.Reach) Finding {
	f := Finding{"packet size", ok, fmt.Sprintf("packets of %d bytes pass", r.Passed)}
	switch {
	case r.Passed == 0:
		f.Level, f.Detail = warning, "not known: the other node does not say which packets arrive, as if it ran another version"
	case r.Lost > 0:
		f.Level = warning
		f.Detail = fmt.Sprintf("packets of %d bytes pass and those of %d do not, so the MTU of the path is below %d: that works, but a path of 1500, as of Ethernet, moves data faster", r.Passed, r.Lost, r.Lost+ipHeaders)
	}
	return f
}

// ipHeaders are the bytes of UDP's and IPv4's headers.
const ipHeaders = 28

// listen prefers the agent's own port, since that is the one to check. If an agent runs
// here, the port is taken, and listen uses any other.
func listen(addr string) (net.PacketConn, error) {
	if addr != "" {
		if conn, err := net.ListenPacket("udp", addr); err == nil {
			return conn, nil
		}
	}
	conn, err := net.ListenPacket("udp", ":0")
	if err != nil {
		return nil, fmt.Errorf("open a UDP port: %w", err)
	}
	return conn, nil
}
