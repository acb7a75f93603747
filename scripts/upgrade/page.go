package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// mostLost is how many steps one restart may cost.
const mostLost = 1

// page is what was measured.
type page struct {
	binaries binaries
	restarts []restart
	claims   []claim
}

// restart is that of one node while a job trains.
type restart struct {
	what                   string
	stopped, rested, whole time.Duration // from the signal: until it had ended, the next step came, all shared the job again
	generations, lost      int
}

// claim is something that must hold.
type claim struct {
	what, how string
	holds     bool
}

// claim notes, and says at once, whether something holds.
func (p *page) claim(what string, holds bool, how string) {
	fmt.Fprintf(os.Stderr, "%s: %v (%s)\n", what, holds, how)
	p.claims = append(p.claims, claim{what, how, holds})
}

// restarted notes, and says at once, what a restart took.
func (p *page) restarted(r restart) {
	fmt.Fprintf(os.Stderr, "%s: the next step after %.1f s, all share the job after %.1f s, %d steps made again\n", r.what, r.rested.Seconds(), r.whole.Seconds(), r.lost)
	p.restarts = append(p.restarts, r)
}

// missed returns an error if something does not hold.
func (p *page) missed() error {
	var errs []error
	for _, r := range p.restarts {
		if r.lost > mostLost {
			errs = append(errs, fmt.Errorf("%s: %d steps were made again, and at most %d may be", r.what, r.lost, mostLost))
		}
	}
	for _, c := range p.claims {
		if !c.holds {
			errs = append(errs, fmt.Errorf("it does not hold that %s: %s", c.what, c.how))
		}
	}
	return errors.Join(errs...)
}

func (p *page) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Rolling upgrades\n\nWritten by `make test-upgrade` on %s with %d cores. The version before is %s, this one %s. A later version is this one with all numbers raised.\n\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), p.binaries.commits[0], p.binaries.commits[1])
	fmt.Fprintf(&b, "## A job while nodes restart\n\nThree nodes share a deterministic job of %d epochs. Each is stopped by SIGTERM, once an epoch has ended since the last restart, and started as the other version on the same directory. Times are from the signal on. A restart has the job dealt out anew several times; steps that were made again are counted over all of them.\n\n",
		epochs)
	b.WriteString("| | ended | next step | all share the job | dealt out | steps made again |\n|---|---|---|---|---|---|\n")
	for _, r := range p.restarts {
		fmt.Fprintf(&b, "| %s | %.1f s | %.1f s | %.1f s | %d times | %d |\n", r.what, r.stopped.Seconds(), r.rested.Seconds(), r.whole.Seconds(), r.generations, r.lost)
	}
	b.WriteString("\n## What holds\n\n| | | |\n|---|---|---|\n")
	for _, c := range p.claims {
		holds := "holds"
		if !c.holds {
			holds = "FALLS SHORT"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.what, holds, strings.ReplaceAll(c.how, "|", "\\|"))
	}
	return b.String()
}
