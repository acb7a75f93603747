package build

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/wire"
)

// begin starts a task.
func (m *maker) begin(what byte) error {
	m.phase.Lock()
	defer m.phase.Unlock()
	if m.ended {
		return errGivenUp
	}
	if m.task != nil {
		select {
		case <-m.task.done:
		default:
			return errMessage
		}
	}
	var do func() ([]byte, error)
	switch {
	case what == doDrawHalves && m.share != nil && m.halves != nil && m.sorted == nil:
		do = m.drawHalves
	case what == doSort && m.halves != nil && m.sorted == nil:
		do = m.sort
		var err error
		if m.sorted, err = m.b.scratch(); err != nil { // from now on no halves are taken
			return err
		}
	case what == doDrawEdges && m.share != nil && m.placed != nil && m.b.order == nil:
		do = m.drawEdges
	case what == doPlace && m.sealed && m.placed != nil && m.b.order == nil:
		do = m.place
	case what == doMake && m.placed != nil && m.b.order == nil:
		do = m.make
		m.b.order = m.b.numbers.order()
	case what == doDrawRows && m.share != nil && m.job.Meta.Features > 0 && m.writer != nil:
		do = m.drawRows
	case what == doFinish && m.writer != nil:
		do = m.finish
	default:
		return errMessage
	}
	t := &task{done: make(chan struct{})}
	m.task = t
	go func() {
		defer close(t.done)
		defer release()
		t.result, t.err = do()
	}()
	return nil
}

// poll waits a while for the task.
func (m *maker) poll(ctx context.Context) (result []byte, done bool, err error) {
	m.phase.RLock()
	t := m.task
	m.phase.RUnlock()
	if t == nil {
		return nil, false, errMessage
	}
	select {
	case <-t.done:
		return t.result, true, t.err
	case <-time.After(pollTime):
		return nil, false, nil
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}

// pollTime is how long a reply waits for a task.
const pollTime = 2 * time.Second

func (m *maker) deliver(ctx context.Context, node int, message []byte) error {
	b, err := m.host.Ask(ctx, m.job.Nodes[node], message, nil)
	if err == nil {
		_, _, err = wire.Result(b)
	}
	return err
}

// router sends records of a kind to all nodes.
func (m *maker) router(say byte, takers int, take func([]uint64, []float32) error) (*router, error) {
	head, err := wire.Head(say, m.id)
	if err != nil {
		return nil, err
	}
	return newRouter(m.ctx, head, len(m.job.Nodes), takers, m.job.Self, m.job.Meta.Weighted, m.deliver, take), nil
}

func (m *maker) drawHalves() ([]byte, error) {
	takers := m.b.plan.writers()
	r, err := m.router(sayHalves, takers, m.takeHalves)
	if err != nil {
		return nil, err
	}
	drawn := uint64(0)
	err = r.close(pipe(r.ctx, counting(m.share.Edges, &drawn), m.job.Meta, takers, func(taker int, e graph.EdgeBatch) error {
		return r.routeHalves(&m.job, taker, e)
	}))
	return binary.LittleEndian.AppendUint64(nil, drawn), err
}

// counting counts the edges of a stream.
func counting(from edgeStream, n *uint64) edgeStream {
	return func(ctx context.Context, yield func(graph.EdgeBatch) error) error {
		return from(ctx, func(b graph.EdgeBatch) error {
			*n += uint64(len(b.Src))
			return yield(b)
		})
	}
}

func (m *maker) sort() ([]byte, error) {
	if err := m.halves.seal(); err != nil {
		return nil, err
	}
	m.phase.Lock()
	m.sealed = true
	m.phase.Unlock()
	g, err := m.b.sortHalves(m.ctx, m.halves, m.sorted)
	if err != nil {
		return nil, err
	}
	if len(g.runs)*runBytes >= MaxReply {
		return nil, fmt.Errorf("the edges were sorted in %d runs, more than a message holds: raise {dataset.memory}", len(g.runs))
	}
	return appendRuns(nil, g.runs), nil
}

func (m *maker) drawEdges() ([]byte, error) { return m.sendEdges(m.share.Edges, m.job.Undirected) }
func (m *maker) place() ([]byte, error) {
	return m.sendEdges(m.halves.stored, false)
}

func (m *maker) sendEdges(from edgeStream, mirror bool) ([]byte, error) {
	takers := m.b.plan.writers()
	r, err := m.router(sayEdges, takers, m.takeEdges)
	if err != nil {
		return nil, err
	}
	drawn := uint64(0)
	err = r.close(pipe(r.ctx, counting(from, &drawn), m.job.Meta, takers, func(taker int, e graph.EdgeBatch) error {
		return r.routeEdges(&m.job, taker, e, m.ids, m.where, mirror)
	}))
	return binary.LittleEndian.AppendUint64(nil, drawn), err
}

// make writes this node's shards up to their features.
func (m *maker) make() ([]byte, error) {
	m.ids = nil
	m.whole.close()
	if err := m.placed.seal(); err != nil {
		return nil, err
	}
	release()
	if err := m.b.writeShards(m.ctx, m.placed); err != nil {
		return nil, err
	}
	m.b.spool.close()
	release()
	m.phase.Lock()
	defer m.phase.Unlock()
	m.writer = newFeatureWriter(m.ctx, m.b)
	m.written = make([]uint64, (uint64(m.job.Meta.Vertices)+63)/64)
	return nil, nil
}

func (m *maker) drawRows() ([]byte, error) {
	if p, ok := m.share.(Picker); ok {
		return nil, p.FeaturesOf(m.ctx, func(v uint32) bool { return m.own(int(m.b.numbers.part[v])) }, m.putBatch)
	}
	head, err := wire.Head(sayRows, m.id)
	if err != nil {
		return nil, err
	}
	r := newRowRouter(m.ctx, head, &m.job, m.b.numbers.part, m.deliver)
	return nil, r.close(m.share.Features(r.ctx, func(f graph.FeatureBatch) error {
		_, err := r.batch(f)
		return err
	}))
}

// putBatch writes features of this node's vertices.
func (m *maker) putBatch(f graph.FeatureBatch) error {
	rows, err := checkBatch(f, m.job.Meta)
	m.rows.Lock()
	defer m.rows.Unlock()
	for i := 0; i < rows && err == nil; i++ {
		err = m.writer.row(f, i)
	}
	return err
}

// A made is a shard that a node has made.
type made struct {
	Shard int
	Info  graph.ShardInfo
}

func (m *maker) finish() ([]byte, error) {
	m.phase.Lock()
	w := m.writer
	m.writer = nil // no rows any more
	m.phase.Unlock()
	if err := w.close(nil); err != nil {
		return nil, err
	}
	if err := m.b.finish(m.ctx); err != nil {
		return nil, err
	}
	var list []made
	for shard, info := range m.b.manifest.Shards {
		if m.own(shard) {
			list = append(list, made{shard, info})
		}
	}
	return json.Marshal(list)
}
