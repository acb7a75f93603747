package shape

import (
	"context"
	"errors"
	"fmt"
)

// errNoFaults is the error of faults where nodes have no links of their own.
var errNoFaults = errors.New("the nodes share this machine's network, so nothing can befall their links: that needs root and namespaces")

// nowhere is an address that no node has.
const nowhere = "02:00:00:00:00:01"

// Cut has what one node sends to another get lost, until Heal.
func (f *Field) Cut(ctx context.Context, from, to int) error {
	if f.hub == nil {
		return errNoFaults
	}
	return f.sites[from].space.ip(ctx, "neigh", "replace", f.Addr(to).String(), "lladdr", nowhere, "nud", "permanent", "dev", "eth0")
}

// Unplug has all that a node sends and is sent get lost, until Heal.
func (f *Field) Unplug(ctx context.Context, node int) error {
	if f.hub == nil {
		return errNoFaults
	}
	return f.hub.ip(ctx, "link", "set", fmt.Sprintf("p%d", node), "down")
}

// Narrow drops packets to a node that are longer than so many bytes, and tells nobody, as a
// narrow path behind a strict firewall does. It lasts.
func (f *Field) Narrow(ctx context.Context, node, bytes int) error {
	if f.hub == nil {
		return errNoFaults
	}
	return f.hub.ip(ctx, "link", "set", fmt.Sprintf("p%d", node), "mtu", fmt.Sprint(bytes))
}

// Throttle gives one node's link another rate, both ways, until Heal. The link must have one.
func (f *Field) Throttle(ctx context.Context, node int, rate uint64) error {
	if f.hub == nil || f.link.Rate == 0 {
		return errNoFaults
	}
	parent := "root"
	if f.link.Delay > 0 && f.hub.delays {
		parent = "parent 1:"
	}
	err := errors.Join(f.sites[node].space.bucket(ctx, "change", "eth0", parent, rate), f.hub.bucket(ctx, "change", fmt.Sprintf("p%d", node), parent, rate))
	if err != nil {
		return fmt.Errorf("change the rate of link %d: %w", node+1, err)
	}
	return nil
}

// Heal takes back every Cut, Unplug and Throttle.
func (f *Field) Heal(ctx context.Context) error {
	if f.hub == nil {
		return errNoFaults
	}
	var errs []error
	for i, s := range f.sites {
		errs = append(errs, s.space.ip(ctx, "neigh", "flush", "dev", "eth0", "nud", "permanent"), f.hub.ip(ctx, "link", "set", fmt.Sprintf("p%d", i), "up"))
		if f.link.Rate > 0 {
			errs = append(errs, f.Throttle(ctx, i, f.link.Rate))
		}
	}
	return errors.Join(errs...)
}
