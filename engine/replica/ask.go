package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/unnamed"
)

// atATime is how many shards one owner is asked for at once.
const atATime = 4

// askSizes asks the owners of shards whose sizes are not known, all at once.
func (b *bringing) askSizes(ctx context.Context) error {
	unknown := map[int][]int{}
	for n, shards := range b.far {
		if !b.haveSizes(shards) {
			unknown[n] = shards
		}
	}
	all := newAsking(ctx)
	for n, shards := range unknown {
		all.Go(func(ctx context.Context) error {
			q := peer.Query{
				Service: peer.Skeletons, Kind: peer.Shard,
				Body: []byte{askSizes}, Limit: record * len(b.held), Tally: b.o.Tally,
			}
			answer, err := b.peers.Ask(ctx, n, q, nil)
			if err != nil {
				return fmt.Errorf("the sizes of the shards of node %s: %w", b.work.Nodes[n], err)
			}
			sizes, err := readSizes(answer, len(b.held))
			if err != nil {
				return fmt.Errorf("the answer of node %s is not usable: %w", b.work.Nodes[n], err)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, i := range shards {
				size, ok := sizes[i]
				if !ok {
					return fmt.Errorf("node %s owns shard %d and does not have it", b.work.Nodes[n], i)
				}
				b.sizes[i] = size
			}
			return nil
		})
	}
	return all.Wait()
}

func (b *bringing) haveSizes(shards []int) bool {
	for _, i := range shards {
		if _, ok := b.sizes[i]; !ok {
			return false
		}
	}
	return true
}

// askSkeletons fetches the shards that are not cached in the wanted form, a few at a
// time from each owner. It drops cached copies of other shards and forms.
func (b *bringing) askSkeletons(ctx context.Context) (err error) {
	have := b.of
	b.of = map[int]*brought{}
	missing := map[int]chan int{}
	var bytes, largest uint64
	for n, shards := range b.far {
		missing[n] = make(chan int, len(shards))
		for _, i := range shards {
			if k := have[i]; k != nil && k.how == b.want {
				b.of[i] = k
				continue
			}
			missing[n] <- i
			size := uint64(b.sizes[i].Size(b.edges, b.want.labels))
			bytes, largest = bytes+size, max(largest, size)
		}
		close(missing[n])
	}
	if b.edges {
		if b.files, err = b.cache.file(bytes, largest, atATime*len(b.far)); err != nil {
			if full, is := errors.AsType[*Full](err); is {
				full.Needed = b.o.Needed
			}
			return err
		}
		defer func() { err, b.files = errors.Join(err, b.files.close()), nil }()
	}
	all := newAsking(ctx)
	for n, shards := range missing {
		for range min(atATime, len(shards)) {
			all.Go(func(ctx context.Context) error {
				for i := range shards {
					if err := b.askSkeleton(ctx, n, i); err != nil {
						return fmt.Errorf("shard %d of node %s: %w", i, b.work.Nodes[n], err)
					}
				}
				return nil
			})
		}
	}
	err = all.Wait()
	if unnamed.Full(err) {
		return &Full{Bytes: bytes, Dir: b.cache.dir, Err: err, Needed: b.o.Needed}
	}
	return err
}

func (b *bringing) askSkeleton(ctx context.Context, n, shard int) error {
	q := peer.Query{
		Service: peer.Skeletons, Kind: peer.Shard, Part: uint32(shard),
		Body: question(b.want), Limit: int(b.sizes[shard].Size(b.edges, b.want.labels)), Tally: b.o.Tally,
	}
	answer, inFile, err := b.files.receive(ctx, func(to []byte) ([]byte, error) { return b.peers.Ask(ctx, n, q, to) })
	if err != nil {
		return err
	}
	k := &brought{how: b.want, bytes: uint64(len(answer))}
	if inFile {
		k.file = answer
	}
	// It is read where it lies, so that what is checked is what is used.
	if k.skeleton, err = graph.ReadSkeleton(answer); err == nil {
		err = b.fits(k.skeleton, shard)
	}
	if err != nil {
		return errors.Join(err, k.close())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of[shard] = k
	return nil
}

var (
	errWithEdges  = errors.New("what came has edges and was asked for without, or the other way round")
	errWithLabels = errors.New("what came has labels and was asked for without, or the other way round, or has other training vertices than it counts")
)

// fits returns an error unless a skeleton is the requested one.
func (b *bringing) fits(k *graph.Skeleton, shard int) error {
	switch s := k.Shard; {
	case s.Number != shard || s.Shards != len(b.held):
		return fmt.Errorf("what came is shard %d of %d", s.Number, s.Shards)
	case (s.Indptr != nil) != b.edges:
		return errWithEdges
	case (k.Seeds == nil) != b.want.labels || k.Seeds != nil && !b.seeded(k.Seeds):
		return errWithLabels
	}
	return nil
}

// seeded reports whether seeds list as many training vertices as they count.
func (b *bringing) seeded(s *graph.Seeds) bool {
	counted := uint64(0)
	if b.want.split < len(s.Splits) {
		counted = s.Splits[b.want.split].Train
	}
	return s.Training.Count() == counted
}

// asking is a set of questions under way, of which the first failure cancels the
// others.
type asking struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	all    sync.WaitGroup
}

func newAsking(ctx context.Context) *asking {
	a := &asking{}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	return a
}

// Go asks in a goroutine. What comes may lie in mapped files.
func (a *asking) Go(do func(ctx context.Context) error) {
	a.all.Go(func() {
		defer mapped.End(mapped.Guard())
		if err := guarded(a.ctx, do); err != nil {
			a.cancel(err)
		}
	})
}

// guarded makes an error of a file that can't be read.
func guarded(ctx context.Context, do func(ctx context.Context) error) (err error) {
	defer mapped.Caught(&err)
	return do(ctx)
}

func (a *asking) Wait() error {
	a.all.Wait()
	err := context.Cause(a.ctx)
	a.cancel(nil)
	return err
}
