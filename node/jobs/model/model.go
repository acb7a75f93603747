// Package model predicts with the trained models of jobs, exports them, and serves checkpoints
// to other nodes. A node that lacks a checkpoint or shards borrows them for one request and
// removes them when it has ended.
package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/damage"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/ongoing"
	"github.com/hopmesh/hopmesh/node/shards"
	"github.com/hopmesh/hopmesh/node/wording"
)

// Plan is the part of the replicated plan that models use.
type Plan interface {
	State() *plan.State
}

// Mesh is the part of the mesh that models use.
type Mesh interface {
	ID() string
	Fetch(ctx context.Context, peer string, q mesh.Question) ([]byte, error)
}

// Shards is the part of this node's shards that models use.
type Shards interface {
	// Borrow fetches shards that this node does not hold into a folder.
	Borrow(ctx context.Context, dataset string, list []int, folder string) error
	// Confirm returns nil if a shard's file here has the content that the plan names.
	Confirm(ctx context.Context, dataset string, shard int, opened fs.FileInfo) error
}

var (
	_ Plan   = (*consensus.Consensus)(nil)
	_ Mesh   = (*mesh.Mesh)(nil)
	_ Shards = (*shards.Keeper)(nil)
)

// Config configures Models. All fields but Memory and Device are required.
type Config struct {
	Dir    string // where jobs have their folders
	Name   string // of this node
	Memory uint64 // bytes that a prediction may use; 0: no bound
	Device jobs.Device
	Mesh   Mesh
	Plan   Plan
	Shards Shards
	Runner *jobs.Runner
	// Find returns a job of the plan, and Dataset its dataset, or the API's error.
	Find    func(ctx context.Context, id string) (*plan.State, plan.Job, error)
	Dataset func(j plan.Job) (plan.Dataset, error)
	// Answers reports whether gossip sees a node alive, and ShardFile returns the path of a
	// shard that this node holds.
	Answers   func(id string) bool
	ShardFile func(dataset string, shard int) string
	Damage    shards.Damage
	Log       *slog.Logger
}

// Models is this node's access to the trained models of jobs. Its methods may be called from
// any goroutine.
type Models struct {
	cfg      Config
	serves   chan struct{} // bounds how many pieces of checkpoints are read for others at once
	underWay ongoing.Group
	damaged  sync.Map // by id: jobs whose model users were told is damaged here
}

// New makes Models.
func New(cfg Config) *Models { return &Models{cfg: cfg, serves: make(chan struct{}, maxServes)} }

// Run waits until ctx ends, cancels all requests and waits for them.
func (m *Models) Run(ctx context.Context) error {
	tidied := make(chan struct{})
	go func() {
		defer close(tidied)
		for {
			select {
			case <-time.After(tidyEvery):
				m.tidy()
			case <-ctx.Done():
				return
			}
		}
	}()
	err := m.underWay.EndWith(ctx)
	<-tidied
	return err
}

// tidyEvery is the pause between looks for jobs that were removed.
const tidyEvery = 10 * time.Second

// tidy ends the damage of models whose jobs were removed.
func (m *Models) tidy() {
	list := m.cfg.Plan.State().Jobs
	for id := range m.damaged.Range {
		if _, in := list[id.(string)]; !in {
			m.damaged.Delete(id)
			m.cfg.Damage.Clear(damage.Model, id.(string))
		}
	}
}

// loan is a folder for files that this node borrows from others. It lies among the
// folders of jobs, where the runner removes leftovers of a daemon that died.
type loan struct {
	parent, job string
	dir         string // "" while nothing was needed
}

func (l *loan) folder() (string, error) {
	if l.dir != "" {
		return l.dir, nil
	}
	err := os.MkdirAll(l.parent, 0o700)
	if err == nil {
		l.dir, err = os.MkdirTemp(l.parent, l.job+".borrowed-*")
	}
	if err != nil {
		return "", fmt.Errorf("make room for what other nodes have: %w", err)
	}
	return l.dir, nil
}

// end removes the folder. If that fails, the next start of the daemon does it.
func (l *loan) end(log *slog.Logger) {
	if l.dir == "" {
		return
	}
	if err := os.RemoveAll(l.dir); err != nil {
		log.Warn("could not remove what was borrowed to predict with", "path", l.dir, "err", err)
	}
}

// checkpointOf finds the checkpoint of a job: on this node, if it ran the job last, else on
// one of the nodes that did.
func (m *Models) checkpointOf(ctx context.Context, j plan.Job, l *loan) (string, error) {
	var damaged error
	here := filepath.Join(m.cfg.Runner.Folder(j), train.CheckpointFile)
	if slices.Contains(j.Nodes, m.cfg.Mesh.ID()) {
		_, err := os.Stat(here)
		if err == nil {
			if damaged = jobs.CheckModel(here); damaged == nil {
				if _, was := m.damaged.LoadAndDelete(j.ID); was {
					m.cfg.Damage.Repaired(damage.Model, j.ID, fmt.Sprintf("the model of job %s was damaged, and there is another", j.ID))
				}
				return here, nil
			}
			if errors.Is(damaged, trained.ErrInParts) {
				return m.wholeOf(ctx, j, l)
			}
			m.damaged.Store(j.ID, true)
			m.cfg.Damage.Found(damage.Model, j.ID, fmt.Sprintf("the model of job %s is damaged (%v): that of another node is taken, if there is one", j.ID, damaged))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	own := damaged
	var silent []string
	for _, id := range m.othersOf(j) {
		path, err := m.borrow(ctx, id, j, l)
		switch {
		case err == nil:
			bad := jobs.CheckModel(path)
			if errors.Is(bad, trained.ErrInParts) {
				return m.wholeOf(ctx, j, l)
			}
			if bad == nil {
				return m.mend(j, path, here, own), nil
			}
			damaged = bad
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case errors.Is(err, errKeeping):
			return "", m.noRoomFor(j, id, err)
		case mesh.RefusalOf(err) != lead.NotFound:
			silent = append(silent, fmt.Sprintf("node %s %v", m.cfg.Plan.State().NameOf(id), err))
		}
	}
	if damaged != nil && len(silent) == 0 {
		return "", api.Conflict("the model of job %s is damaged: start another job, and remove this one with `hopmesh train remove %s`; %v", j.ID, j.ID, damaged)
	}
	return "", m.noModel(j, silent)
}

// wholeOf finds the model of a job whose nodes have parts of it until it is done. Then some have all of it,
// and others may have what they had before. Of one that has ended otherwise the parts are put together, if they
// are of one epoch.
func (m *Models) wholeOf(ctx context.Context, j plan.Job, l *loan) (string, error) {
	var silent, parts []string
	if here := filepath.Join(m.cfg.Runner.Folder(j), train.CheckpointFile); slices.Contains(j.Nodes, m.cfg.Mesh.ID()) {
		parts = append(parts, here)
	}
	for i, id := range m.othersOf(j) {
		if !j.Ended() {
			break
		}
		path, err := m.borrow(ctx, id, j, l)
		switch {
		case err == nil && jobs.CheckModel(path) == nil:
			return path, nil
		case err == nil:
			part := fmt.Sprintf("%s.%d", path, i)
			if err := os.Rename(path, part); err != nil {
				return "", m.noRoomFor(j, id, err)
			}
			parts = append(parts, part)
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case errors.Is(err, errKeeping):
			return "", m.noRoomFor(j, id, err)
		case mesh.RefusalOf(err) != lead.NotFound:
			silent = append(silent, fmt.Sprintf("node %s %v", m.cfg.Plan.State().NameOf(id), err))
		}
	}
	if j.Ended() {
		dir, err := l.folder()
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, train.CheckpointFile)
		switch err := jobs.Assemble(path, parts); {
		case err == nil:
			return path, nil
		case !errors.Is(err, trained.ErrInParts):
			return "", fmt.Errorf("put the parts of the model of job %s together: %w", j.ID, err)
		}
	}
	if len(silent) > 0 {
		return "", m.noModel(j, silent)
	}
	return "", api.Conflict("there is no model of job %s yet: %s", j.ID, wording.Text(trained.ErrInParts.Error()))
}

// mend puts a whole model that was borrowed in place of this node's own, if that is damaged and
// no job writes there. It returns where the model lies.
func (m *Models) mend(j plan.Job, borrowed, here string, damaged error) string {
	if damaged == nil || !j.Ended() {
		return borrowed
	}
	err := synced(borrowed)
	if now, in := m.cfg.Plan.State().Jobs[j.ID]; !in || !now.Ended() || now.Generation != j.Generation || now.Key != j.Key {
		return borrowed // it was resumed or removed meanwhile: what lies here may be newer
	}
	if err == nil {
		err = os.Rename(borrowed, here)
	}
	if err == nil {
		err = synced(filepath.Dir(here))
	}
	if err != nil {
		m.cfg.Log.Warn("could not replace a damaged model", "job", j.ID, "err", err)
		return borrowed
	}
	m.damaged.Delete(j.ID)
	m.cfg.Damage.Repaired(damage.Model, j.ID, fmt.Sprintf("the model of job %s was damaged, and was replaced by that of another node", j.ID))
	return here
}

// synced brings a file, or the names in a folder, to the disk.
func synced(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// othersOf returns the other nodes of a job that are in the mesh.
func (m *Models) othersOf(j plan.Job) []string {
	members := m.cfg.Plan.State().Members
	return slices.DeleteFunc(slices.Clone(j.Nodes), func(id string) bool {
		_, in := members[id]
		return !in || id == m.cfg.Mesh.ID()
	})
}

func (m *Models) borrow(ctx context.Context, id string, j plan.Job, l *loan) (string, error) {
	if !m.cfg.Answers(id) {
		return "", errors.New("does not answer")
	}
	dir, err := l.folder()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errKeeping, err)
	}
	path := filepath.Join(dir, train.CheckpointFile)
	if err := m.fetch(ctx, id, j, path); err != nil {
		return "", fmt.Errorf("does not give it: %w", err)
	}
	return path, nil
}

// noRoomFor returns the error for a model that this node's disk has no room for.
func (m *Models) noRoomFor(j plan.Job, from string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p
	}
	other := m.cfg.Plan.State().NameOf(from)
	return api.Conflict("node %s can't keep the model of job %s, which it takes from node %s, on its own disk for a while: %v: free some space in its data directory, or ask node %s",
		m.cfg.Name, j.ID, other, err, other)
}

// noModel returns an error that explains why no checkpoint is available. silent lists
// nodes of the job that may have one, each with the reason why it could not provide it.
func (m *Models) noModel(j plan.Job, silent []string) error {
	s := m.cfg.Plan.State()
	var names []string
	for _, id := range j.Nodes {
		names = append(names, s.NameOf(id))
	}
	on, is := "node "+strings.Join(names, " and "), "is"
	if len(names) > 1 {
		on, is = "nodes "+strings.Join(names, " and "), "are"
	}
	stayed := slices.ContainsFunc(j.Nodes, func(id string) bool { return s.Members[id].ID != "" })
	switch {
	case len(j.Nodes) == 0 && j.Ended():
		return api.Conflict("job %s was stopped before it began, so there is no model: `hopmesh train resume %s` lets it begin", j.ID, j.ID)
	case len(j.Nodes) == 0:
		return api.Conflict("job %s has not begun yet, so there is no model: `hopmesh train watch %s` shows when it has", j.ID, j.ID)
	case len(silent) > 0:
		return api.Conflict("the model of job %s is on %s, and can't be had now: %s; start that node again if it is down, or ask once more", j.ID, on, strings.Join(silent, "; "))
	case !stayed && j.State == plan.Done:
		return api.Conflict("the model of job %s was on %s, which %s no longer in the mesh, and went with it: start another job", j.ID, on, is)
	case !stayed:
		return api.Conflict("what job %s had learnt was on %s, which %s no longer in the mesh, and went with it: `hopmesh train resume %s` begins it anew on another", j.ID, on, is, j.ID)
	case j.Ended():
		return api.Conflict("job %s ended before it had a checkpoint, so there is no model: `hopmesh train show %s` says how it ended", j.ID, j.ID)
	}
	return api.Conflict("job %s has no checkpoint yet: one is written every few seconds, and when the job ends", j.ID)
}

// Predict writes the predictions of a job's model for every vertex of its dataset or of another, or
// for pairs.
func (m *Models) Predict(ctx context.Context, id string, r api.PredictRequest, to io.Writer) error {
	return m.with(ctx, id, "prediction", r.Index, func(ctx context.Context, j plan.Job, file modelFile, l *loan) error {
		return m.predict(ctx, j, file, l, r, to)
	})
}

// Export writes the model itself.
func (m *Models) Export(ctx context.Context, id string, r api.ExportRequest, to io.Writer) error {
	return m.with(ctx, id, "export", r.Index, func(_ context.Context, _ plan.Job, file modelFile, _ *loan) (err error) {
		defer mapped.End(mapped.Guard()) // the checkpoint is mapped
		defer mapped.Caught(&err)
		return trained.Export(to, file.checkpoint, file.index)
	})
}

// modelFile is a checkpoint, which holds all models of a job, and the index of one of them.
type modelFile struct {
	checkpoint string
	index      int
}

// with calls do with the model of a job, and cancels it when the node stops.
func (m *Models) with(ctx context.Context, id, what string, asked *int, do func(context.Context, plan.Job, modelFile, *loan) error) error {
	_, j, err := m.cfg.Find(ctx, id)
	if err != nil {
		return err
	}
	return m.withJob(ctx, j, what, asked, do)
}

// withJob is with, of a job that was found.
func (m *Models) withJob(ctx context.Context, j plan.Job, what string, asked *int, do func(context.Context, plan.Job, modelFile, *loan) error) error {
	if recipe.Strategies.Of(j.Strategy).Elsewhere {
		return api.Conflict("the model of job %s is a program's, which alone can compute it: there is no %s of it here, and what the program has kept comes back to it by mesh.restore of Python's package hopmesh", j.ID, what)
	}
	index, err := recipe.ModelIndex(j, asked)
	if err != nil {
		return err
	}
	ctx, done, err := m.underWay.Begin(ctx)
	if err != nil {
		return api.Unavailable("this node is stopping")
	}
	defer done()
	defer budget.Begin()()
	l := &loan{parent: m.cfg.Dir, job: filepath.Base(m.cfg.Runner.Folder(j))}
	defer l.end(m.cfg.Log)
	checkpoint, err := m.checkpointOf(ctx, j, l)
	if err == nil {
		err = do(ctx, j, modelFile{checkpoint, index}, l)
	}
	mapped.LogFault(m.cfg.Log, "the "+what+" of a model", err, "job", j.ID)
	if _, said := errors.AsType[*api.Error](err); err == nil || said {
		return err
	}
	if ctx.Err() != nil {
		return api.Unavailable("the %s was interrupted", what)
	}
	return api.Conflict("%v", err)
}

// predict predicts with shards of this node and borrowed ones.
func (m *Models) predict(ctx context.Context, j plan.Job, file modelFile, l *loan, r api.PredictRequest, to io.Writer) error {
	if err := learnt(j, r); err != nil {
		return err
	}
	d, err := m.datasetOf(j, r.Dataset)
	if err != nil {
		return err
	}
	return m.reading(ctx, d, j, file, l, func(on reading) error {
		p := jobs.Prediction{
			Model: file.checkpoint, Index: file.index, Shards: on.shards, Folder: on.folder, Memory: m.cfg.Memory, Device: m.cfg.Device, Format: r.Format, Embeddings: r.Embeddings,
			Intact: on.intact,
		}
		if r.Paired() {
			of := jobs.Pairing{Pairs: r.Pairs, Top: r.Top, Vertices: r.Vertices, Neighbours: r.Neighbours}
			if of.Relation, err = recipe.Relation(d, r.Relation); err != nil {
				return err
			}
			return jobs.PredictPairs(ctx, p, of, to)
		}
		return jobs.Predict(ctx, p, to)
	})
}

// learnt returns an error unless a job has learnt what the request says, or can score pairs if
// it asks for these.
func learnt(j plan.Job, r api.PredictRequest) error {
	learns := cmp.Or(recipe.Read(j).Task, task.Kinds[0].Name)
	switch {
	case r.Task != "" && r.Task != learns:
		return api.Conflict("job %s learns the task %s, and --task is %s: leave it out, or name another job", j.ID, learns, r.Task)
	case r.Paired() && !task.Named(learns).Pairs:
		return api.Conflict("job %s learns the task %s, and pairs are scored by a model of task link: train one with `hopmesh train start --task link`", j.ID, learns)
	}
	return nil
}

// fits returns an error if this node's disk has too little room for the shards that it lacks.
func (m *Models) fits(folder, dataset string, lacks int, bytes uint64) error {
	if free, _, err := budget.Disk(folder); err == nil && bytes > free {
		what, take := fmt.Sprintf("%d shards", lacks), "take"
		if lacks == 1 {
			what, take = "1 shard", "takes"
		}
		return fmt.Errorf("node %s lacks %s of dataset %s, which %s %s on its disk while it predicts, and has %s free: free some space in its data directory, or ask a node that holds more of them",
			m.cfg.Name, what, dataset, take, budget.Format(bytes), budget.Format(free))
	}
	return nil
}
