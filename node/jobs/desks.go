package jobs

import (
	"sync"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/desk"
)

// desks are those at which the programs of jobs attach to this node, by job. They may be used
// from any goroutine.
type desks struct {
	mu  sync.Mutex
	all map[string]*desk.Desk
}

// Desk returns the desk of a job. It is the same as long as the plan has the job.
func (r *Runner) Desk(id string) *desk.Desk { return r.desks.of(id) }

func (d *desks) of(id string) *desk.Desk {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all[id] == nil {
		if d.all == nil {
			d.all = map[string]*desk.Desk{}
		}
		d.all[id] = desk.New()
	}
	return d.all[id]
}

// adopt has programs hear of jobs that have ended, or go on after all.
func (d *desks) adopt(s *plan.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, at := range d.all {
		switch j, in := s.Jobs[id]; {
		case !in:
			at.End(&desk.Ending{Why: "the job was removed"})
			delete(d.all, id)
		case !j.Ended():
			at.End(nil)
		case j.State == plan.Done:
			at.End(&desk.Ending{Done: true})
		case j.Error != "":
			at.End(&desk.Ending{Why: j.Error})
		default:
			at.End(&desk.Ending{Why: "the job was stopped"})
		}
	}
}

// close makes all programs leave.
func (d *desks) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.all {
		at.Close()
	}
}
