package peers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/mesh"
)

// Mesh is the part of the mesh that a Registry uses.
type Mesh interface {
	Fetch(ctx context.Context, peer string, q mesh.Question) ([]byte, error)
}

var _ Mesh = (*mesh.Mesh)(nil)

const (
	// openPatience is how long a question may wait for its session to open. Nodes learn
	// of a plan at different times, and start at their own pace.
	openPatience = 30 * time.Second
	// maxWaiting bounds how many questions of one peer may wait for a session. maxBodies
	// bounds the bytes of bodies held for one peer.
	maxWaiting = 128
	maxBodies  = 64 << 20
	// maxRunning bounds how many answers are computed for one peer at once. maxAnswers
	// bounds their bytes, by their limits, and maxAllAnswers the bytes for all peers.
	// Data that nodes offer each other in a step does not count: it is in memory anyway,
	// and a question for it may have to wait until another question is answered.
	maxRunning    = 32
	maxAnswers    = 512 << 20
	maxAllAnswers = 2 << 30
	// maxClosed bounds how many jobs are remembered that do not run here.
	maxClosed = 256
)

// Registry holds the sessions of this node. Its methods may be called from any goroutine.
type Registry struct {
	mesh Mesh
	log  *slog.Logger

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a session opens or closes
	jobs    map[jobKey]*job
	loads   map[string]*load
	waiting int // questions that wait for a session
	answers int // bytes of the answers under way
}

// job is what this node knows about a job.
type job struct {
	newest  uint64   // the highest generation seen here
	session *Session // of that generation; nil once it is closed
}

// load counts what a peer's questions use here.
type load struct {
	questions, waiting, bytes int
	running, answers          int // answers under way, and their bytes
}

// New makes a Registry without sessions.
func New(m Mesh, log *slog.Logger) *Registry {
	return &Registry{mesh: m, log: log, changed: make(chan struct{}), jobs: map[jobKey]*job{}, loads: map[string]*load{}}
}

// Open begins a job's session in one generation of the plan. ids and names are those of
// its nodes in the order of the plan, and self is this node's index. From now on,
// questions of earlier generations are refused, and questions of this one wait for the
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
	r.wake()
	return s
}

// makeRoom forgets a job that does not run here if many are remembered. Called with mu
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

// wake wakes all waiting questions. Called with mu held.
func (r *Registry) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// admit reserves room for a question with a body of the given size, until leave.
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

// enter returns the session that a question is for, after waiting for it if necessary,
// and the asking node's index. The session does not close before done.
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

// look is enter without waiting. If it returns neither a session nor an error, the
// question can't be answered yet, and why is the reason. Called with mu held.
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

// cost is how much an answer counts against the limits.
type cost struct{ running, bytes int }

func costOf(h head) cost {
	if h.service == peer.Offers {
		return cost{}
	}
	return cost{1, int(min(h.limit, maxAnswers))}
}

// depart frees the room of an answer.
func (r *Registry) depart(l *load, h head) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := costOf(h)
	l.running -= c.running
	l.answers -= c.bytes
	r.answers -= c.bytes
	if c.running > 0 && r.waiting > 0 {
		r.wake()
	}
}

// superseded reports whether a newer generation of the session's job is known.
func (r *Registry) superseded(s *Session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[s.key]
	return j != nil && j.newest > s.generation
}

// Reasons for a refusal, for the program that asked. reasonLater means that it may ask
// again. reasonEarly means that the node will also be able to answer soon.
const (
	reasonLater = "later"
	reasonEarly = "early"
	reasonNo    = "no"
)
