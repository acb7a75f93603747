package build

import (
	"encoding/binary"
	"encoding/json"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/wire"
)

// MaxMessage and MaxReply bound what travels at once, in bytes.
const (
	MaxMessage = wire.MaxMessage
	MaxReply   = wire.MaxReply
)

const (
	pieceBytes = 1 << 20 // of data in a message or reply, about
	maxNodes   = 1 << 12 // that make a dataset
	maxRanges  = 1 << 14 // of vertices
	maxSpec    = 256 << 10
)

// What a message is.
const (
	sayOpen   = iota // a job, in JSON
	sayPing          // whoever conducts is there
	sayDo            // begin a task
	sayPoll          // wait a while for the task's result
	sayHalves        // edges for the cut
	sayRead          // a piece of a run
	sayParts         // the shards of consecutive vertices
	sayNumber        // all parts have been sent
	sayEdges         // edges for shards
	sayColumn        // a piece of a shard's column
	sayRows          // features
	sayPublish
	sayClose
)

// The tasks of a maker.
const (
	doDrawHalves = iota // send one's share of the source's edges for the cut
	doSort
	doDrawEdges // send one's share of the source's edges to the shards
	doPlace     // send the edges that were cut to the shards
	doMake      // write shards up to their features
	doDrawRows  // send one's share of the source's features
	doFinish
)

// A job is what all nodes that make a dataset together must agree on.
type job struct {
	Meta       graph.Meta
	Shards     int
	DType      graph.DType
	Random     bool // there is no cut
	Undirected bool
	Labels     bool
	Names      bool
	Splits     int
	Shift      uint // of buckets of vertices
	Nodes      []string
	Self       int
	Owners     []int           // the node that makes each shard, as an index
	Spec       json.RawMessage // how each node opens its share of the source; null: who conducts reads it
	Output     uint64          // bytes of all shards, about
}

// check returns an error unless a job from another node can be done.
func (j *job) check() error {
	m := j.Meta
	ok := m.Vertices > 0 && m.Vertices <= graph.MaxVertices && m.Edges <= 1<<48 && m.Features >= 0 && m.Features <= graph.MaxVertices &&
		graph.CheckTargets(m.Targets, m.Classes) == nil && !m.Sparse && m.Types == nil && graph.CheckClassNames(m.ClassNames, m.Classes) == nil &&
		j.Shards > 0 && j.Shards <= graph.MaxShards && uint32(j.Shards) <= m.Vertices && len(j.Owners) == j.Shards &&
		(j.DType == graph.F32 || j.DType == graph.BF16) && j.Splits >= 0 && j.Splits <= graph.MaxSplits &&
		len(j.Nodes) > 0 && len(j.Nodes) <= maxNodes && j.Self >= 0 && j.Self < len(j.Nodes) &&
		j.Shift < 32 && j.buckets() <= maxRanges && j.rowBytes() <= pieceBytes && len(j.Spec) <= maxSpec
	for _, o := range j.Owners {
		ok = ok && o >= 0 && o < len(j.Nodes)
	}
	if !ok {
		return errMessage
	}
	return nil
}

func (j *job) buckets() int { return int((j.Meta.Vertices-1)>>j.Shift) + 1 }

// cutter returns the node that holds a vertex's edges for the cut.
func (j *job) cutter(v uint32) int { return int(v>>j.Shift) * len(j.Nodes) / j.buckets() }

// cutEnd returns the first vertex after those whose edges a node holds for the cut.
func (j *job) cutEnd(node int) uint32 {
	first := uint64((node+1)*j.buckets()+len(j.Nodes)-1) / uint64(len(j.Nodes)) // the next node's bucket
	return uint32(min(first<<j.Shift, uint64(j.Meta.Vertices)))
}

// rowBytes returns the size of a vertex's features.
func (j *job) rowBytes() int {
	if j.DType == graph.BF16 {
		return 2 * j.Meta.Features
	}
	return 4 * j.Meta.Features
}

func (j *job) reads() bool { return len(j.Spec) > 0 && string(j.Spec) != "null" }

var errMessage = wire.ErrMessage

// The size of a run in a reply.
const runBytes = 24

func appendRuns(out []byte, runs []run) []byte {
	little := binary.LittleEndian
	for _, r := range runs {
		out = little.AppendUint32(out, r.first)
		out = little.AppendUint32(out, r.vertices)
		out = little.AppendUint64(out, uint64(r.edges))
		out = little.AppendUint64(out, uint64(r.at))
	}
	return out
}

// takeRuns adds the runs in a reply to g, which they must continue. Their vertices end
// before end, a run has at most as many as a bucket, and all have at most so many edges.
func (b *blocks) takeRuns(in []byte, from bytesAt, end, bucket uint32, edges uint64) error {
	little := binary.LittleEndian
	next := uint32(0)
	if n := len(b.runs); n > 0 {
		next = b.runs[n-1].first + b.runs[n-1].vertices
	}
	if len(in)%runBytes != 0 {
		return errMessage
	}
	for ; len(in) > 0; in = in[runBytes:] {
		r := run{from: from, first: little.Uint32(in), vertices: little.Uint32(in[4:]), edges: int(little.Uint64(in[8:])), at: int64(little.Uint64(in[16:]))}
		if r.first != next || r.vertices == 0 || r.vertices > min(bucket, end-next) || r.edges < 0 || uint64(r.edges) > edges-b.halfEdges || r.at < 0 {
			return errMessage
		}
		next += r.vertices
		b.runs = append(b.runs, r)
		b.halfEdges += uint64(r.edges)
	}
	if next != end {
		return errMessage
	}
	return nil
}
