package build

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/shardtable"
	"github.com/hopmesh/hopmesh/engine/graph/build/wire"
)

// A maker is one node's part in making a dataset: it sorts the edges of some vertices for
// the cut, and makes some of the shards. Who conducts the import sends it one command
// after another; records come from all nodes at once.
type maker struct {
	id, from string
	job      job
	host     Host
	stage    Stage
	share    Share // nil: who conducts reads the source
	b        *builder
	columns  *sentColumns
	life

	// phase is held for reading while a message is taken, and for writing while what
	// messages go to changes.
	phase sync.RWMutex
	task  *task
	taking
	halving
	placing
	writing
}

// life is how long a maker is there.
type life struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	widen  func() // undoes the bound on memory
	ended  bool   // nothing begins any more; guarded by phase
}

// taking is what messages of records are taken with.
type taking struct {
	free   chan int // the parts of records that no message is being put into
	reader wire.Reader
}

// halving is what a maker has before the cut.
type halving struct {
	halves *halves
	whole  *spool // of the halves
	sorted *spool // not nil once no halves are taken
	came   atomic.Uint64
	sealed bool // all halves are on disk, and may be read
}

// placing is what a maker has while edges come to its shards.
type placing struct {
	part   []uint16 // until all have come
	ids    []uint32
	where  *shardtable.Table
	placed *placed
	sent   atomic.Uint64 // edges
}

// writing is what a maker has while features come to its shards.
type writing struct {
	rows    sync.Mutex // guards writer's lanes and written
	writer  *featureWriter
	written []uint64 // which vertices' features have come
}

// A task is work that takes longer than a message may wait.
type task struct {
	done   chan struct{}
	result []byte
	err    error
}

// idleMaker is how long a maker waits for who conducts.
const idleMaker = 60 * time.Second

func newMaker(ctx context.Context, host Host, id, from string, j job) (m *maker, err error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	if j.Nodes[j.Self] != host.Self() {
		return nil, errMessage
	}
	p, err := j.plan(host.Memory())
	if err != nil {
		return nil, err
	}
	stage, err := host.Begin(ctx, id, from)
	if err != nil {
		return nil, err
	}
	m = &maker{id: id, from: from, job: j, host: host, stage: stage}
	defer func() {
		if err != nil {
			m.drop()
		}
	}()
	// Not the message's context: the maker outlives it.
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	o := Options{Shards: j.Shards, DType: j.DType, Undirected: j.Undirected, Memory: host.Memory()}
	o.Dir, o.Scratch = stage.Folders()
	if err := p.checkDisk(o); err != nil {
		return nil, err
	}
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the shards: %w", err)
	}
	m.widen = narrow(host.Memory())
	m.columns = &sentColumns{job: &m.job}
	m.b = &builder{
		options: o, meta: j.Meta, plan: p, report: &reporter{}, disk: disk{folder: o.Dir, need: p.output},
		outputs: make([]*output, j.Shards), columns: m.columns,
	}
	m.b.mine = m.own
	m.b.manifest.Shards = make([]graph.ShardInfo, j.Shards)
	if m.columns.spool, err = m.b.scratch(); err != nil {
		return nil, err
	}
	if j.reads() {
		if m.share, err = host.Open(m.ctx, j.Spec, j.Self, len(j.Nodes)); err != nil {
			return nil, err
		}
	}
	m.free = make(chan int, p.writers())
	for i := range p.writers() {
		m.free <- i
	}
	if !j.Random {
		if m.whole, err = m.b.scratch(); err != nil {
			return nil, err
		}
		m.halves = &halves{shift: j.Shift, low: p.low + 1, vertices: j.Meta.Vertices}
		m.halves.mine = func(bucket int) bool { return m.job.cutter(uint32(bucket)<<j.Shift) == j.Self }
		m.halves.records = newRecords(m.whole, p.writers(), m.halves.count(), p.chunk, j.Meta.Weighted)
	}
	return m, nil
}

// plan chooses this node's sizes.
func (j *job) plan(memory uint64) (*plan, error) {
	p := &plan{
		vertices: j.Meta.Vertices, shards: j.Shards, partitioner: elsewhere,
		weighted: j.Meta.Weighted, features: j.Meta.Features > 0,
		stored: j.Meta.Edges, halves: 2 * j.Meta.Edges, low: uint(bits.Len32(j.Meta.Vertices - 1)),
	}
	if j.Random {
		p.partitioner = random
	}
	if j.Undirected {
		p.stored *= 2
	}
	base := budget.Resident() + binaryBytes
	bound, hard := memory, memory
	if memory == 0 {
		free := budget.Available()
		bound, hard = base+free/2, base+free
	}
	peak := p.shrinkTo(bound, base)
	if peak > hard {
		return nil, fmt.Errorf("to make its shards it needs %s of memory and has %s: raise {dataset.memory}", inBytes(peak), inBytes(hard))
	}
	for p.chunk > 64 && p.chunk*j.buckets()*p.recordBytes()*p.writers() > p.chunkBytes {
		p.chunk /= 2
	}
	p.blockShift = j.Shift // after the sizes: the buckets are what all nodes agree on
	p.most = p.records + int((max(bound, peak)-peak)/uint64(p.workers*2*p.recordBytes()))
	own := 0
	for _, o := range j.Owners {
		if o == j.Self {
			own++
		}
	}
	p.output = j.Output / uint64(j.Shards) * uint64(own)
	p.scratch = p.scratchBytes() / uint64(len(j.Nodes)) * 5 / 4
	return p, nil
}

// drop ends all and removes what is not published.
func (m *maker) drop() {
	if m.timer != nil {
		m.timer.Stop()
	}
	if m.cancel != nil {
		m.cancel(errGivenUp)
	}
	m.phase.Lock()
	m.ended = true
	t := m.task
	m.phase.Unlock()
	if t != nil {
		<-t.done
	}
	m.phase.Lock()
	defer m.phase.Unlock()
	if m.writer != nil {
		_ = m.writer.close(errGivenUp)
		m.writer = nil
	}
	m.columns.close()
	m.halves, m.placed, m.columns = nil, nil, nil
	m.whole.close()
	m.sorted.close()
	if m.b != nil {
		m.b.spool.close()
		for _, out := range m.b.outputs {
			out.drop()
		}
	}
	if m.share != nil {
		_ = m.share.Close() // it is only read
	}
	if m.widen != nil {
		m.widen()
	}
	m.host.Ended(m.stage.Close())
}

var errGivenUp = errors.New("the import was given up: import again")

// own reports whether this node makes the shard.
func (m *maker) own(shard int) bool { return m.job.Owners[shard] == m.job.Self }

// takeHalves adds edges of this node's vertices.
func (m *maker) takeHalves(keys []uint64, weights []float32) error {
	m.phase.RLock()
	defer m.phase.RUnlock()
	h := m.halves
	if h == nil || m.sorted != nil || m.came.Add(uint64(len(keys))) > m.b.plan.halves {
		return errMessage
	}
	w := <-m.free
	defer func() { m.free <- w }()
	to := h.parts[w]
	mask, vertices := uint32(1)<<h.shift-1, m.job.Meta.Vertices
	if m.job.Meta.Weighted {
		stored := 0
		for _, k := range keys {
			stored += int(k & 1)
		}
		if stored != len(weights) {
			return errMessage
		}
		if err := wire.Finite(weights); err != nil {
			return err
		}
	} else if len(weights) > 0 {
		return errMessage
	}
	last := -1
	for _, k := range keys {
		v := uint32(k >> 32)
		if v >= vertices || uint32(k)>>1 >= vertices {
			return errMessage
		}
		at := int(v >> h.shift)
		if at != last {
			if last = at; m.job.cutter(v) != m.job.Self {
				return errMessage
			}
		}
		if err := to.keys.put(at, uint64(v&mask)<<h.low|k&(1<<32-1)); err != nil {
			return err
		}
		if k&1 == 1 && to.weights != nil {
			if err := to.weights.put(at, weights[0]); err != nil {
				return err
			}
			weights = weights[1:]
		}
	}
	return nil
}

// takeEdges adds edges of this node's shards.
func (m *maker) takeEdges(keys []uint64, weights []float32) error {
	m.phase.RLock()
	defer m.phase.RUnlock()
	p := m.placed
	if p == nil || m.b.order != nil || m.sent.Add(uint64(len(keys))) > m.b.plan.stored {
		return errMessage
	}
	w := <-m.free
	defer func() { m.free <- w }()
	to, low, vertices := p.parts[w], m.b.plan.low, m.job.Meta.Vertices
	if m.job.Meta.Weighted && len(weights) != len(keys) || !m.job.Meta.Weighted && len(weights) > 0 {
		return errMessage
	}
	if err := wire.Finite(weights); err != nil {
		return err
	}
	for i, k := range keys {
		d, s := uint32(k>>32), uint32(k)
		if d >= vertices || s >= vertices {
			return errMessage
		}
		shard := m.where.Shard(d)
		if !m.own(shard) {
			return errMessage
		}
		row := d - m.where.First[shard]
		at := shard*p.per + int(row>>p.shift)
		if err := to.keys.put(at, uint64(row)<<low|uint64(s)); err != nil {
			return err
		}
		if to.weights != nil {
			if err := to.weights.put(at, weights[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeParts notes the shards of consecutive vertices, which continue the last ones.
func (m *maker) takeParts(part []uint16) error {
	m.phase.Lock()
	defer m.phase.Unlock()
	n := int(m.job.Meta.Vertices)
	if m.ended || m.b.numbers != nil || len(part) > n-len(m.part) {
		return errMessage
	}
	if m.part == nil {
		m.part = make([]uint16, 0, n)
	}
	m.part = append(m.part, part...)
	return nil
}

// number opens this node's shards for edges.
func (m *maker) number() (err error) {
	m.phase.Lock()
	defer m.phase.Unlock()
	if m.ended || m.b.numbers != nil {
		return errMessage
	}
	if m.b.numbers, err = newNumbering(m.part, m.job.Meta.Vertices, m.job.Shards); err != nil {
		return err
	}
	m.part = nil
	m.ids, m.where = m.b.numbers.ids(), shardtable.New(m.b.numbers.first)
	if m.b.spool, err = m.b.scratch(); err != nil {
		return err
	}
	p := m.b.plan
	m.placed = &placed{records: newRecords(m.b.spool, p.writers(), p.shards*p.perShard, p.chunk, m.job.Meta.Weighted), per: p.perShard}
	for (m.b.numbers.largest()-1)>>m.placed.shift >= m.placed.per {
		m.placed.shift++
	}
	m.sorted.close()
	return nil
}

// takeRows writes features of this node's vertices.
func (m *maker) takeRows(rows []uint32, values []byte) error {
	m.phase.RLock()
	defer m.phase.RUnlock()
	size := m.job.rowBytes()
	if m.writer == nil || size == 0 || len(rows)*size != len(values) || !wire.FiniteBytes(values, m.job.DType == graph.BF16) {
		return errMessage
	}
	m.rows.Lock()
	defer m.rows.Unlock()
	for i, v := range rows {
		if v >= m.job.Meta.Vertices || !m.own(int(m.b.numbers.part[v])) {
			return errMessage
		}
		if m.written[v/64]>>(v%64)&1 == 1 {
			return fmt.Errorf("vertex %d has two rows of features: leave one row for each id", v)
		}
		m.written[v/64] |= 1 << (v % 64)
		shard, row := m.writer.locate(v)
		if err := m.writer.put(&m.writer.lanes[shard], int64(row)*int64(size), values[i*size:(i+1)*size]); err != nil {
			return err
		}
	}
	return nil
}

// publish puts the shards in place.
func (m *maker) publish() error {
	m.phase.Lock()
	defer m.phase.Unlock()
	if m.ended {
		return errGivenUp
	}
	for shard := range m.b.manifest.Shards {
		if m.own(shard) && m.b.manifest.Shards[shard].SHA256 == "" {
			return errMessage
		}
	}
	if err := syncFolder(filepath.Clean(m.b.options.Dir)); err != nil {
		return err
	}
	return m.stage.Publish()
}
