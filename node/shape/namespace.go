package shape

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
)

// namespace is a network namespace of the kernel.
type namespace struct {
	name   string
	delays bool // its links have the delay that was asked for
}

// gather puts all nodes on this machine's loopback.
func (f *Field) gather() {
	for i := range f.sites {
		f.sites[i] = site{addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
}

// separate gives each node a network, connected by a bridge in another one. It does not
// change the machine's own network.
func (f *Field) separate(ctx context.Context) (err error) {
	f.gather()
	if os.Geteuid() != 0 {
		return errors.New("namespaces need root")
	}
	hub := &namespace{name: own("hub", 0), delays: true}
	if err := ip(ctx, "netns", "add", hub.name); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		for i := range f.sites {
			if s := f.sites[i].space; s != nil {
				err = errors.Join(err, s.remove())
			}
		}
		f.gather()
		err = errors.Join(err, hub.remove())
	}()
	if err := hub.ip(ctx, "link", "add", "name", "hub0", "type", "bridge"); err != nil {
		return err
	}
	if err := hub.ip(ctx, "link", "set", "hub0", "up"); err != nil {
		return err
	}
	for i := range f.sites {
		if err := f.connect(ctx, hub, i); err != nil {
			return err
		}
	}
	f.hub = hub
	if f.link.Delay > 0 && !hub.delays {
		f.notes = append(f.notes, "this kernel makes no delays (netem): the nodes' sockets make them")
	}
	return nil
}

// connect makes a node's namespace and its link to the hub.
func (f *Field) connect(ctx context.Context, hub *namespace, i int) error {
	space := &namespace{name: own("n", i)}
	if err := ip(ctx, "netns", "add", space.name); err != nil {
		return err
	}
	f.sites[i].space = space
	f.sites[i].addr = netip.AddrFrom4([4]byte{10, 213, 0, byte(i + 1)})
	port := fmt.Sprintf("p%d", i)
	for _, args := range [][]string{
		{"link", "add", "name", port, "type", "veth", "peer", "name", "eth0", "netns", space.name},
		{"link", "set", port, "master", "hub0"},
		{"link", "set", port, "up"},
	} {
		if err := hub.ip(ctx, args...); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"addr", "add", f.sites[i].addr.String() + "/24", "dev", "eth0"},
		{"link", "set", "eth0", "up"},
		{"link", "set", "lo", "up"},
	} {
		if err := space.ip(ctx, args...); err != nil {
			return err
		}
	}
	return errors.Join(f.limit(ctx, hub, space, "eth0"), f.limit(ctx, hub, hub, port))
}

// limit shapes what leaves by a device. The bucket holds the packets of a few
// milliseconds, and packets are queued for some tens of milliseconds before they are
// dropped, as in a switch.
func (f *Field) limit(ctx context.Context, hub, in *namespace, device string) error {
	parent := "root"
	if f.link.Delay > 0 && hub.delays {
		err := in.tc(ctx, "add", "dev", device, "root", "handle", "1:", "netem", "delay", f.link.Delay.String(), "limit", "100000")
		if err != nil {
			hub.delays = false
		} else {
			parent = "parent 1:"
		}
	}
	if f.link.Rate == 0 {
		return nil
	}
	return in.bucket(ctx, "add", device, parent, f.link.Rate)
}

// bucket adds the token bucket of a device, or changes it.
func (n *namespace) bucket(ctx context.Context, how, device, parent string, rate uint64) error {
	burst := max(rate/8/500, 32<<10)
	args := append([]string{how, "dev", device}, strings.Fields(parent)...)
	return n.tc(ctx, append(args, "tbf", "rate", fmt.Sprintf("%dbit", rate), "burst", fmt.Sprint(burst), "latency", "40ms")...)
}

// Free is a rate beyond what this machine can reach. Links that have it are unlimited in
// effect, but their rate can be changed later.
const Free = 100_000_000_000

// pace changes the rate of links that have one.
func (f *Field) pace(ctx context.Context, rate uint64) error {
	if f.hub == nil || f.link.Rate == 0 {
		return errors.New("the rate of a network that the kernel does not shape can't be changed while its nodes run")
	}
	if rate == 0 {
		rate = Free
	}
	for i := range f.sites {
		if err := f.Throttle(ctx, i, rate); err != nil {
			return err
		}
	}
	f.link.Rate = rate
	return nil
}

func (n *namespace) ip(ctx context.Context, args ...string) error {
	return ip(ctx, append([]string{"-n", n.name}, args...)...)
}

func (n *namespace) tc(ctx context.Context, args ...string) error {
	return run(ctx, "tc", append([]string{"-n", n.name, "qdisc"}, args...)...)
}

// remove removes a namespace and its links.
func (n *namespace) remove() error {
	return ip(context.Background(), "netns", "del", n.name)
}

func ip(ctx context.Context, args ...string) error { return run(ctx, "ip", args...) }

func run(ctx context.Context, program string, args ...string) error {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
