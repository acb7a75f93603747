//go:build long

package train_test

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// A thousand layers over a graph of six million edges are counted in a pass over them.
func TestARefusalOfAThousandLayers(t *testing.T) {
	shards := dense(t, 300_000)
	for _, model := range []string{"gcn", "sage"} {
		r := traintest.Small(model)
		r.Model.Layers, r.Model.Hidden, r.Batch, r.Fanouts = 1000, 16, 0, nil
		refused(t, r, shards, 300<<20)
	}
}
