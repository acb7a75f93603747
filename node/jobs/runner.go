package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// Leader is told what becomes of jobs. ErrRefused in an error means that the plan
// does not take it, and never will.
type Leader interface {
	Commit(ctx context.Context, c plan.CommitEpochs) error
	Finish(ctx context.Context, c plan.FinishJob) error
	// Renew asks for a new generation of a job that several nodes share. False says
	// that nothing has come of it: the job has another generation already, or can't
	// begin one with whoever serves now.
	Renew(ctx context.Context, r Renewal) (renewed bool, err error)
	// Index is the index of the leader's plan: a node that has read less may act on
	// what is long past.
	Index(ctx context.Context) (uint64, error)
}

// ErrRefused is the plan's no.
var ErrRefused = errors.New("the plan does not take what this node says of a job")

// Train is train.Run, or what stands in for it in tests.
type Train func(ctx context.Context, r train.Recipe, shards []*graph.Shard, o train.Options) (train.Result, error)

// Peers opens the way between the nodes of a job, in its generation: their names, in
// the order of the plan, and which of them this one is. hangUp closes it, for a
// reason, and returns when nobody's questions are answered any more.
type Peers func(j plan.Job, names []string, self int) (peers strategy.Peers, hangUp func(cause error))

// Config says what a Runner works with. All fields are required but Memory
// and Device.
type Config struct {
	Dir    string // holds one folder for each job
	Self   string // this node's id
	Memory uint64 // bytes that a job may use; 0: no bound
	// Shard is where the file of a shard that this node holds lies.
	Shard  func(dataset string, shard int) string
	Leader Leader
	Train  Train
	Log    *slog.Logger
	// Device is what jobs compute on as long as it does not fail.
	Device Device
	// Peers and Strategies are for jobs that several nodes share.
	Peers      Peers
	Strategies []strategy.Strategy
}

// A Runner runs one job at a time. Its methods may be called from any goroutine.
type Runner struct {
	cfg  Config
	wake chan struct{} // buffered: something has changed

	mu      sync.Mutex
	plan    *plan.State // the newest
	current *run        // nil while there is none
	totals  Totals

	// Run's own.
	folders map[string]bool   // those on disk
	ended   map[string]uint64 // by job: the generation in which it has ended here
	pasts   map[string]*past  // by job
	// missed is the generation in which a job, the one that this node shares, was under
	// way when it started: the others may be anywhere in it.
	missed uint64
	// replicas are of the dataset with this content.
	replicas *replica.Cache
	content  string
	// way is open for the run that begins next.
	way way
}

// Open makes a Runner. It does nothing before Run.
func Open(cfg Config) *Runner {
	return &Runner{cfg: cfg, wake: make(chan struct{}, 1), plan: new(plan.State), folders: map[string]bool{}, ended: map[string]uint64{}, pasts: map[string]*past{}}
}

// Adopt takes in a newer version of the plan.
func (r *Runner) Adopt(s *plan.State) {
	r.mu.Lock()
	r.plan = s
	r.mu.Unlock()
	nudge(r.wake)
}

// lookEvery is how often to try again to reach the leader.
const lookEvery = time.Second

var (
	errStopping = asked("this node is stopping")
	errWanted   = asked("it was stopped")
	errStale    = errors.New("the job is no longer this node's, or has another generation")
)

// asked is why a job ends here that no other node is to blame for: it may keep what it has
// learnt.
type asked string

func (a asked) Error() string { return string(a) }

// Is says so to who trains.
func (a asked) Is(target error) bool { return target == train.ErrAsked }

// Run does what the plan says until ctx ends, and then waits for the job under way,
// which keeps a checkpoint. It does nothing before this node has read as much of the
// plan as the leader had when asked: by an old plan it would remove what is needed.
func (r *Runner) Run(ctx context.Context) error {
	if !r.caughtUp(ctx) {
		return nil
	}
	if err := r.takeStock(); err != nil {
		r.cfg.Log.Warn("the folder for jobs can't be used; jobs that come here will fail", "err", err)
	}
	if j, on := r.state().JobOn(r.cfg.Self); on {
		r.missed = j.Generation
	}
	for {
		r.round(ctx)
		select {
		case <-r.wake:
		case <-ctx.Done():
			r.end(errStopping)
			r.part()
			return nil
		}
	}
}

func (r *Runner) caughtUp(ctx context.Context) bool {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		index, err := r.cfg.Leader.Index(ctx)
		for err == nil {
			if r.state().Index >= index {
				return true
			}
			select {
			case <-r.wake:
			case <-ctx.Done():
				return false
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

func (r *Runner) state() *plan.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plan
}

// round ends the job under way if it is not to run any more, and begins the one that
// is to.
func (r *Runner) round(ctx context.Context) {
	s := r.state()
	want, wanted := s.JobOn(r.cfg.Self)
	if now := r.running(); now != nil {
		if wanted && want.ID == now.job.ID && want.Generation == now.job.Generation {
			if want.Stopping {
				now.cancel(errWanted)
			}
		} else {
			now.cancel(errStale)
			if wanted && r.ended[want.ID] != want.Generation {
				r.meet(s, want)
			}
		}
		if !now.over() {
			r.sweep(s)
			return
		}
		r.end(nil)
	}
	r.sweep(s)
	switch {
	case !wanted:
		r.part()
		r.replicas, r.content = nil, ""
	case r.ended[want.ID] != want.Generation:
		r.ended[want.ID] = want.Generation
		r.begin(ctx, s, want)
	}
}

func (r *Runner) running() *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// begin starts a job. It is over when its end is in the plan, or no longer matters.
func (r *Runner) begin(ctx context.Context, s *plan.State, j plan.Job) {
	r.folders[folderOf(j)] = true
	run := newRun(r.cfg, j, s.Datasets[j.Dataset], r.Folder(j))
	r.meet(s, j)
	if run.shared() {
		run.names, run.peers, run.hangUp = r.way.names, outward{r.way.peers}, r.way.hangUp
		r.way = way{}
		run.missed = j.Generation == r.missed
		run.replicas = r.replicasOf(run.dataset)
	}
	run.past = r.pastOf(j)
	node := ctx
	ctx, run.cancel = context.WithCancelCause(node)
	if j.Stopping {
		run.cancel(errWanted)
	}
	r.mu.Lock()
	r.current = run
	r.mu.Unlock()
	go func() {
		defer nudge(r.wake)
		defer close(run.done)
		run.live(ctx, node)
	}()
}

func (r *Runner) pastOf(j plan.Job) *past {
	if r.pasts[j.ID] == nil {
		r.pasts[j.ID] = new(past)
	}
	return r.pasts[j.ID]
}

// replicasOf keeps what was brought from one generation to the next, as long as jobs
// work on the same dataset.
func (r *Runner) replicasOf(d plan.Dataset) *replica.Cache {
	if content := d.Content(); r.replicas == nil || r.content != content {
		r.replicas, r.content = new(replica.Cache), content
	}
	return r.replicas
}

// end waits for the job under way, and ends it before if there is a cause.
func (r *Runner) end(cause error) {
	now := r.running()
	if now == nil {
		return
	}
	if cause != nil {
		now.cancel(cause)
	}
	<-now.done
	now.cancel(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.totals.add(now.seen())
	r.current = nil
}

// folderOf is the name of a job's folder: its id, for people, and its key, by which
// it is never taken for another job's.
func folderOf(j plan.Job) string { return j.ID + "-" + j.Key }

// Folder is where the checkpoint of a job lies, if this node has one.
func (r *Runner) Folder(j plan.Job) string { return filepath.Join(r.cfg.Dir, folderOf(j)) }

func (r *Runner) takeStock() error {
	if err := os.MkdirAll(r.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("create the folder for jobs: %w", err)
	}
	entries, err := os.ReadDir(r.cfg.Dir)
	if err != nil {
		return fmt.Errorf("read the folder for jobs: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			r.folders[e.Name()] = true
		}
	}
	return nil
}

// sweep removes what is left of jobs that the plan has forgotten.
func (r *Runner) sweep(s *plan.State) {
	known := map[string]bool{}
	for _, j := range s.Jobs {
		known[folderOf(j)] = true
	}
	if now := r.running(); now != nil {
		known[folderOf(now.job)] = true // it may still write there
	}
	for name := range r.folders {
		if known[name] {
			continue
		}
		delete(r.folders, name)
		if err := os.RemoveAll(filepath.Join(r.cfg.Dir, name)); err != nil {
			r.cfg.Log.Warn("could not remove the files of a job that is forgotten", "folder", name, "err", err)
		}
	}
	for id := range r.ended {
		if _, in := s.Jobs[id]; !in {
			delete(r.ended, id)
			delete(r.pasts, id)
		}
	}
}

// nudge puts a token into a channel that holds one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
