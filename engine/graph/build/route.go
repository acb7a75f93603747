package build

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/shardtable"
	"github.com/hopmesh/hopmesh/engine/graph/build/wire"
)

// A deliver sends a message to a node, by its index.
type deliver func(ctx context.Context, node int, message []byte) error

// A router collects records by the node that they are for, and sends them in pieces. Each
// taker fills pieces of its own. Pieces from one taker to one node arrive in order.
type router struct {
	ctx     context.Context
	stop    context.CancelCauseFunc
	head    []byte
	deliver deliver
	self    int // whose records are taken directly; -1: nobody's
	take    func(keys []uint64, weights []float32) error
	room    int // records of a piece
	pieces  [][]piece
	packers []wire.Packer // by taker; nil: weights ask for the order of the source
	queues  []chan []byte
	spare   sync.Pool
	senders sync.WaitGroup
}

type piece struct {
	keys    []uint64
	weights []float32
}

// routerBytes is about what a router's pieces and messages take together.
const routerBytes = 16 << 20

func newRouter(ctx context.Context, head []byte, nodes, takers, self int, weighted bool, d deliver, take func([]uint64, []float32) error) *router {
	r := &router{head: head, deliver: d, self: self, take: take}
	if !weighted {
		r.packers = make([]wire.Packer, takers)
	}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	r.room = min(max(routerBytes/(12*nodes*(takers+3)), 1<<9), wire.MaxRecords)
	for range takers {
		r.pieces = append(r.pieces, make([]piece, nodes))
	}
	for node := range nodes {
		queue := make(chan []byte, 1)
		r.queues = append(r.queues, queue)
		r.senders.Go(func() { r.send(node, queue) })
	}
	return r
}

// send empties a queue, also after a failure.
func (r *router) send(node int, queue chan []byte) {
	for m := range queue {
		if r.ctx.Err() == nil {
			if err := r.deliver(r.ctx, node, m); err != nil {
				r.stop(err)
			}
		}
		r.spare.Put(&m)
	}
}

// put adds a record.
func (r *router) put(taker, node int, key uint64) error {
	p := &r.pieces[taker][node]
	p.keys = append(p.keys, key)
	if len(p.keys) >= r.room {
		return r.flush(taker, node)
	}
	return nil
}

// weigh adds the weight of a record that is about to be put.
func (r *router) weigh(taker, node int, weight float32) {
	p := &r.pieces[taker][node]
	p.weights = append(p.weights, weight)
}

func (r *router) flush(taker, node int) error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	p := &r.pieces[taker][node]
	if len(p.keys) == 0 {
		return nil
	}
	if node == r.self {
		err := r.take(p.keys, p.weights)
		p.keys, p.weights = p.keys[:0], p.weights[:0]
		return err
	}
	m := append(r.buffer(), r.head...)
	if r.packers != nil {
		m = r.packers[taker].Append(m, p.keys)
	} else {
		m = wire.AppendRecords(m, p.keys, p.weights)
	}
	p.keys, p.weights = p.keys[:0], p.weights[:0]
	return r.enqueue(node, m)
}

func (r *router) buffer() []byte {
	if b, ok := r.spare.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

func (r *router) enqueue(node int, m []byte) error {
	select {
	case r.queues[node] <- m:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// close sends the rest, waits, and returns the first error.
func (r *router) close(err error) error {
	for taker := range r.pieces {
		for node := range r.pieces[taker] {
			if err == nil {
				err = r.flush(taker, node)
			}
		}
	}
	for _, queue := range r.queues {
		close(queue)
	}
	r.senders.Wait()
	failed := context.Cause(r.ctx)
	r.stop(nil)
	if failed != nil {
		return failed
	}
	return err
}

// routeHalves sends edges, as seen from both ends, to those who sort them for the cut.
func (r *router) routeHalves(j *job, taker int, e graph.EdgeBatch) error {
	for i := 0; i < len(e.Src); i++ {
		s, d, stored := e.Src[i], e.Dst[i], uint64(1)
		back, pair := sides(e, i, j.Undirected)
		i += pair
		for side := range 2 {
			to := j.cutter(d)
			if e.Weights != nil && stored == 1 {
				r.weigh(taker, to, e.Weights[i])
			}
			if err := r.put(taker, to, uint64(d)<<32|uint64(s)<<1|stored); err != nil {
				return err
			}
			if side == 0 && s == d {
				break
			}
			s, d = d, s
			stored = back
		}
	}
	return nil
}

// routeEdges renumbers a batch in place, and sends its edges to those who make their
// shards.
func (r *router) routeEdges(j *job, taker int, e graph.EdgeBatch, ids []uint32, where *shardtable.Table, mirror bool) error {
	for i, v := range e.Src {
		e.Src[i] = ids[v]
	}
	for i, v := range e.Dst {
		e.Dst[i] = ids[v]
	}
	for i, s := range e.Src {
		d := e.Dst[i]
		sides := 1
		if mirror && s != d {
			sides = 2
		}
		for ; sides > 0; sides-- {
			to := j.Owners[where.Shard(d)]
			if e.Weights != nil {
				r.weigh(taker, to, e.Weights[i])
			}
			if err := r.put(taker, to, uint64(d)<<32|uint64(s)); err != nil {
				return err
			}
			s, d = d, s
		}
	}
	return nil
}

// A rowRouter sends rows of features to those who make their shards.
type rowRouter struct {
	*router
	j       *job
	part    []uint16
	rows    [][]uint32 // by node
	values  [][]byte
	rounded []uint16
	most    int // rows of a piece
}

func newRowRouter(ctx context.Context, head []byte, j *job, part []uint16, d deliver) *rowRouter {
	n := len(j.Nodes)
	r := &rowRouter{router: newRouter(ctx, head, n, 1, -1, false, d, nil), j: j, part: part, rows: make([][]uint32, n), values: make([][]byte, n)}
	r.most = max(1, min(pieceBytes, routerBytes/(4*n))/(j.rowBytes()+4))
	return r
}

func (r *rowRouter) batch(f graph.FeatureBatch) (int, error) {
	rows, err := checkBatch(f, r.j.Meta)
	if err != nil {
		return 0, err
	}
	columns := r.j.Meta.Features
	for i := range rows {
		v := f.Vertex(i)
		to := r.j.Owners[r.part[v]]
		values := f.Dense[i*columns : (i+1)*columns]
		if r.j.DType == graph.BF16 {
			if r.rounded, err = rounded(r.rounded, v, values); err != nil {
				return 0, err
			}
			r.values[to] = append(r.values[to], raw(r.rounded)...)
		} else {
			r.values[to] = append(r.values[to], raw(values)...)
		}
		if r.rows[to] = append(r.rows[to], v); len(r.rows[to]) >= r.most {
			if err := r.flushRows(to); err != nil {
				return 0, err
			}
		}
	}
	return rows, nil
}

func (r *rowRouter) flushRows(node int) error {
	if len(r.rows[node]) == 0 {
		return nil
	}
	m := append(r.buffer(), r.head...)
	m = binary.LittleEndian.AppendUint64(m, uint64(len(r.rows[node])))
	m = append(append(m, raw(r.rows[node])...), r.values[node]...)
	r.rows[node], r.values[node] = r.rows[node][:0], r.values[node][:0]
	return r.enqueue(node, m)
}

func (r *rowRouter) close(err error) error {
	for node := range r.rows {
		if err == nil {
			err = r.flushRows(node)
		}
	}
	return r.router.close(err)
}
