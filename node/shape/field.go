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

// A Link is what lies between a node and all others.
type Link struct {
	Rate  uint64        // bits a second, each way; 0: unlimited
	Delay time.Duration // one way
	Cores float64       // of the processors, for each node; 0: unlimited
}

// A Field is the places of some nodes. One goroutine uses it.
type Field struct {
	link   Link
	sites  []site
	hub    *namespace // nil where nodes share this machine's network
	groups *groups    // nil without shares
	notes  []string
}

// A site is where one node runs.
type site struct {
	addr  netip.Addr
	space *namespace
	group string // its control group's folder; "": none
}

// New makes places for so many nodes, as good as this machine lets it.
func New(ctx context.Context, nodes int, link Link) (*Field, error) {
	if nodes < 1 || nodes > 200 {
		return nil, fmt.Errorf("shape %d nodes: there may be 1 to 200", nodes)
	}
	f := &Field{link: link, sites: make([]site, nodes)}
	if link.Rate == 0 && link.Delay == 0 {
		f.gather() // nothing is between them
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

// line writes errors that were joined beside each other.
func line(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// Notes are sentences, without a full stop, on what the machine does not give.
func (f *Field) Notes() []string { return f.notes }

// Addr is the address of a node.
func (f *Field) Addr(node int) netip.Addr { return f.sites[node].addr }

// Conn says what a node's own socket must do: all that its place does not.
func (f *Field) Conn(int) Link {
	if f.hub != nil {
		return Link{Delay: f.undelayed()}
	}
	return Link{Rate: f.link.Rate, Delay: f.link.Delay}
}

// undelayed is the delay that the kernel does not make.
func (f *Field) undelayed() time.Duration {
	if f.hub == nil || f.hub.delays {
		return 0
	}
	return f.link.Delay
}

// Command is a program that runs where a node does. It is killed when ctx ends.
func (f *Field) Command(ctx context.Context, node int, program string, args ...string) *exec.Cmd {
	s := f.sites[node]
	if s.space != nil {
		args = append([]string{"netns", "exec", s.space.name, program}, args...)
		program = "ip"
	}
	if s.group != "" {
		// The shell puts itself into the group and becomes the program.
		args = append([]string{"-c", `echo $$ > "$0" && exec "$@"`, s.group + "/cgroup.procs", program}, args...)
		program = "sh"
	}
	return exec.CommandContext(ctx, program, args...)
}

// Close takes everything away. The programs in it have ended.
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

// own makes names that no other run has.
func own(what string, i int) string {
	return "hm" + strconv.Itoa(os.Getpid()) + what + strconv.Itoa(i)
}
