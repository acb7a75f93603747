package shape

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Link is the link between a node and all others.
type Link struct {
	Rate  uint64        // bits per second, each way; 0: unlimited
	Delay time.Duration // one way
	Cores float64       // CPUs for each node; 0: unlimited
}

// Field holds the sites of some nodes. One goroutine uses it.
type Field struct {
	link   Link
	sites  []site
	hub    *namespace // nil if nodes share this machine's network
	groups *groups    // nil without shares
	notes  []string
}

// site is where one node runs.
type site struct {
	addr  netip.Addr
	space *namespace
	group string // its control group's folder, or ""
}

// New makes sites for the given number of nodes, as well as this machine permits.
func New(ctx context.Context, nodes int, link Link) (*Field, error) {
	if nodes < 1 || nodes > 200 {
		return nil, fmt.Errorf("shape %d nodes: there may be 1 to 200", nodes)
	}
	f := &Field{link: link, sites: make([]site, nodes)}
	if link.Rate == 0 && link.Delay == 0 {
		f.gather() // no links between the nodes
	} else if err := f.separate(ctx); err != nil {
		f.notes = append(f.notes, fmt.Sprintf("nodes share this machine's network, and their sockets keep the rate and the delay by themselves: %s", line(err)))
	}
	if link.Cores > 0 {
		if err := f.divide(); err != nil {
			f.notes = append(f.notes, fmt.Sprintf("nodes share the processors without fixed shares, so that one computes while another waits: %s", line(err)))
		}
	}
	return f, nil
}

// line writes joined errors on one line.
func line(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// Notes returns sentences, without a full stop, about what this machine does not support.
func (f *Field) Notes() []string { return f.notes }

// Addr returns the address of a node.
func (f *Field) Addr(node int) netip.Addr { return f.sites[node].addr }

// Conn returns the limits that a node's own socket must apply because its site does not.
func (f *Field) Conn(int) Link {
	if f.hub != nil {
		return Link{Delay: f.undelayed()}
	}
	return Link{Rate: f.link.Rate, Delay: f.link.Delay}
}

// undelayed returns the part of the delay that the kernel does not apply.
func (f *Field) undelayed() time.Duration {
	if f.hub == nil || f.hub.delays {
		return 0
	}
	return f.link.Delay
}

// Command returns a command that runs at a node's site. It is killed when ctx ends.
func (f *Field) Command(ctx context.Context, node int, program string, args ...string) *exec.Cmd {
	s := f.sites[node]
	if s.space != nil {
		args = append([]string{"netns", "exec", s.space.name, program}, args...)
		program = "ip"
	}
	if s.group != "" {
		// The shell moves itself into the group and then executes the program.
		args = append([]string{"-c", `echo $$ > "$0" && exec "$@"`, s.group + "/cgroup.procs", program}, args...)
		program = "sh"
	}
	return exec.CommandContext(ctx, program, args...)
}

// Close removes all sites. The programs in them must have ended.
func (f *Field) Close() error {
	var errs []error
	for _, s := range f.sites {
		if s.space != nil {
			errs = append(errs, s.space.remove())
		}
		if s.group != "" {
			errs = append(errs, os.Remove(s.group))
		}
	}
	if f.hub != nil {
		errs = append(errs, f.hub.remove())
	}
	if f.groups != nil {
		errs = append(errs, f.groups.remove())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take the shaped network away: %w", err)
	}
	return nil
}

// own returns a name that no other run has.
func own(what string, i int) string {
	return "hm" + strconv.Itoa(os.Getpid()) + what + strconv.Itoa(i)
}
