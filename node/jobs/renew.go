package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Renewal reports that a node's part of a shared job can't go on in this generation, for
// a reason that a new generation may remove.
type Renewal struct {
	ID         string `json:"id"`
	Generation uint64 `json:"generation"`
	Why        string `json:"why"`
	// Unreached reports whether another node of the job could not be reached for long.
	Unreached bool `json:"unreached,omitempty"`
}

// mostRenewals is how often a node requests a new generation of a job without any
// progress.
const mostRenewals = 5

var (
	errMissed = errors.New("this node has started again, and the others may be anywhere in the job")
	errMoved  = errors.New("this node does not hold the shards any more that it had when the job was given to it")
)

// unanswered marks the error of an unanswered question, which is neither the job's fault
// nor this node's.
type unanswered struct{ err error }

func (e *unanswered) Error() string { return e.err.Error() }
func (e *unanswered) Unwrap() error { return e.err }

// fleeting reports whether the job may go on in another generation.
func (r *run) fleeting(err error) bool {
	_, is := errors.AsType[*unanswered](err)
	_, broken := errors.AsType[*slot.Broken](err)
	return is || r.shared() && (broken || mendable(err) || errors.Is(err, desk.ErrLeft)) || errors.Is(err, errMissed) || errors.Is(err, errMoved)
}

// anew asks for another generation until this one has ended. It returns an error if the
// job must end.
func (r *run) anew(ctx context.Context, why error) error {
	n := r.past.renewals()
	if n >= mostRenewals {
		return fmt.Errorf("%w; the job was begun anew %d times since it last got on, and no more is tried", why, n)
	}
	r.cfg.Log.Warn("a shared job can't go on here, and asks to be begun anew", "job", r.job.ID, "generation", r.job.Generation, "why", why)
	wait := time.Duration(0)
	if n > 0 {
		wait = lookEvery << (n - 1)
	}
	for {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return why
		}
		renewed, err := r.cfg.Leader.Renew(ctx, Renewal{ID: r.job.ID, Generation: r.job.Generation, Why: sentence(why), Unreached: errors.Is(why, peer.ErrUnreached)})
		if renewed && !errors.Is(why, errMissed) {
			r.past.renewed()
		}
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.Debug("ask for another generation of a job", "job", r.job.ID, "err", err)
		}
		wait = lookEvery
	}
}

// past is what a node remembers about a job from one generation to the next.
type past struct {
	memory *memory    // over all runs of the job here
	desk   *desk.Desk // of the job's program, if it has one

	mu          sync.Mutex
	epoch, step int   // the furthest place reached so far
	asked       int   // renewals requested since then
	broken      error // the failure of the node's device, after which the CPU computes
	damaged     bool  // users were told that the last checkpoint is
}

func newPast(m *memory, d *desk.Desk) *past { return &past{memory: m, desk: d} }

// reached records how far the job is.
func (p *past) reached(epoch, step int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch > p.epoch || epoch == p.epoch && step > p.step {
		p.epoch, p.step, p.asked = epoch, step, 0
	}
}

// damage notes that the last checkpoint is damaged, until mended reports that it was.
func (p *past) damage() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damaged = true
}

func (p *past) mended() (was bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, p.damaged = p.damaged, false
	return was
}

func (p *past) renewed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
}

func (p *past) renewals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// blame returns what is to blame for an error of training: damaged shards, if there are any.
func (r *run) blame(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	_, known := errors.AsType[*LostShards](err)
	if _, short := errors.AsType[*budget.Short](err); known || short {
		return err
	}
	if _, silent := errors.AsType[*unanswered](err); (silent || errors.Is(err, desk.ErrLeft) || train.Together(err)) && !r.held.broken() {
		return err // no shard here is to blame, and to read them all takes time
	}
	if lost, is := errors.AsType[*LostShards](r.held.confirm(ctx)); is {
		r.cfg.Log.Warn("a job can't go on with a shard that is damaged", "job", r.job.ID, "err", lost, "then", err)
		return lost
	}
	return err
}

// mendable reports whether an error is damage that a new generation may do without.
func mendable(err error) bool {
	lost, is := errors.AsType[*LostShards](err)
	_, there := errors.AsType[*train.Damaged](err)
	return is && lost.Elsewhere() || there && !is
}

// awaits waits until shards that a job of this node alone has lost are here again. It reports
// whether they are.
func (r *run) awaits(ctx context.Context, err error) bool {
	lost, is := errors.AsType[*LostShards](err)
	if !is || r.shared() || !lost.Elsewhere() {
		return false
	}
	r.held.end()
	r.cfg.Log.Warn("a job waits until this node has its shards again", "job", r.job.ID, "err", err)
	for {
		all := true
		for _, l := range lost.Lost {
			here, hope := r.held.files.Restored(r.dataset.ID, l.Shard)
			l.Elsewhere = l.Elsewhere && hope // else the error says that there is no copy
			all = all && here
		}
		if all || !lost.Elsewhere() {
			return all
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return false
		}
	}
}

// left reports whether the run of a job of this node alone ends since its program has left:
// then it begins anew, and waits for the next.
func (r *run) left(err error) bool {
	if r.shared() || !errors.Is(err, desk.ErrLeft) {
		return false
	}
	r.held.end()
	r.cfg.Log.Warn("a job waits for its program", "job", r.job.ID, "err", err)
	return true
}
