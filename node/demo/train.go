package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// Training describes how the demo's model was trained by one strategy. Rows, requests and
// bytes are totals over all epochs of training alone; Evaluation is the cost of
// evaluating.
type Training struct {
	Strategy     string          `json:"strategy"`
	Nodes        []string        `json:"nodes"`
	Epochs       int             `json:"epochs"`
	Seconds      float64         `json:"seconds"`       // from the request to the last epoch committed
	EpochSeconds float64         `json:"epoch_seconds"` // the mean, of training alone
	Best         int             `json:"best"`          // the epoch with the best validation
	ValAccuracy  float64         `json:"val_acc"`
	TestAccuracy float64         `json:"test_acc"`
	Rows         api.JobRows     `json:"rows"`
	Requests     api.JobRequests `json:"requests"`
	Bytes        api.JobBytes    `json:"bytes"`
	Evaluation   api.JobBytes    `json:"evaluation"`
	Weights      string          `json:"weights_sha256"` // after the last epoch
}

// published is the test accuracy in the paper of Kipf and Welling for this model. They
// trained on the whole graph at once.
const published = 81.5

// request returns the demo's job. It trains on mini-batches with sampled neighbours, as
// for graphs that do not fit into memory, and deterministically, so that the result does
// not depend on who computes what. If a strategy of the whole graph is compared, all
// strategies train on the whole graph.
func (s *show) request(name string, epochs int) api.TrainRequest {
	hidden, batch := 16, 70
	r := api.TrainRequest{Dataset: "cora", Model: "gcn", Hidden: &hidden, Epochs: &epochs, Strategy: name, Deterministic: true}
	if !s.whole {
		r.Batch, r.Fanout = &batch, []int{10, 10}
	}
	if name == "leap" || name == "centric" { // else both bring each row once, and send alike
		r.Set = []api.Setting{{Key: name + ".cache", Value: "off"}}
	}
	if name == "graph" { // its result depends on how the work is divided, which must not change when a node dies
		r.Set = []api.Setting{{Key: "pipe.ways", Value: strconv.Itoa(len(s.fleet.Nodes))}}
	}
	return r
}

// train trains the model by the strategy, and by centric for comparison.
func (s *show) train(ctx context.Context, r *Report, asked string, epochs int) error {
	for _, name := range []string{asked, "centric"} {
		if len(r.Training) > 0 && name == asked {
			break // the strategy was centric
		}
		t, err := s.trainBy(ctx, name, epochs)
		if err != nil {
			return err
		}
		r.Training = append(r.Training, t)
	}
	s.compare(r.Training)
	return nil
}

func (s *show) trainBy(ctx context.Context, strategy string, epochs int) (Training, error) {
	node := s.fleet.Nodes[0].API()
	begin := time.Now()
	id, err := node.StartJob(ctx, s.request(strategy, epochs))
	if err != nil {
		return Training{}, fmt.Errorf("start training: %w", err)
	}
	s.say("")
	s.note("training a GCN by %s", strategy)
	every := max(epochs/4, 1)
	job, err := node.WatchJob(ctx, id, func(e api.JobEvent) {
		if e.Epoch != nil && e.Epoch.ValAccuracy != nil && e.Epoch.Epoch%every == 0 {
			s.note("epoch %3d: loss %.3f, %.1f %% of the validation papers told right, %s sent",
				e.Epoch.Epoch, e.Epoch.Loss, 100**e.Epoch.ValAccuracy, size(sum(e.Epoch.Bytes)))
		}
	})
	if err != nil {
		return Training{}, fmt.Errorf("watch the training: %w", err)
	}
	t, err := summary(job)
	if err != nil {
		return t, err
	}
	t.Seconds = time.Since(begin).Seconds()
	s.note("%d nodes trained it for %d epochs in %.1f s: %.1f %% of the test papers right with this seed (the paper has %.1f %% on average)",
		len(t.Nodes), t.Epochs, t.Seconds, 100*t.TestAccuracy, published)
	return t, nil
}

// summary sums up a completed job.
func summary(job api.Job) (Training, error) {
	if job.State != "done" || job.Best == nil || len(job.History) == 0 {
		return Training{}, fmt.Errorf("the training is %s: %s", job.State, job.Error)
	}
	val, test := job.Best.ValAccuracy, job.Best.TestAccuracy
	if val == nil || test == nil {
		return Training{}, errors.New("the dataset of the demo has no validation or test papers")
	}
	t := Training{Strategy: job.Strategy, Nodes: job.Nodes, Epochs: len(job.History), Best: job.Best.Epoch, ValAccuracy: *val, TestAccuracy: *test}
	for _, e := range job.History {
		t.EpochSeconds += e.Seconds / float64(len(job.History))
		t.Rows.Local += e.Rows.Local
		t.Rows.Remote += e.Rows.Remote
		t.Requests.Feature += e.Requests.Feature
		t.Requests.Topology += e.Requests.Topology
		t.Requests.Activation += e.Requests.Activation
		t.Requests.Gradient += e.Requests.Gradient
		add(&t.Bytes, e.Bytes)
		if e.Eval != nil {
			add(&t.Evaluation, e.Eval.Bytes)
		}
		t.Weights = e.Weights
	}
	return t, nil
}

// compare prints how much each strategy sent.
func (s *show) compare(all []Training) {
	s.say("")
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	line := func(what string, of func(Training) string) {
		_, _ = fmt.Fprintf(w, "  %s", what)
		for _, t := range all {
			_, _ = fmt.Fprintf(w, "\t%s", of(t))
		}
		_, _ = fmt.Fprintln(w)
	}
	line("STRATEGY", func(t Training) string { return t.Strategy })
	line("test accuracy", func(t Training) string { return fmt.Sprintf("%.1f %%", 100*t.TestAccuracy) })
	line("an epoch takes", func(t Training) string { return fmt.Sprintf("%.1f ms", 1000*t.EpochSeconds) })
	line("rows from other nodes", func(t Training) string {
		return fmt.Sprintf("%d of %d", t.Rows.Remote, t.Rows.Local+t.Rows.Remote)
	})
	for _, kind := range kinds() {
		if !slices.ContainsFunc(all, func(t Training) bool { return *kind.of(&t.Bytes) > 0 }) {
			continue
		}
		line(kind.name+" sent", func(t Training) string { return size(*kind.of(&t.Bytes)) })
	}
	line("to judge each epoch", func(t Training) string { return size(sum(t.Evaluation)) })
	line("weights", func(t Training) string { return t.Weights[:min(16, len(t.Weights))] })
	_ = w.Flush()
	if len(all) == 2 && all[0].Weights == all[1].Weights {
		s.say("  Both have the same weights, to the last bit: strategies differ in what they send, not in what is learnt. No row is kept here; by default each travels once.")
	}
}

// survive trains once more and kills the leader meanwhile.
func (s *show) survive(ctx context.Context, r *Report, strategy string, epochs int) (*fleet.Node, error) {
	f := s.fleet
	if err := f.Until(ctx, "a node leads", func() bool { r.Leader = f.Leader(); return r.Leader != "" }); err != nil {
		return nil, err
	}
	var witness *fleet.Node
	for _, n := range f.Nodes {
		if n.Name != r.Leader {
			witness = n
		}
	}
	id, err := witness.API().StartJob(ctx, s.request(strategy, epochs))
	if err != nil {
		return nil, fmt.Errorf("start training: %w", err)
	}
	// Watched concurrently: the leader must die in the middle of the training.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type ending struct {
		job api.Job
		err error
	}
	ended, middle := make(chan ending, 1), make(chan struct{})
	var resumed time.Duration
	var killed time.Time
	seen, generation := false, uint64(0)
	go func() {
		job, err := witness.API().WatchJob(ctx, id, func(e api.JobEvent) {
			switch {
			case e.Epoch == nil:
			case !seen && e.Epoch.Epoch >= epochs/8: // early, so that a fast machine is not through before the kill
				seen, generation = true, e.Epoch.Generation
				close(middle)
			case seen && resumed == 0 && e.Epoch.Generation != generation:
				resumed = time.Since(s.killedAt())
			}
		})
		ended <- ending{job, err}
	}()
	select {
	case <-middle:
	case e := <-ended:
		ended <- e
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	survivor, err := s.takeover(ctx, r)
	if err != nil {
		return nil, err
	}
	killed = s.killedAt()
	end := <-ended
	if end.err != nil {
		return nil, fmt.Errorf("watch the training: %w", end.err)
	}
	t, err := summary(end.job)
	if err != nil {
		return nil, err
	}
	r.Survived = Survived{Seconds: resumed.Seconds(), SameWeights: t.Weights == r.Training[0].Weights, Nodes: t.Nodes}
	switch {
	case resumed == 0:
		s.note("the job was over before %s died", r.Leader)
	case r.Survived.SameWeights:
		s.note("the job went on without %s %.1f s after the kill, on %d nodes, and came to the same weights, to the last bit", r.Leader, resumed.Seconds(), len(t.Nodes))
	default:
		return nil, fmt.Errorf("the job that lost %s came to other weights than the one that did not, %.1f s after the kill", r.Leader, time.Since(killed).Seconds())
	}
	return survivor, nil
}
