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
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/node/damage"
	"github.com/hopmesh/hopmesh/node/shards"
)

// Leader records the progress and the end of jobs. An error that wraps ErrRefused means
// that the plan rejects the change and always will.
type Leader interface {
	Commit(ctx context.Context, c plan.CommitEpochs) error
	Finish(ctx context.Context, c plan.FinishJob) error
	// Schedule proposes how the nodes of a job share its epochs.
	Schedule(ctx context.Context, c plan.ScheduleJob) error
	// Renew asks for a new generation of a job that several nodes share. It reports false
	// if that had no effect: the job has another generation already, or none can begin
	// with the nodes that serve now.
	Renew(ctx context.Context, r Renewal) (renewed bool, err error)
	// Index returns the index of the leader's plan. A node that has read less of the plan
	// may act on outdated state.
	Index(ctx context.Context) (uint64, error)
}

// ErrRefused means that the plan rejects a report for good.
var ErrRefused = errors.New("the plan does not take what this node says of a job")

// Train has the signature of train.Run, which tests replace.
type Train func(ctx context.Context, r recipe.Recipe, shards []*graph.Shard, o train.Options) (train.Result, error)

// Peers connects the nodes of a job in its generation. names are their names in the order
// of the plan, and self is this node's index among them. hangUp closes the connection
// with a cause, and returns when no question is being answered any more.
type Peers func(j plan.Job, names []string, self int) (peers peer.Peers, hangUp func(cause error))

// Config configures a Runner. All fields are required but Memory, Files, Damage, Device and
// Weights.
type Config struct {
	Dir    string // has one folder for each job
	Self   string // this node's id
	Memory uint64 // bytes that a job may use; 0: no bound
	// Shard returns the path of a shard that this node holds.
	Shard func(dataset string, shard int) string
	// Files verifies those shards; nil: they are trusted.
	Files  Files
	Leader Leader
	Train  Train
	Log    *slog.Logger
	// Device is used for jobs as long as it does not fail.
	Device Device
	// Peers and Strategies are used by jobs that several nodes share.
	Peers      Peers
	Strategies train.Strategies
	// Weights returns the weights of another job's model, from which a job starts. nil: none does.
	Weights func(ctx context.Context, from recipe.From) ([]float32, error)
	// Damage tells users of damaged checkpoints; nil: nobody is told.
	Damage shards.Damage
}

// lasting is what a Runner has of jobs from one run to the next.
type lasting struct {
	memories memories
	desks    desks
}

// Runner runs one job at a time. Its methods may be called from any goroutine.
type Runner struct {
	cfg  Config
	wake chan struct{} // buffered: something has changed

	mu      sync.Mutex
	plan    *plan.State // the newest
	current *run        // nil if no job runs
	totals  Totals

	lasting

	// Used by Run only.
	folders map[string]bool   // the job folders on disk
	ended   map[string]uint64 // by job: the generation in which it ended here
	pasts   map[string]*past  // by job
	// missed is the generation in which this node's shared job was running when the node
	// started. The others may be at any step of it.
	missed uint64
	// replicas holds other nodes' shards of the dataset with this content. It is closed
	// when no run uses it any more.
	replicas *replica.Cache
	content  string
	// way is the open connection for the run that begins next.
	way way
	// rest is called when nothing of the current job is held any more; nil: nothing is.
	rest func()
}

// Open makes a Runner, and a folder for jobs. What lies there now is left of earlier starts, and what
// others of this process put there later is in use. The Runner does nothing more before Run.
func Open(cfg Config) *Runner {
	r := &Runner{cfg: cfg, wake: make(chan struct{}, 1), plan: new(plan.State), folders: map[string]bool{}, ended: map[string]uint64{}, pasts: map[string]*past{}}
	if err := r.takeStock(); err != nil {
		cfg.Log.Warn("the folder for jobs can't be used; jobs that come here will fail", "err", err)
	}
	return r
}

// Adopt gives the Runner a newer version of the plan.
func (r *Runner) Adopt(s *plan.State) {
	r.mu.Lock()
	r.plan = s
	r.mu.Unlock()
	nudge(r.wake)
}

// lookEvery is the pause between attempts to reach the leader.
const lookEvery = time.Second

var (
	errStopping = asked("this node is stopping")
	errWanted   = asked("it was stopped")
	errStale    = errors.New("the job is no longer this node's, or has another generation")
)

// asked is the reason why a job ends here on request. No other node is to blame, so the
// job may write a checkpoint first.
type asked string

func (a asked) Error() string { return string(a) }

// Is makes errors.Is match train.ErrAsked.
func (a asked) Is(target error) bool { return target == train.ErrAsked }

// Run follows the plan until ctx ends, and then waits for the current job to write a
// checkpoint. It does nothing before this node has read as much of the plan as the leader
// had when asked, since with an old plan it would remove files that are needed.
func (r *Runner) Run(ctx context.Context) error {
	if !r.caughtUp(ctx) {
		return nil
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
			r.desks.close()
			r.part()
			r.drop()
			r.relax()
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

// round ends the current job if the plan no longer assigns it to this node, and starts
// the next one.
func (r *Runner) round(ctx context.Context) {
	s := r.state()
	r.desks.adopt(s)
	want, wanted := s.JobOn(r.cfg.Self)
	if now := r.running(); now != nil {
		now.way.agreed.adopt(s)
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
		r.drop()
		r.relax()
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

// begin starts a job. The run is over when its end is in the plan, or no longer matters.
func (r *Runner) begin(ctx context.Context, s *plan.State, j plan.Job) {
	if r.rest == nil {
		r.rest = budget.Begin()
	}
	r.folders[FolderOf(j)] = true
	run := newRun(r.cfg, j, s.Datasets[j.Dataset], r.Folder(j))
	r.meet(s, j)
	if run.shared() {
		run.way = r.way
		run.way.peers = outward{r.way.peers}
		r.way = way{}
		run.missed = j.Generation == r.missed
		run.replicas = r.replicasOf(run.dataset)
	} else {
		run.way.names = []string{s.NameOf(r.cfg.Self)} // which a program is given
	}
	run.past = r.pastOf(j)
	node := ctx
	// A node that stops ends its run with a cause, so that the engine saves what there is.
	ctx, run.cancel = context.WithCancelCause(context.WithoutCancel(node))
	run.way.agreed = newAgreed(ctx, r.cfg, j)
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
		run.cancel(nil)
		run.way.agreed.end()
	}()
}

func (r *Runner) pastOf(j plan.Job) *past {
	if r.pasts[j.ID] == nil {
		r.pasts[j.ID] = newPast(r.memories.job(j.ID), r.desks.of(j.ID, j.Generation))
	}
	return r.pasts[j.ID]
}

// replicasOf returns the replica cache of a dataset. It lives on from one generation to
// the next as long as jobs use the same dataset.
func (r *Runner) replicasOf(d plan.Dataset) *replica.Cache {
	if content := d.Content(); r.replicas == nil || r.content != content {
		r.drop()
		r.replicas, r.content = replica.NewCache(r.cfg.Dir), content
	}
	return r.replicas
}

// drop gives up what is kept of other nodes' shards. No run may read it any more.
func (r *Runner) drop() {
	if r.replicas == nil {
		return
	}
	if err := r.replicas.Close(); err != nil {
		r.cfg.Log.Warn("could not give up what was brought for a job", "err", err)
	}
	r.replicas, r.content = nil, ""
}

// relax lets the process give back what the jobs before have taken.
func (r *Runner) relax() {
	if r.rest != nil {
		r.rest()
		r.rest = nil
	}
}

// end waits for the current job. If cause is not nil, it cancels the job first.
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

// FolderOf returns the name of a job's folder: its id, which people can read, and its
// key, which no other job has.
func FolderOf(j plan.Job) string { return j.ID + "-" + j.Key }

// Folder returns the folder of a job's checkpoint, if this node has one.
func (r *Runner) Folder(j plan.Job) string { return filepath.Join(r.cfg.Dir, FolderOf(j)) }

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

// sweep removes the folders of jobs that are no longer in the plan.
func (r *Runner) sweep(s *plan.State) {
	r.forgive(s)
	known := map[string]bool{}
	for _, j := range s.Jobs {
		known[FolderOf(j)] = true
	}
	if now := r.running(); now != nil {
		known[FolderOf(now.job)] = true // the run may still write there
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
			r.memories.forget(id)
		}
	}
}

// forgive ends the damage of checkpoints that no run will need any more.
func (r *Runner) forgive(s *plan.State) {
	for id, p := range r.pasts {
		if j, in := s.Jobs[id]; (!in || j.Ended()) && p.mended() {
			r.cfg.Damage.Clear(damage.Checkpoint, id)
		}
	}
}

// nudge puts a token into a channel with a buffer of one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
