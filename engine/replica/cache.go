package replica

import (
	"maps"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A Cache keeps fetched shards from one run of a job to the next, on the same dataset,
// so that recovery does not wait for a topology that is here already.
type Cache struct {
	mu      sync.Mutex
	dataset string
	sizes   map[int]graph.SkeletonSize
	of      map[int]*brought
}

// wanted is how a shard is fetched: with its edges or without; with its labels or, for a
// split, without.
type wanted struct {
	edges  bool
	labels bool
	split  int
}

// A brought is a fetched shard.
type brought struct {
	how      wanted
	skeleton *graph.Skeleton
	bytes    uint64
}

// known returns the cached shards of a dataset.
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

// keep replaces the cached shards.
func (c *Cache) keep(dataset string, sizes map[int]graph.SkeletonSize, of map[int]*brought) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dataset, c.sizes, c.of = dataset, sizes, of
}

// Forget drops all cached shards. It does nothing on a nil cache.
func (c *Cache) Forget() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sizes, c.of = nil, nil
}
