package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// A Renewal is a node's word that its part of a shared job can't go on in this
// generation, for a reason that another one may do away with.
type Renewal struct {
	ID         string `json:"id"`
	Generation uint64 `json:"generation"`
	Why        string `json:"why"`
	// Unreached says that another node of the job could not be reached for long.
	Unreached bool `json:"unreached,omitempty"`
}

// mostRenewals is how often a node has a job begun anew of which nothing comes.
const mostRenewals = 5

var (
	errMissed = errors.New("this node has started again, and the others may be anywhere in the job")
	errMoved  = errors.New("this node does not hold the shards any more that it had when the job was given to it")
)

// An unanswered question is no fault of the job, nor of this node.
type unanswered struct{ err error }

func (e *unanswered) Error() string { return e.err.Error() }
func (e *unanswered) Unwrap() error { return e.err }

// fleeting says whether the job may go on in another generation.
func (r *run) fleeting(err error) bool {
	_, is := errors.AsType[*unanswered](err)
	_, broken := errors.AsType[*train.Broken](err)
	return is || broken && r.shared() || errors.Is(err, errMissed) || errors.Is(err, errMoved)
}

// anew asks for another generation until this one has ended, or returns why the job
// must end.
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
		renewed, err := r.cfg.Leader.Renew(ctx, Renewal{ID: r.job.ID, Generation: r.job.Generation, Why: sentence(why), Unreached: errors.Is(why, strategy.ErrUnreached)})
		if renewed && !errors.Is(why, errMissed) {
			r.past.renewed()
		}
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.Debug("ask for another generation of a job", "job", r.job.ID, "err", err)
		}
		wait = lookEvery
	}
}

// past is what a node remembers of a job from one generation to the next.
type past struct {
	mu          sync.Mutex
	epoch, step int   // the furthest place that it ever came to
	asked       int   // how often it was begun anew since
	broken      error // how the node's device failed, after which the processor computes
}

// reached notes how far the job is.
func (p *past) reached(epoch, step int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch > p.epoch || epoch == p.epoch && step > p.step {
		p.epoch, p.step, p.asked = epoch, step, 0
	}
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
