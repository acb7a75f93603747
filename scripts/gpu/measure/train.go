//go:build cuda

package main

import (
	"context"

	"github.com/hopmesh/hopmesh/cuda"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// timeTraining trains as a node does. The first epoch is a warm-up.
func timeTraining(ctx context.Context, m measure, folder string) error {
	shards, err := openGraph(folder)
	if err != nil {
		return err
	}
	r := recipe.DefaultRecipe("sage")
	r.Model = m.spec()
	r.Optimizer.WeightDecay, r.Rate, r.Features = 0, 0.003, "none"
	r.Batch, r.Fanouts, r.Epochs, r.EvalEvery, r.Seed = m.batch, m.fanouts, m.epochs, m.epochs, 1
	var seconds []float64
	report := func(e trained.Epoch) {
		if e.Epoch == 1 {
			return
		}
		milli := 1e3 / float64(e.Steps)
		seconds = append(seconds, e.Seconds*milli)
		figure("training step, ours", stats.Median(seconds), "ms")
		for name, s := range map[string]float64{"sampling": e.Phases.Sample, "gathering": e.Phases.Gather, "computing": e.Phases.Compute, "waiting": e.Phases.Wait} {
			figure("training step, ours, "+name, s*milli, "ms")
		}
		figure("training step, ours, loss", e.Loss, "")
	}
	_, err = train.Run(ctx, r, shards, train.Options{Strategies: strategies.All, Report: report, Device: func(int) (tensor.Device, error) { return cuda.Open("cuda:0") }})
	return err
}

// spec returns the model that the bars are for.
func (m measure) spec() nn.Spec {
	s := nn.Defaults("sage")
	s.Layers, s.Hidden, s.Dropout, s.InputDropout = len(m.fanouts), m.hidden, 0, 0
	return s
}
