package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/hopmesh/hopmesh/node/api"
)

// sweep counts the features that a sweep over learning rates has nodes send, beside those
// of a job for each of its models.
func (b *bench) sweep(ctx context.Context, on host, dataset string, l load, rates []string) ([]Figure, error) {
	b.note("  %s: a sweep of %d learning rates", dataset, len(rates))
	whole := l.ask(dataset, "leap", 1)
	whole.Sweep = []api.Sweep{{Key: "lr", Values: rates}}
	swept, err := featureBytes(ctx, on, whole)
	if err != nil {
		return nil, err
	}
	var alone []float64
	for _, rate := range rates {
		one := l.ask(dataset, "leap", 1)
		lr, err := strconv.ParseFloat(rate, 64)
		if err != nil {
			return nil, fmt.Errorf("the learning rate %s: %w", rate, err)
		}
		one.Rate = &lr
		bytes, err := featureBytes(ctx, on, one)
		if err != nil {
			return nil, err
		}
		alone = append(alone, bytes)
	}
	all := 0.0
	for _, bytes := range alone {
		all += bytes
	}
	name := fmt.Sprintf("feature bytes of a sweep of %d learning rates, %s, leap, fan-out %s, batch %d", len(rates), dataset, l.hops(), l.batch)
	return []Figure{
		against(name, "MB", swept, "a job of one model", slices.Min(alone), "at most 1x", func(r float64) bool { return r <= 1 }),
		against(name, "MB", swept, "a job for each", all, fmt.Sprintf("at most %gx", 1/float64(len(rates))), func(r float64) bool { return r*float64(len(rates)) <= 1 }),
	}, nil
}

// featureBytes are the megabytes of features that nodes send each other in the one epoch of
// a job.
func featureBytes(ctx context.Context, on host, r api.TrainRequest) (float64, error) {
	j, err := trained(ctx, on, r, silent)
	if err != nil {
		return 0, err
	}
	return float64(j.History[0].Bytes.Feature) / 1e6, nil
}
