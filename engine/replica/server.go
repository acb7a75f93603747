package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// The first byte of a question's body says what it asks for; a question for sizes has
// no more. One for a skeleton has four more bytes: whether it is with its edges, whether it
// is with its labels and marks, and otherwise of which split the training vertices are
// listed. Part is the shard.
const (
	askSizes = iota
	askSkeleton
)

// record is how many bytes the size of a shard takes: its number, how many splits it
// has, its vertices, flags, its edges, and what the types of its graph take.
const record = 28

// mostEdges bounds the edges of a shard, so that sums of sizes don't overflow. Where edges have rows
// of features there are fewer: an edge takes at most edgeBytes beside its row.
const (
	mostEdges = 1 << 48
	edgeBytes = 8
)

// The flags of a size.
const (
	hasLabels = 1 << iota
	hasWeights
	edgeRow // times the bytes of an edge's features
)

// A server answers questions about the local shards.
type server struct {
	held []*graph.Shard

	// They are found once, for all who ask.
	mu    sync.Mutex
	stats map[int]func() graph.FeatureStats
}

// Serve registers the service, for the local shards (nil where remote), before
// peers.Open.
func Serve(peers peer.Peers, held []*graph.Shard) {
	s := &server{held: held, stats: map[int]func() graph.FeatureStats{}}
	peers.Answer(peer.Skeletons, s.answer)
}

func (s *server) answer(_ context.Context, _ int, q peer.Query, reply func(parts ...[]byte) error) error {
	if len(q.Body) == 1 && q.Body[0] == askSizes {
		return reply(s.sizes())
	}
	shard, want, err := s.read(q)
	if err != nil {
		return fmt.Errorf("%w: %w", peer.ErrRefused, err)
	}
	k := graph.NewSkeleton(shard, s.statsOf(shard), want.edges)
	if !want.labels {
		k.Bare(graph.SeedsOf(shard, want.split))
	}
	parts, err := k.Parts()
	if err != nil {
		return fmt.Errorf("%w: %w", peer.ErrRefused, err)
	}
	return reply(parts...)
}

var errNoQuestion = errors.New("a question about shards that this version does not know")

// read parses a question for a skeleton.
func (s *server) read(q peer.Query) (shard *graph.Shard, want wanted, err error) {
	b := q.Body
	if len(b) != 5 || b[0] != askSkeleton || b[1] > 1 || b[2] > 1 {
		return nil, want, errNoQuestion
	}
	if uint64(q.Part) >= uint64(len(s.held)) || s.held[q.Part] == nil {
		return nil, want, fmt.Errorf("shard %d is not held here", q.Part)
	}
	return s.held[q.Part], wanted{edges: b[1] == 1, labels: b[2] == 1, split: int(binary.LittleEndian.Uint16(b[3:]))}, nil
}

// question makes the body that read parses.
func question(w wanted) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{askSkeleton, 0, 0}, uint16(w.split))
	for at, is := range map[int]bool{1: w.edges, 2: w.labels} {
		if is {
			b[at] = 1
		}
	}
	return b
}

func (s *server) statsOf(shard *graph.Shard) graph.FeatureStats {
	s.mu.Lock()
	of, ok := s.stats[shard.Number]
	if !ok {
		of = sync.OnceValue(func() graph.FeatureStats { return graph.StatsOf(shard) })
		s.stats[shard.Number] = of
	}
	s.mu.Unlock()
	return of()
}

// sizes returns the sizes of all local shards.
func (s *server) sizes() []byte {
	var b []byte
	for i, shard := range s.held {
		if shard == nil {
			continue
		}
		z := graph.SizeOf(shard)
		flags := uint32(0)
		if z.Labels {
			flags |= hasLabels
		}
		if z.Weighted {
			flags |= hasWeights
		}
		flags |= uint32(z.EdgeRow) * edgeRow
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
		b = binary.LittleEndian.AppendUint32(b, uint32(z.Splits))
		b = binary.LittleEndian.AppendUint32(b, uint32(z.Vertices))
		b = binary.LittleEndian.AppendUint32(b, flags)
		b = binary.LittleEndian.AppendUint64(b, uint64(z.Edges))
		b = binary.LittleEndian.AppendUint32(b, uint32(z.Types))
	}
	return b
}

// readSizes parses the answer of sizes, for a dataset of so many shards.
func readSizes(b []byte, shards int) (map[int]graph.SkeletonSize, error) {
	if len(b)%record != 0 || len(b) > record*shards {
		return nil, fmt.Errorf("%d bytes are not the sizes of shards", len(b))
	}
	to := map[int]graph.SkeletonSize{}
	for ; len(b) > 0; b = b[record:] {
		u := binary.LittleEndian.Uint32
		shard, splits, vertices, flags, edges, types := u(b), u(b[4:]), u(b[8:]), u(b[12:]), binary.LittleEndian.Uint64(b[16:]), u(b[24:])
		if uint64(shard) >= uint64(shards) || splits > graph.MaxSplits || vertices > graph.MaxVertices || flags >= edgeRow*(4*graph.MaxEdgeFeatures+1) || flags/edgeRow%2 != 0 || edges > mostEdges*edgeBytes/(edgeBytes+uint64(flags/edgeRow)) || types > graph.MaxTypesBytes {
			return nil, fmt.Errorf("shard %d can't have %d splits, %d vertices, %d edges and %d bytes of types", shard, splits, vertices, edges, types)
		}
		to[int(shard)] = graph.SkeletonSize{
			Vertices: int64(vertices), Edges: int64(edges), Splits: int(splits),
			Labels: flags&hasLabels != 0, Weighted: flags&hasWeights != 0, EdgeRow: int(flags / edgeRow), Types: int(types),
		}
	}
	return to, nil
}
