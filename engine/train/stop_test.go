package train_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// A counted device tells of each of its products.
type counted struct {
	tensor.Device
	count func()
}

func (d *counted) MatMul(c, a, b tensor.Matrix, shape tensor.Shape, add bool, e *tensor.Epilogue) {
	d.count()
	d.Device.MatMul(c, a, b, shape, add, e)
}

// A run ends in the middle of a step, within a layer of where its context does, and goes
// on from the step before as if nothing had happened.
func TestAStepEndsWithItsContext(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	deep := traintest.Small("gcn")
	deep.Model.Layers, deep.Fanouts, deep.Epochs, deep.EvalEvery = 6, []int{2, 2, 2, 2, 2, 2}, 2, 2
	for name, sharing := range map[string]strategy.Settings{
		"single": {}, "leap": traintest.Ways()["leap"], "migrate": traintest.Ways()["migrate"],
		"sync_every": strategy.Given("leap", "leap.mode=migrate", "leap.sync_every=2"),
	} {
		t.Run(name, func(t *testing.T) {
			r := deep
			r.Sharing = sharing
			nodes := 3
			if sharing.Strategy == "" {
				nodes = 1
			}
			folders := make([]string, nodes)
			for i := range folders {
				folders[i] = t.TempDir()
			}
			// run ends at a product of the first node, and returns how many it made, all in all
			// and after that one.
			run := func(at int64, dirs bool) (last string, all, late int64, err error) {
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				var calls atomic.Int64
				m, results := traintest.NewMesh(nodes, traintest.Uneven(len(shards), nodes)), make([]train.Result, nodes)
				err = m.Each(func(node int) (err error) {
					held, o := shards, train.Options{Strategies: strategies.All}
					if nodes > 1 {
						held, o = m.Of(node, shards, o)
					}
					o.Threads, o.Dataset, o.Resume = 1, "d", true
					if dirs {
						o.Dir = folders[node]
					}
					o.Device = func(threads int) (tensor.Device, error) {
						return &counted{cpu.New(threads), func() {
							if node == 0 && calls.Add(1) == at {
								end(traintest.ErrEnough)
							}
						}}, nil
					}
					results[node], err = train.Run(ctx, r, held, o)
					return err
				})
				return results[0].Last.Hash, calls.Load(), calls.Load() - at, err
			}
			want, all, _, err := run(-1, false)
			if err != nil {
				t.Fatal(err)
			}
			stops := 0
			for at := int64(1); at < all; at += all/7 + 1 {
				_, _, late, err := run(at, true)
				if err == nil {
					break // there was less to do than at the first time
				}
				if !errors.Is(err, traintest.ErrEnough) {
					t.Fatal(err)
				}
				if stops++; late > 2 { // a layer has two on its way back
					t.Errorf("ended at product %d of %d, it made %d more", at, all, late)
				}
			}
			got, _, _, err := run(-1, true)
			if err != nil || stops < 2 {
				t.Fatalf("after %d stops: %v", stops, err)
			}
			if got != want {
				t.Errorf("after %d stops it has the weights %s, and undisturbed %s", stops, got, want)
			}
		})
	}
}
