package embedding

import (
	"strconv"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/nn"
)

// BestOf returns the rows of the best epoch that a file has of a shard by itself; nil: it has none.
func BestOf(f *checkpoint.File, shard, columns int) ([]float32, error) {
	p := nn.Param{Name: Name + "." + strconv.Itoa(shard), Cols: columns}
	if p.Rows = f.Height(bestPrefix + p.Name); p.Rows == 0 {
		return nil, nil
	}
	return f.View(bestPrefix, &p)
}

// Joined is the section of a file that has the rows of the best epoch of all vertices, which lie shard by shard.
func Joined(vertices, columns int, shards [][]float32) checkpoint.Section {
	of := section(bestPrefix, Param(vertices, columns), nil)
	of.Parts = func(write func([]float32) error) error {
		for _, rows := range shards {
			if err := write(rows); err != nil {
				return err
			}
		}
		return nil
	}
	return of
}
