package replica

import (
	"maps"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Cache keeps what was brought from one run of a job to the next, on the same
// dataset: recovery must not wait for a topology that is here already.
type Cache struct {
	mu      sync.Mutex
	dataset string
	sizes   map[int]graph.SkeletonSize
	of      map[int]*brought
}

// wanted is how a shard is brought: with its edges or, for a form, without.
type wanted struct {
	edges bool
	form  sample.Form
}

// A brought shard.
type brought struct {
	how      wanted
	skeleton *graph.Skeleton
	bytes    uint64
}

// known is what there is of a dataset's shards.
func (c *Cache) known(dataset string) (map[int]graph.SkeletonSize, map[int]*brought) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dataset != dataset {
		c.dataset, c.sizes, c.of = dataset, nil, nil
	}
	sizes, of := map[int]graph.SkeletonSize{}, map[int]*brought{}
	maps.Copy(sizes, c.sizes)
	maps.Copy(of, c.of)
	return sizes, of
}

// keep replaces what there is.
func (c *Cache) keep(dataset string, sizes map[int]graph.SkeletonSize, of map[int]*brought) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dataset, c.sizes, c.of = dataset, sizes, of
}
