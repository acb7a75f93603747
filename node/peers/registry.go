package peers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/mesh"
)

// Mesh is what is needed of the mesh.
type Mesh interface {
	Fetch(ctx context.Context, peer string, q mesh.Question) ([]byte, error)
}

var _ Mesh = (*mesh.Mesh)(nil)

const (
	// openPatience is how long a question may wait for its session. Nodes learn of a
	// plan at different times, and begin at their own pace.
	openPatience = 30 * time.Second
	// maxWaiting bounds how many questions of one peer may wait so, maxBodies the bytes
	// of bodies that are held for one peer.
	maxWaiting = 128
	maxBodies  = 64 << 20
	// maxRunning bounds how many answers are made for one peer at once, maxAnswers how
	// many bytes those may have by their limits, and maxAllAnswers those for all peers.
	// What nodes offer each other in a step does not count: it is there anyway, and a
	// question for it may wait for what another question brings about.
	maxRunning    = 32
	maxAnswers    = 512 << 20
	maxAllAnswers = 2 << 30
	// maxClosed bounds how many jobs are remembered that do not run here.
	maxClosed = 256
)

// A Registry is the sessions of this node. Its methods may be called from any
// goroutine.
type Registry struct {
	mesh Mesh
	log  *slog.Logger

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a session opens or closes
	jobs    map[jobKey]*job
	loads   map[string]*load
	waiting int // questions that do
	answers int // bytes of answers that are being made
}

// job is what is known here of a job.
type job struct {
	newest  uint64   // the highest generation that was ever here
	session *Session // of that generation; nil once it is closed
}

// load is what a peer's questions take here.
type load struct {
	questions, waiting, bytes int
	running, answers          int // that are being made, and their bytes
}

// New makes a Registry without sessions.
func New(m Mesh, log *slog.Logger) *Registry {
	return &Registry{mesh: m, log: log, changed: make(chan struct{}), jobs: map[jobKey]*job{}, loads: map[string]*load{}}
}

// Open begins a job's session in one generation of the plan. Its nodes have these ids
// and names, in the order of the plan, and this node is the one at self. Questions of
// earlier generations are refused from now on; those of this one wait for the
// session's Open.
func (r *Registry) Open(key string, generation uint64, ids, names []string, self int) *Session {
	s := newSession(r, keyOf(key), generation, ids, names, self)
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[s.key]
	if j == nil {
		r.makeRoom()
		j = &job{}
		r.jobs[s.key] = j
	}
	if generation >= j.newest {
		j.newest, j.session = generation, s
	}
	r.tell()
	return s
}

// makeRoom forgets a job that does not run here, if many are known. Called with mu
// held.
func (r *Registry) makeRoom() {
	if len(r.jobs) < maxClosed {
		return
	}
	for key, j := range r.jobs {
		if j.session == nil {
			delete(r.jobs, key)
			return
		}
	}
}

// tell wakes all questions that wait. Called with mu held.
func (r *Registry) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// admit makes room for a question with a body of so many bytes, until leave.
func (r *Registry) admit(peer string, bytes int) (*load, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.loads[peer]
	if l == nil {
		l = &load{}
		r.loads[peer] = l
	}
	if l.bytes+bytes > maxBodies {
		return nil, mesh.Refuse(reasonLater, "questions of %d MiB from one node are under way already", l.bytes>>20)
	}
	l.questions++
	l.bytes += bytes
	return l, nil
}

func (r *Registry) leave(peer string, l *load, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.questions--
	l.bytes -= bytes
	if l.questions == 0 {
		delete(r.loads, peer)
	}
}

// enter finds the session that a question is for, waiting for it a while, and who
// asks. The session does not close before done.
func (r *Registry) enter(ctx context.Context, peer string, l *load, h head) (*Session, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, from, why, err := r.look(peer, l, h)
	if s != nil || err != nil {
		return s, from, err
	}
	if l.waiting >= maxWaiting {
		return nil, 0, mesh.Refuse(reasonLater, "%d questions of one node wait already", l.waiting)
	}
	l.waiting++
	r.waiting++
	defer func() {
		l.waiting--
		r.waiting--
	}()
	timer := time.NewTimer(openPatience)
	defer timer.Stop()
	for {
		changed, ended := r.changed, error(nil)
		r.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			ended = why
		case <-ctx.Done():
			ended = context.Cause(ctx)
		}
		r.mu.Lock()
		if ended != nil {
			return nil, 0, ended
		}
		if s, from, why, err = r.look(peer, l, h); s != nil || err != nil {
			return s, from, err
		}
	}
}

// look is enter without waiting: neither a session nor an error means that it can't be
// asked yet, and why. Called with mu held.
func (r *Registry) look(peer string, l *load, h head) (s *Session, from int, why *mesh.Refusal, err error) {
	j := r.jobs[h.job]
	switch {
	case j != nil && h.generation < j.newest:
		return nil, 0, nil, fmt.Errorf("%w: generation %d of a job that is at %d", mesh.ErrSuperseded, h.generation, j.newest)
	case j == nil || h.generation > j.newest || j.session == nil:
		return nil, 0, mesh.Refuse(reasonLater, "it has not begun, or has ended, its part of the job in generation %d", h.generation), nil
	}
	from, in := j.session.places[peer]
	switch cost := costOf(h); {
	case !in:
		return nil, 0, nil, mesh.Refuse(reasonNo, "it does not share this job with who asks")
	case !j.session.open:
		return nil, 0, mesh.Refuse(reasonEarly, "it is not ready yet for generation %d of the job", h.generation), nil
	case cost.running > 0 && (l.running >= maxRunning || l.answers+cost.bytes > maxAnswers || r.answers+cost.bytes > maxAllAnswers):
		return nil, 0, mesh.Refuse(reasonLater, "it has %d answers of up to %d MiB under way to one node, and of %d MiB to all", l.running, l.answers>>20, r.answers>>20), nil
	default:
		l.running += cost.running
		l.answers += cost.bytes
		r.answers += cost.bytes
	}
	j.session.running.Add(1)
	return j.session, from, nil, nil
}

// A cost is what an answer counts for.
type cost struct{ running, bytes int }

func costOf(h head) cost {
	if h.service == strategy.Offers {
		return cost{}
	}
	return cost{1, int(min(h.limit, maxAnswers))}
}

// depart makes room for other answers.
func (r *Registry) depart(l *load, h head) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := costOf(h)
	l.running -= c.running
	l.answers -= c.bytes
	r.answers -= c.bytes
	if c.running > 0 && r.waiting > 0 {
		r.tell()
	}
}

// superseded says whether a newer generation of the session's job is known.
func (r *Registry) superseded(s *Session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[s.key]
	return j != nil && j.newest > s.generation
}

// Why a question is refused, for the program that asked: reasonLater says that it may
// be asked again, reasonEarly that its node is about to answer, too.
const (
	reasonLater = "later"
	reasonEarly = "early"
	reasonNo    = "no"
)
