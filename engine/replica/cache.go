package replica

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/unnamed"
)

// A Cache keeps fetched shards from one run of a job to the next, on the same dataset,
// so that recovery does not wait for a topology that is here already. Shards with edges are
// in files without names, which the system drops from memory where that is short: whoever
// has replicas of a cache must not read them after it is closed, or has fetched others.
type Cache struct {
	// Free returns how many bytes there are for files in a folder, and whether these are
	// memory. Tests replace it.
	Free func(dir string) (bytes uint64, memory bool, err error)

	dir    string
	create func(dir, pattern string) (*os.File, error) // tests replace it

	mu      sync.Mutex
	dataset string
	sizes   map[int]graph.SkeletonSize
	of      map[int]*brought
}

// NewCache returns a cache with files in a folder, which must be closed. The zero Cache, and
// one of a folder that can't have files, or that is memory, keeps shards in memory.
func NewCache(dir string) *Cache {
	return &Cache{dir: dir, Free: budget.Disk, create: unnamed.Create}
}

// Close drops the fetched shards, with their files.
func (c *Cache) Close() error {
	if err := c.keep("", nil, nil); err != nil {
		return fmt.Errorf("give up the edges of other nodes' shards: %w", err)
	}
	return nil
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
	file     []byte // the mapping that it lies in; nil: it is in memory
}

// close gives the shard's file up, if it has one.
func (k *brought) close() error {
	if k.file == nil {
		return nil
	}
	file := k.file
	k.file = nil
	return unnamed.Unmap(file)
}

// known returns the cached shards of a dataset.
func (c *Cache) known(dataset string) (map[int]graph.SkeletonSize, map[int]*brought, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.dataset != dataset {
		err = c.replace(dataset, nil, nil)
	}
	sizes, of := map[int]graph.SkeletonSize{}, map[int]*brought{}
	maps.Copy(sizes, c.sizes)
	maps.Copy(of, c.of)
	return sizes, of, err
}

// keep replaces the cached shards. The files of those that are replaced are given up.
func (c *Cache) keep(dataset string, sizes map[int]graph.SkeletonSize, of map[int]*brought) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replace(dataset, sizes, of)
}

// forget drops the fetched shards, and keeps their sizes.
func (c *Cache) forget() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replace(c.dataset, c.sizes, nil)
}

// replace is keep with mu held.
func (c *Cache) replace(dataset string, sizes map[int]graph.SkeletonSize, of map[int]*brought) (err error) {
	for i, k := range c.of {
		if of[i] != k {
			err = errors.Join(err, k.close())
		}
	}
	c.dataset, c.sizes, c.of = dataset, sizes, of
	return err
}
