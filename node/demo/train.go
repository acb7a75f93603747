package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// Training is how the demo's model was trained.
type Training struct {
	Node         string  `json:"node"`
	Epochs       int     `json:"epochs"`
	Seconds      float64 `json:"seconds"`       // from the order to the last epoch committed
	EpochSeconds float64 `json:"epoch_seconds"` // of training alone, the last one
	Best         int     `json:"best"`          // the epoch with the best validation
	ValAccuracy  float64 `json:"val_acc"`
	TestAccuracy float64 `json:"test_acc"`
}

// published is the test accuracy of Kipf's and Welling's paper, from which the recipe
// is.
const published = 81.5

// train trains the model that everybody trains first, and tells how it goes.
func (s *show) train(ctx context.Context, r *Report, epochs int) error {
	node := s.fleet.Nodes[0].API()
	hidden := 16
	begin := time.Now()
	id, err := node.StartJob(ctx, api.TrainRequest{Dataset: "cora", Model: "gcn", Hidden: &hidden, Epochs: &epochs})
	if err != nil {
		return fmt.Errorf("start training: %w", err)
	}
	s.say("")
	every := max(epochs/4, 1)
	job, err := node.WatchJob(ctx, id, func(e api.JobEvent) {
		if e.Epoch != nil && e.Epoch.ValAccuracy != nil && e.Epoch.Epoch%every == 0 {
			s.note("epoch %3d: loss %.3f, %.1f %% of the validation papers told right", e.Epoch.Epoch, e.Epoch.Loss, 100**e.Epoch.ValAccuracy)
		}
	})
	if err != nil {
		return fmt.Errorf("watch the training: %w", err)
	}
	if job.State != "done" || job.Best == nil || len(job.History) == 0 || len(job.Nodes) == 0 {
		return fmt.Errorf("the training is %s: %s", job.State, job.Error)
	}
	val, test := job.Best.ValAccuracy, job.Best.TestAccuracy
	if val == nil || test == nil {
		return errors.New("the dataset of the demo has no validation or test papers")
	}
	r.Training = Training{
		Node: job.Nodes[0], Epochs: len(job.History), Seconds: time.Since(begin).Seconds(), EpochSeconds: job.History[len(job.History)-1].Seconds,
		Best: job.Best.Epoch, ValAccuracy: *val, TestAccuracy: *test,
	}
	t := r.Training
	s.note("%s trained a GCN for %d epochs in %.1f s: %.1f %% of the test papers right with this seed (the paper has %.1f %% on average)",
		t.Node, t.Epochs, t.Seconds, 100*t.TestAccuracy, published)
	return nil
}
