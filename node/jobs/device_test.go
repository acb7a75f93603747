package jobs

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
	"github.com/hopmesh/hopmesh/engine/train"
)

var errBus = errors.New("it fell off the bus")

// failing is a Device that fails at an operation each time that it is opened, and counts
// how often that is.
func failing(at int, opened *int) Device {
	return func(threads int) (tensor.Device, error) {
		*opened++
		if at == 0 {
			return nil, errBus
		}
		d := foreign.New(threads)
		d.FailAt(at, errBus)
		return d, nil
	}
}

// A job whose device fails goes on with the processor, and says so; the next one has the
// device again.
func TestAJobOutlivesItsDevice(t *testing.T) {
	for what, at := range map[string]int{"it can't be opened": 0, "its first operation": 1, "one while it trains": 400} {
		t.Run(what, func(t *testing.T) {
			opened := 0
			inTime(t, func(t *testing.T, w *world) {
				w.stop()
				w.device = failing(at, &opened)
				w.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
					o.Strategies = strategies.All
					return train.Run(ctx, r, s, o)
				})
				w.run()
				for n := 1; n <= 2; n++ {
					j := w.ended(w.create(200)) // as many as the recipe has
					if j.State != plan.Done || j.Last() != 200 {
						t.Fatalf("%s with %d epochs: %s", j.State, j.Last(), j.Error)
					}
					if len(j.Notes) == 0 || !strings.Contains(j.Notes[0], "it fell off the bus: this node goes on with its processor") || opened != n {
						t.Errorf("after %d jobs the device was opened %d times; the notes are %q", n, opened, j.Notes)
					}
				}
			})
		})
	}
}

// Of a job that nodes share, all begin anew when the device of one fails, which computes
// on its processor from then on.
func TestASharedJobOutlivesADevice(t *testing.T) {
	inCrowd(t, func(t *testing.T, c *crowd) {
		all, err := OpenShards(c.now().Datasets[datasetID], func(dataset string, shard int) string { return filepath.Join(c.dir, dataset, graph.ShardFile(shard)) })
		if err != nil {
			t.Fatal(err)
		}
		defer CloseShards(all)
		opened := 0
		c.stops["b"]()
		c.device = failing(1, &opened)
		c.start("b")
		var with, without atomic.Int32
		c.teach(func(ctx context.Context, r recipe.Recipe, s []*graph.Shard, o train.Options) (train.Result, error) {
			switch {
			case o.Device != nil:
				with.Add(1)
				return train.Run(ctx, r, all, train.Options{Strategies: strategies.All, Device: o.Device})
			case o.Work.Self == 1:
				without.Add(1)
			}
			return c.School.Train(ctx, r, s, o)
		})
		if j := c.ended(c.share(4)); j.State != plan.Done {
			t.Errorf("%+v", j)
		}
		if with.Load() != 1 || without.Load() != 1 || !strings.Contains(c.renewals[len(c.renewals)-1].Why, "it fell off the bus") {
			t.Errorf("%d times on the device and %d on the processor, with %+v", with.Load(), without.Load(), c.renewals)
		}
	})
}

func TestPredictionsOutliveADevice(t *testing.T) {
	w := newWorld(t)
	p := model(t, w)
	var want, got bytes.Buffer
	if err := Predict(t.Context(), p, &want); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 1, 3, 1 << 30} {
		opened := 0
		p.Device = failing(at, &opened)
		got.Reset()
		if err := Predict(t.Context(), p, &got); err != nil || opened != 1 || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("operation %d fails: %v, and it was opened %d times", at, err, opened)
		}
	}
}
