package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/replica"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
)

// A run is one job while this node runs it.
type run struct {
	cfg     Config
	job     plan.Job
	dataset plan.Dataset
	folder  string
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when it is over
	reports *reports
	sight   sight

	// The goroutine that trains looks at these: see attempt and stepped.
	counted  bool // its beginning is noted
	attempts attempts
	first    place

	self int // this node's place among the job's

	past *past

	// Where several nodes share the job.
	names    []string // of all of them
	missed   bool     // its generation began before this node did
	replicas *replica.Cache
	shards   []*graph.Shard    // mapped until it is over
	peers    strategy.Peers    // nil while there is no way to the others
	hangUp   func(cause error) // closes that
}

func newRun(cfg Config, j plan.Job, d plan.Dataset, folder string) *run {
	return &run{
		cfg: cfg, job: j, dataset: d, folder: folder, done: make(chan struct{}), reports: newReports(j),
		self: slices.Index(j.Nodes, cfg.Self), past: new(past),
	}
}

// shared says whether other nodes work on the job too.
func (r *run) shared() bool { return len(r.job.Nodes) > 1 }

// speaks says whether it is this node that tells of the job: one of them does.
func (r *run) speaks() bool { return r.self == 0 }

func (r *run) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// live trains, and tells the leader how that ended: unless the node is stopping, when
// the job is to go on at its next start, or the job is no longer this node's.
func (r *run) live(ctx, node context.Context) {
	log := r.cfg.Log.With("job", r.job.ID, "dataset", r.dataset.Name)
	log.Info("begins to train", "generation", r.job.Generation, "known", r.job.Last(), "nodes", len(r.job.Nodes))
	// What was learnt is still told when the job is to stop.
	telling, silence := context.WithCancelCause(context.WithoutCancel(ctx))
	defer silence(nil)
	// Whatever the job ended by: nobody may be there to hear of it.
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
	// The others may need what this node has until they know how the job goes on.
	defer func() { r.leave(context.Cause(ctx)) }()
	result, err := r.train(ctx)
	r.reports.close(err == nil)
	refused := <-told
	if err != nil && refused == nil && ctx.Err() == nil && r.fleeting(err) {
		err = r.anew(ctx, err)
	}
	if err != nil && refused == nil && r.spared(err) {
		// The others may do without what could not be kept here.
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
	case ctx.Err() != nil, err == nil: // whether telling has heard of it yet or not
		log.Info("leaves the word on the job to others", "why", cause)
		return
	default:
		end.State, end.Error = plan.Failed, sentence(r.located(r.advised(err)))
	}
	log.Info("has ended a job", "state", string(end.State), "err", end.Error)
	r.finish(telling, end)
}

// sparePatience is how long the first node may take to tell how the job ends, or the
// plan to go on without this one, until a disk that is full here ends it.
const sparePatience = 30 * time.Second

// spared says whether the job may come to a good end although this node's part did not.
func (r *run) spared(err error) bool {
	_, unsaved := errors.AsType[*train.Unsaved](err)
	return unsaved && r.shared() && !r.speaks()
}

// bestOf is the best epoch, 0 if it was not evaluated; of a sweep, that of the best model
// and those of all.
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

// finish tells the leader until it is heard.
func (r *run) finish(ctx context.Context, end plan.FinishJob) {
	for {
		err := r.cfg.Leader.Finish(ctx, end)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case errors.Is(err, ErrRefused) && end.Best != 0:
			end.Best, end.BestModel, end.Bests = 0, 0, nil // an epoch of which the plan knows nothing
			continue
		case errors.Is(err, ErrRefused):
			r.cfg.Log.Warn("the end of a job is refused", "job", end.ID, "err", err)
			return
		}
		r.cfg.Log.Debug("tell how a job has ended", "job", end.ID, "err", err)
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
}

// advised adds the command that lets a job go on which has diverged.
func (r *run) advised(err error) error {
	if d, ok := errors.AsType[*train.Diverged](err); ok && d.Checkpoint != "" && !d.Features && r.job.Models() == 1 {
		return fmt.Errorf("%w; `hopmesh train resume %s --lr RATE` goes on", err, r.job.ID)
	}
	return err
}

// train also outlives a fault of the program, which is then the job's end and not
// the node's.
func (r *run) train(ctx context.Context) (result train.Result, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			r.cfg.Log.Error("a fault of hopmesh ended a job", "job", r.job.ID, "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
			err = fmt.Errorf("a fault of hopmesh itself ended the training (%v): please report it, with what the log of the node that ran it says of it", fault)
		}
	}()
	if r.missed {
		return train.Result{}, errMissed
	}
	var recipe train.Recipe
	if err := json.Unmarshal([]byte(r.job.Recipe), &recipe); err != nil {
		return train.Result{}, fmt.Errorf("the recipe can't be read, as if by another version of hopmesh: %w", err)
	}
	// Of a shared job, others may keep what was learnt, and this one says that it does not.
	if err := os.MkdirAll(r.folder, 0o700); err != nil && !r.shared() {
		return train.Result{}, fmt.Errorf("keep checkpoints: %w", err)
	}
	if err := r.attempt(); err != nil {
		return train.Result{}, err
	}
	defer r.survived()
	if r.shards, err = r.openShards(); err != nil {
		return train.Result{}, err
	}
	if ctx.Err() != nil {
		return train.Result{}, context.Cause(ctx)
	}
	announced := false
	tell := func(e train.Epoch) {
		if r.speaks() {
			r.reports.add(recordOf(e, r.job.Generation, recipe.Metric))
		}
	}
	result, err = r.compute(ctx, recipe, train.Options{
		Memory: r.cfg.Memory, Dataset: r.dataset.Content(), Dir: r.folder, Resume: true, Known: r.job.Last(), Log: r.cfg.Log,
		Peers: r.peers, Work: strategy.Work{Nodes: r.names, Self: r.self, Owners: r.job.Owners, Holders: r.job.Holders, Weights: r.job.Weights}, Strategies: r.cfg.Strategies, Replicas: r.replicas,
		Announce: func(f train.Forecast) {
			r.cfg.Log.Info("will train", "job", r.job.ID, "shard_bytes", f.Shards, "arena_bytes", f.Arenas, "weights", f.Weights, "resumed", f.Resumed, "step", f.Step)
			announced = true
			r.sight.announce(f)
			// The plan may not have heard of all that the checkpoint knows.
			for _, e := range slices.SortedStableFunc(slices.Values(f.History), func(a, b train.Epoch) int { return cmp.Compare(a.Epoch, b.Epoch) }) {
				tell(e)
			}
		},
		Progress: func(p train.Progress) {
			r.reports.begun(p.Epoch)
			r.past.reached(p.Epoch, p.Step)
			r.stepped(p.Epoch, p.Step)
			r.sight.progress(p)
		},
		Kept: r.sight.kept,
		Report: func(e train.Epoch) {
			if e.Epoch > r.job.Last() {
				r.survived()
			}
			r.past.reached(e.Epoch+1, 0)
			r.sight.epoch(e)
			tell(e)
		},
		Lost: func(model int, why string) { r.sight.lose(model, r.job.Models(), why) },
	})
	if err != nil && !announced && ctx.Err() == nil && !r.fleeting(err) && damaged(r.folder) {
		err = fmt.Errorf("%w; this job can't go on, so start another, and remove this one with `hopmesh train remove %s`", err, r.job.ID)
	}
	return result, err
}

// damaged says whether there is a checkpoint that can't be used.
func damaged(folder string) bool {
	model := filepath.Join(folder, train.CheckpointFile)
	_, err := os.Stat(model)
	return err == nil && CheckModel(model) != nil
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

// CloseShards unmaps those that are there.
func CloseShards(list []*graph.Shard) {
	for _, s := range list {
		if s != nil {
			_ = s.Close() // it was only read
		}
	}
}

// sentence makes an error fit for the plan.
func sentence(err error) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, err.Error())
	for len(text) > plan.MaxSentence {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
