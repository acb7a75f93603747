package auto

import (
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/engine/strategy/leap"
)

// near is how much longer than the fastest a strategy may take to count as equally
// fast.
const near = 1.1

// choose returns the index of the fastest strategy. Of those that are equally fast, it
// takes the one that sends the fewest bytes to the busiest node; then leap; then the
// first.
func choose(costs []cost) int {
	least := costs[0].seconds
	for i := range costs {
		least = min(least, costs[i].seconds)
	}
	best := -1
	for i := range costs {
		c := &costs[i]
		if c.seconds > near*least {
			continue
		}
		if best < 0 || c.busiest < costs[best].busiest || c.busiest == costs[best].busiest && c.name == leap.Name {
			best = i
		}
	}
	return best
}

// why returns a sentence on why one of these was chosen.
func why(f *facts, costs []cost, chosen int, r *Rates) string {
	c := &costs[chosen]
	if len(costs) == 1 {
		return fmt.Sprintf("%s: about %s %s; no other strategy is possible for this job", c.name, c.load(), f.each())
	}
	fewest := true
	for i := range costs {
		fewest = fewest && c.sent() <= costs[i].sent()
	}
	if fewest {
		return fmt.Sprintf("%s: about %s %s, where %s; the network gives %s/s",
			c.name, c.load(), f.each(), others(costs, chosen, func(o *cost) string { return "would send " + o.loadBeside(c) }), amount(r.Bandwidth))
	}
	return fmt.Sprintf("%s: about %s a step, where %s: the busiest node computes %s rows a step, and the network gives %s/s",
		c.name, f.step(c), others(costs, chosen, func(o *cost) string {
			return fmt.Sprintf("would take %s with %s rows", f.step(o), count(o.rows))
		}), count(c.rows), amount(r.Bandwidth))
}

// each returns how often that is sent.
func (f *facts) each() string {
	if f.once {
		return "once, since all epochs have the same batch"
	}
	return "a step"
}

// others describes all strategies but one.
func others(costs []cost, chosen int, say func(*cost) string) string {
	var said []string
	for i := range costs {
		if i != chosen {
			said = append(said, costs[i].name+" "+say(&costs[i]))
		}
	}
	return strings.Join(said, " and ")
}

// load returns what a strategy sends in a step, in words.
func (c *cost) load() string { return amount(c.sent()) + " of " + c.kind() }

// loadBeside is load after that of another: the kind is only named where it differs.
func (c *cost) loadBeside(o *cost) string {
	if c.kind() == o.kind() {
		return amount(c.sent())
	}
	return c.load()
}

func (c *cost) kind() string {
	switch {
	case c.activations > 0 && c.topology > 0:
		return "activations and edges"
	case c.activations > 0:
		return "activations"
	case c.topology > 0:
		return "features and edges"
	}
	return "features"
}

// step returns the time of a step, in words.
func (f *facts) step(c *cost) string { return duration(c.seconds / float64(max(1, f.steps))) }

func duration(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return figures(seconds*1e6) + " us"
	case seconds < 1:
		return figures(seconds*1e3) + " ms"
	}
	return figures(seconds) + " s"
}

// amount formats bytes for people.
func amount(bytes float64) string {
	unit := 0
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	for bytes >= 999.5 && unit < len(units)-1 {
		bytes, unit = bytes/1000, unit+1
	}
	return figures(bytes) + " " + units[unit]
}

// count formats a number of things.
func count(n float64) string {
	switch {
	case n >= 999_500:
		return figures(n/1e6) + " million"
	case n >= 9_995:
		return figures(n/1e3) + " thousand"
	}
	return fmt.Sprintf("%.0f", n)
}

// figures formats the digits that matter: one after the point below ten.
func figures(x float64) string {
	if x < 9.95 && x > 0 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
