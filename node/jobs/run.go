package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/schedule"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/damage"
	"github.com/hopmesh/hopmesh/node/wording"
)

// run is one job while this node runs it.
type run struct {
	cfg     Config
	job     plan.Job
	dataset plan.Dataset
	folder  string
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when it is over
	reports *reports
	sight   sight

	tries tries

	self int // this node's index among the job's nodes

	past *past

	// Set if several nodes share the job.
	way      way  // to the others
	missed   bool // its generation started before this node did
	replicas *replica.Cache
	held     held // shards, mapped until the run is over
}

func newRun(cfg Config, j plan.Job, d plan.Dataset, folder string) *run {
	return &run{
		cfg: cfg, job: j, dataset: d, folder: folder, done: make(chan struct{}), reports: newReports(j),
		self: slices.Index(j.Nodes, cfg.Self), past: newPast(new(memory), desk.New()), held: held{files: cfg.Files, dataset: d},
	}
}

// seen returns what the run has counted so far.
func (r *run) seen() Totals {
	r.sight.mu.Lock()
	defer r.sight.mu.Unlock()
	return r.sight.sum
}

// shared reports whether other nodes work on the job too.
func (r *run) shared() bool { return len(r.job.Nodes) > 1 }

// speaks reports whether this node sends the reports on the job. Exactly one of its nodes
// does.
func (r *run) speaks() bool { return r.self == 0 }

func (r *run) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// live trains and reports to the leader how that ended. It does not report if the node is
// stopping, since the job then goes on at its next start, or if the job is no longer this
// node's.
func (r *run) live(ctx, node context.Context) {
	log := r.cfg.Log.With("job", r.job.ID, "dataset", r.dataset.Name)
	log.Info("begins to train", "generation", r.job.Generation, "known", r.job.Last(), "nodes", len(r.job.Nodes))
	// Epochs are still reported after the job is asked to stop.
	telling, silence := context.WithCancelCause(context.WithoutCancel(ctx))
	defer silence(nil)
	// However the job ended, the leader may be out of reach.
	defer context.AfterFunc(node, func() { silence(errStopping) })()
	defer context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, errWanted) && !errors.Is(cause, ErrRefused) {
			silence(cause)
		}
	})()
	told := make(chan error, 1)
	go func() {
		err := r.reports.send(telling, r.cfg, r.job)
		if err != nil {
			r.cancel(err)
		}
		told <- err
	}()
	// Other nodes may need this node's data until they know how the job goes on.
	defer func() { r.leave(context.Cause(ctx)) }()
	result, err := r.train(ctx)
	for err != nil && ctx.Err() == nil && (r.left(err) || r.awaits(ctx, err)) {
		result, err = r.train(ctx)
	}
	r.reports.close(err == nil)
	refused := <-told
	if err != nil && refused == nil && ctx.Err() == nil && r.fleeting(err) {
		err = r.anew(ctx, err)
	}
	if err != nil && refused == nil && r.spared(err) {
		// Other nodes may not need the checkpoint that could not be written here.
		select {
		case <-time.After(sparePatience):
		case <-ctx.Done():
		}
	}
	end := plan.FinishJob{ID: r.job.ID, Node: r.cfg.Self, Generation: r.job.Generation, Notes: r.sight.said(), Diverged: r.sight.diverged()}
	switch cause := context.Cause(ctx); {
	case err == nil && refused == nil && r.speaks():
		end.State = plan.Done
		end.Best, end.BestModel, end.Bests = bestOf(result)
	case refused != nil:
		end.State, end.Error = plan.Failed, sentence(refused)
	case errors.Is(cause, errWanted) && r.speaks():
		end.State = plan.Stopped
	case ctx.Err() != nil, err == nil: // whether the reporting goroutine knows of it yet or not
		log.Info("leaves the word on the job to others", "why", cause)
		return
	default:
		end.State, end.Error = plan.Failed, sentence(r.located(r.advised(err)))
	}
	log.Info("has ended a job", "state", string(end.State), "err", end.Error)
	r.finish(telling, end)
}

// sparePatience bounds how long a node with a full disk waits before it ends the job.
// Meanwhile the first node may report how the job ends, or the plan may go on without
// this node.
const sparePatience = 30 * time.Second

// spared reports whether the job may still succeed although this node's part failed.
func (r *run) spared(err error) bool {
	_, unsaved := errors.AsType[*checkpoint.Unsaved](err)
	return unsaved && r.shared() && !r.speaks()
}

// bestOf returns the best epoch, 0 if none was evaluated. For a sweep it returns the best
// model's epoch, that model, and the best epochs of all.
func bestOf(r train.Result) (epoch, model int, all []int) {
	for _, m := range r.Models {
		epoch, _, _ := bestOf(m)
		all = append(all, epoch)
	}
	if r.Best.Eval == nil {
		return 0, 0, all
	}
	return r.Best.Epoch, r.Best.Model, all
}

// finish reports the end to the leader until that succeeds.
func (r *run) finish(ctx context.Context, end plan.FinishJob) {
	for {
		err := r.cfg.Leader.Finish(ctx, end)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case errors.Is(err, ErrRefused) && end.Best != 0:
			end.Best, end.BestModel, end.Bests = 0, 0, nil // an epoch that the plan does not have
			continue
		case errors.Is(err, ErrRefused):
			r.cfg.Log.Warn("the end of a job is refused", "job", end.ID, "err", err)
			return
		}
		r.cfg.Log.Debug("report how a job has ended", "job", end.ID, "err", err)
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
}

// advised adds the command that lets a job go on after it diverged or could not write its
// checkpoint.
func (r *run) advised(err error) error {
	if d, ok := errors.AsType[*trained.Diverged](err); ok && d.Checkpoint != "" && !d.Features && r.job.Models() == 1 {
		return fmt.Errorf("%w; `hopmesh train resume %s --lr RATE` goes on", err, r.job.ID)
	}
	_, unsaved := errors.AsType[*checkpoint.Unsaved](err)
	if unsaved || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w, then go on with `hopmesh train resume %s`", err, r.job.ID)
	}
	return err
}

// train trains, and finds out whether damaged shards are to blame if that fails.
func (r *run) train(ctx context.Context) (train.Result, error) {
	result, err := r.guarded(ctx)
	mapped.LogFault(r.cfg.Log, "a job", err, "job", r.job.ID)
	return result, r.blame(ctx, err)
}

// guarded recovers from a panic, which ends the job but not the node.
func (r *run) guarded(ctx context.Context) (result train.Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			if err = mapped.Unreadable(fault); err != nil {
				return // it is told which shard that was of
			}
			r.cfg.Log.Error("a fault of hopmesh ended a job", "job", r.job.ID, "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
			err = fmt.Errorf("a fault of hopmesh itself ended the training (%v): please report it, with what the log of the node that ran it says of it", fault)
		}
	}()
	defer mapped.End(mapped.Guard())
	defer budget.Caught(&err) // before the above recovers
	defer r.past.memory.watch()()
	defer budget.Tidy()()
	if r.missed {
		return train.Result{}, errMissed
	}
	var recipe recipe.Recipe
	if err := json.Unmarshal([]byte(r.job.Recipe), &recipe); err != nil {
		return train.Result{}, fmt.Errorf("the recipe can't be read, as if by another version of hopmesh: %w", err)
	}
	// In a shared job, others may keep checkpoints even if this node can't; it reports
	// that.
	if err := os.MkdirAll(r.folder, 0o700); err != nil && !r.shared() {
		return train.Result{}, fmt.Errorf("keep checkpoints: %w", err)
	}
	if err := r.attempt(); err != nil {
		return train.Result{}, err
	}
	defer r.survived()
	if r.held.shards, err = r.openShards(ctx); err != nil {
		return train.Result{}, err
	}
	r.held.begin(filepath.Dir(r.cfg.Shard(r.dataset.ID, 0)))
	if ctx.Err() != nil {
		return train.Result{}, context.Cause(ctx)
	}
	announced := false
	var agreed schedule.Plan
	if r.way.agreed != nil {
		agreed = r.way.agreed
	}
	tell := func(e *trained.Epoch) {
		if r.speaks() {
			r.reports.add(recorded(e.Record, r.job.Generation))
		}
	}
	result, err = r.compute(ctx, recipe, train.Options{
		Memory: r.cfg.Memory, Dataset: r.dataset.Content(), ClassNames: r.dataset.About.ClassNames, Dir: r.folder, Resume: true, Known: r.job.Last(), Log: r.cfg.Log,
		Peers: r.way.peers, Work: peer.Work{Nodes: r.way.names, Self: r.self, Owners: r.job.Owners, Holders: r.job.Holders, Weights: r.job.Weights}, Strategies: r.cfg.Strategies, Replicas: r.replicas,
		Verify: r.verifies(), Desk: r.past.desk, Schedule: agreed, Weights: r.weights,
		Announce: func(f train.Forecast) {
			r.cfg.Log.Info("will train", "job", r.job.ID, "shard_bytes", f.Shards, "arena_bytes", f.Arenas, "weights", f.Weights, "resumed", f.Resumed, "step", f.Step)
			announced = true
			r.past.memory.announce(&f)
			r.sight.announce(f)
			// The plan may lack epochs that the checkpoint has.
			for _, e := range slices.SortedStableFunc(slices.Values(f.History), func(a, b trained.Epoch) int { return cmp.Compare(a.Epoch, b.Epoch) }) {
				tell(&e)
			}
		},
		Progress: func(p train.Progress) {
			r.reports.begun(p.Epoch)
			r.past.reached(p.Epoch, p.Step)
			r.stepped(p.Epoch, p.Step)
			r.sight.progress(p)
		},
		Kept: r.kept, Damaged: r.foundDamaged,
		Report: func(e trained.Epoch) {
			if e.Epoch > r.job.Last() {
				r.survived()
			}
			r.past.reached(e.Epoch+1, 0)
			r.sight.epoch(&e)
			tell(&e)
		},
		Lost: func(model int, why string) { r.sight.lose(model, r.job.Models(), why) },
	})
	if err != nil && !announced && ctx.Err() == nil && !r.fleeting(err) && damaged(r.folder) {
		err = fmt.Errorf("%w; this job can't go on, so start another, and remove this one with `hopmesh train remove %s`", err, r.job.ID)
	}
	return result, err
}

// damaged reports whether there is a checkpoint that can't be read. One of some learnt rows can.
func damaged(folder string) bool {
	model := filepath.Join(folder, train.CheckpointFile)
	_, err := os.Stat(model)
	if err == nil {
		err = CheckModel(model)
		return err != nil && !errors.Is(err, trained.ErrInParts)
	}
	return false
}

// OpenShards maps all shards of a dataset, which this node must hold.
func OpenShards(d plan.Dataset, path func(dataset string, shard int) string) ([]*graph.Shard, error) {
	var list []*graph.Shard
	for i := range d.Shards {
		s, err := graph.OpenShard(path(d.ID, i))
		if err != nil {
			CloseShards(list)
			return nil, unusable(d, i, err)
		}
		list = append(list, s)
	}
	return list, nil
}

func unusable(d plan.Dataset, shard int, err error) error {
	return fmt.Errorf("shard %d of dataset %s can't be used, and `hopmesh dataset verify %s` has it replaced if there is another copy: %w", shard, d.Name, d.Name, err)
}

// CloseShards unmaps the shards of a list that are not nil.
func CloseShards(list []*graph.Shard) {
	for _, s := range list {
		if s != nil {
			_ = s.Close() // it was only read
		}
	}
}

// sentence makes an error fit for the plan: one line, of limited length, with settings
// named as users write them.
func sentence(err error) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, wording.Text(err.Error()))
	for len(text) > plan.MaxSentence {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// kept notes that checkpoints can be written, or why not.
func (r *run) kept(err error) {
	r.sight.kept(err)
	if err == nil && r.past.mended() {
		r.cfg.Damage.Repaired(damage.Checkpoint, r.job.ID, fmt.Sprintf("the last checkpoint of job %s was damaged, and there is a new one", r.job.ID))
	}
}

// foundDamaged tells users that the last checkpoint of the job is damaged here.
func (r *run) foundDamaged(err error, before bool) {
	if r.cfg.Damage == nil {
		return
	}
	r.past.damage()
	then := "that of another node is taken, if there is one"
	if before {
		then = "it was set aside, and the one before it is taken"
	}
	r.cfg.Damage.Found(damage.Checkpoint, r.job.ID, fmt.Sprintf("the last checkpoint of job %s is damaged (%v): %s", r.job.ID, err, then))
}

// verifies returns how the run verifies its shards; nil: it trusts them.
func (r *run) verifies() train.Verify {
	if r.held.files == nil {
		return nil
	}
	return r.held.verify
}

// weightsPatience bounds how long a run asks for the weights that it starts from, while the nodes
// that have them do not answer.
const weightsPatience = 30 * time.Second

// weights is the run's train.Options.Weights.
func (r *run) weights(ctx context.Context, from recipe.From) ([]float32, error) {
	if r.cfg.Weights == nil {
		return nil, errors.New("this node has no access to models")
	}
	for until := time.Now().Add(weightsPatience); ; {
		weights, err := r.cfg.Weights(ctx, from)
		said, is := errors.AsType[*api.Error](err)
		gone := is && said.Status == http.StatusNotFound
		if err == nil || gone || ctx.Err() != nil || time.Now().After(until) {
			return weights, err
		}
		r.cfg.Log.Info("waits for the model that a job starts from", "job", r.job.ID, "from", from.Job, "err", err)
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
