package jobs

import (
	"sync"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/desk"
)

// desks are those at which the programs of jobs attach to this node, by job. They may be used
// from any goroutine.
type desks struct {
	mu   sync.Mutex
	all  map[string]*seat
	read uint64 // the index of the newest plan that was adopted
}

// seat is where a desk stands. By the plan with index since its job goes on, which older ones may not know.
type seat struct {
	desk  *desk.Desk
	since uint64
}

// Desk returns the desk of a job that goes on by the plan with this index, which this Runner may have yet to
// adopt. It is the same as long as the plan has the job.
func (r *Runner) Desk(id string, index uint64) *desk.Desk { return r.desks.of(id, index) }

func (d *desks) of(id string, index uint64) *desk.Desk {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.all[id]
	if at == nil {
		if d.all == nil {
			d.all = map[string]*seat{}
		}
		at = &seat{desk: desk.New()}
		d.all[id] = at
	}
	if index > d.read {
		at.since = max(at.since, index)
		at.desk.End(nil)
	}
	return at.desk
}

// adopt has programs hear of jobs that have ended, or go on after all.
func (d *desks) adopt(s *plan.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = max(d.read, s.Index)
	for id, of := range d.all {
		if s.Index < of.since {
			continue
		}
		at := of.desk
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
		at.desk.Close()
	}
}
