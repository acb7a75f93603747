package build

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
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
	ctx      context.Context
	cancel   context.CancelCauseFunc
	timer    *time.Timer
	widen    func() // undoes the bound on memory

	// phase is held for reading while a message is taken, and for writing while what
	// messages go to changes.
	phase   sync.RWMutex
	free    chan int // the parts of records that no message is being put into
	halves  *halves
	from1   *spool // of the halves
	sorted  *spool
	part    []uint16
	ids     []uint32
	where   *shardTable
	placed  *placed
	columns *sentColumns
	rows    sync.Mutex // guards writer's lanes and written
	written []uint64   // which vertices' features have come
	writer  *featureWriter
	task    *task
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
		if m.from1, err = m.b.scratch(); err != nil {
			return nil, err
		}
		m.halves = &halves{shift: j.Shift, low: p.low + 1, vertices: j.Meta.Vertices}
		m.halves.mine = func(bucket int) bool { return m.job.cutter(uint32(bucket)<<j.Shift) == j.Self }
		m.halves.records = newRecords(m.from1, p.writers(), m.halves.count(), p.chunk, j.Meta.Weighted)
	}
	return m, nil
}

// plan chooses this node's sizes.
func (j *job) plan(memory uint64) (*plan, error) {
	p := &plan{
		vertices: j.Meta.Vertices, shards: j.Shards, partitioner: stream, elsewhere: true,
		weighted: j.Meta.Weighted, features: j.Meta.Features > 0,
		stored: j.Meta.Edges, halves: 2 * j.Meta.Edges, low: lowBits(j.Meta.Vertices), constraints: 1,
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
	m.phase.RLock()
	t := m.task
	m.phase.RUnlock()
	if t != nil {
		<-t.done
	}
	m.phase.Lock()
	defer m.phase.Unlock()
	if m.writer != nil {
		_ = m.writer.close(errGivenUp)
		m.writer = nil
	}
	m.halves, m.placed, m.columns = nil, nil, m.columns.close()
	m.from1.close()
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
	if h == nil || m.sorted != nil {
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
		if err := finite(weights); err != nil {
			return err
		}
	} else if weights != nil && len(weights) > 0 {
		return errMessage
	}
	last, mine := -1, false
	for _, k := range keys {
		v := uint32(k >> 32)
		if v >= vertices || uint32(k)>>1 >= vertices {
			return errMessage
		}
		at := int(v >> h.shift)
		if at != last {
			if last, mine = at, m.job.cutter(v) == m.job.Self; !mine {
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

func finite(weights []float32) error {
	for _, w := range weights {
		if w-w != 0 {
			return errMessage
		}
	}
	return nil
}

// takeEdges adds edges of this node's shards.
func (m *maker) takeEdges(keys []uint64, weights []float32) error {
	m.phase.RLock()
	defer m.phase.RUnlock()
	p := m.placed
	if p == nil || m.b.order != nil {
		return errMessage
	}
	w := <-m.free
	defer func() { m.free <- w }()
	to, low, vertices := p.parts[w], m.b.plan.low, m.job.Meta.Vertices
	if m.job.Meta.Weighted && len(weights) != len(keys) || !m.job.Meta.Weighted && len(weights) > 0 {
		return errMessage
	}
	if err := finite(weights); err != nil {
		return err
	}
	for i, k := range keys {
		d, s := uint32(k>>32), uint32(k)
		if d >= vertices || s >= vertices {
			return errMessage
		}
		shard := m.where.shard(d)
		if !m.own(shard) {
			return errMessage
		}
		row := d - m.where.first[shard]
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
	if m.b.numbers != nil || len(part) > n-len(m.part) {
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
	if m.b.numbers != nil {
		return errMessage
	}
	if m.b.numbers, err = newNumbering(m.part, m.job.Meta.Vertices, m.job.Shards); err != nil {
		return err
	}
	m.part = nil
	m.ids, m.where = m.b.numbers.ids(), newShardTable(m.b.numbers.first)
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
	if m.writer == nil || size == 0 || len(rows)*size != len(values) || !finiteBytes(values, m.job.DType) {
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

// finiteBytes reports whether features are numbers.
func finiteBytes(b []byte, kind graph.DType) bool {
	high := 2 // where a number's sign and exponent are
	size := 4
	if kind == graph.BF16 {
		high, size = 0, 2
	}
	for at := high; at+1 < len(b); at += size {
		if b[at]&0x80 != 0 && b[at+1]&0x7f == 0x7f {
			return false
		}
	}
	return true
}

// begin starts a task.
func (m *maker) begin(what byte) error {
	m.phase.Lock()
	defer m.phase.Unlock()
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
	case what == doPlace && m.halves != nil && m.placed != nil && m.b.order == nil:
		do = m.place
	case what == doMake && m.placed != nil && m.b.order == nil:
		do = m.make
		m.b.order = m.b.numbers.order()
	case what == doDrawRows && m.share != nil && m.writer != nil:
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
		_, _, err = reply(b)
	}
	return err
}

// router sends records of a kind to all nodes.
func (m *maker) router(say byte, takers int, take func([]uint64, []float32) error) (*router, error) {
	head, err := message(say, m.id)
	if err != nil {
		return nil, err
	}
	return newRouter(m.ctx, head, len(m.job.Nodes), takers, m.job.Self, m.deliver, take), nil
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
	g, err := m.b.sortHalves(m.ctx, m.halves, m.sorted)
	if err != nil {
		return nil, err
	}
	if len(g.runs)*runBytes >= MaxReply {
		return nil, fmt.Errorf("the edges were sorted in %d runs, more than can be told: raise {dataset.memory}", len(g.runs))
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
	m.from1.close()
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
	head, err := message(sayRows, m.id)
	if err != nil {
		return nil, err
	}
	r := newRowRouter(m.ctx, head, &m.job, m.b.numbers.part, m.deliver)
	return nil, r.close(m.share.Features(r.ctx, func(f graph.FeatureBatch) error {
		_, err := r.batch(f)
		return err
	}))
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

func lowBits(vertices uint32) (n uint) {
	for (vertices-1)>>n > 0 {
		n++
	}
	return n
}

// sentColumns are the columns of this node's shards as they were sent.
type sentColumns struct {
	job   *job
	spool *spool

	mu    sync.Mutex
	parts map[[2]int][]span // by shard and column
}

type span struct{ at, length int64 }

func (c *sentColumns) close() *sentColumns {
	if c != nil {
		c.spool.close()
	}
	return nil
}

func (c *sentColumns) take(shard, column int, b []byte) error {
	at, err := c.spool.append(b)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts == nil {
		c.parts = map[[2]int][]span{}
	}
	key := [2]int{shard, column}
	c.parts[key] = append(c.parts[key], span{at, int64(len(b))})
	return nil
}

func (c *sentColumns) about() columnsAbout {
	return columnsAbout{c.job.Labels, c.job.Splits, c.job.Names}
}

func (c *sentColumns) length(shard, column int) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.parts[[2]int{shard, column}] {
		n += s.length
	}
	return n
}

func (c *sentColumns) nameBytes(shard int, _ []uint32) int64 { return c.length(shard, nameColumn) }

func (c *sentColumns) write(column, shard int, rows []uint32, buf []byte, out func([]byte) error) error {
	n := int64(len(rows))
	want := map[int]int64{idColumn: 8 * n, labelColumn: 4 * n, markColumn: int64(c.job.Splits) * n}
	if c.job.Names {
		want[idColumn] += 8
		want[nameColumn] = c.length(shard, nameColumn)
	}
	if c.length(shard, column) != want[column] {
		return fmt.Errorf("a column of shard %d was sent with %d bytes, and should have %d", shard, c.length(shard, column), want[column])
	}
	c.mu.Lock()
	spans := c.parts[[2]int{shard, column}]
	c.mu.Unlock()
	for _, s := range spans {
		for done := int64(0); done < s.length; {
			b := buf[:min(int64(len(buf)), s.length-done)]
			if err := c.spool.read(b, s.at+done); err != nil {
				return err
			}
			if err := out(b); err != nil {
				return err
			}
			done += int64(len(b))
		}
	}
	return nil
}

// publish puts the shards in place.
func (m *maker) publish() error {
	m.phase.Lock()
	defer m.phase.Unlock()
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
