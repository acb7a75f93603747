package evaluate

import (
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/nn"
)

// What inference takes is planned before it runs, so that forecasts and what it does are one
// thing. If memory is large enough there is one part over all vertices. Else there are parts
// of some chunks, and what lies between their steps is in memory or, if that is too small,
// in files.

// A plan is how the stages of a model are run, and what that takes.
type plan struct {
	whole   bool
	brought bool   // the rows of sources are brought together for each part
	inFile  bool   // what lies between steps does
	rows    int    // of a part
	entries int    // of a part's block that lie in memory
	arena   uint64 // of a part, or of the first lane
	memory  uint64 // of all else
	disk    uint64 // of all files
}

// slabBytes is the unit in which arenas take memory.
const slabBytes = 2 << 20

// slab returns what an arena of so many bytes takes.
func slab(bytes uint64) uint64 { return (bytes + slabBytes - 1) / slabBytes * slabBytes }

const (
	// mostPart is about as much as a part's arena and block take where there is room for
	// more: larger parts are not faster.
	mostPart   = 64 << 20
	mostChunks = 16 // of a part
	// leastEntries is how many entries of a block lie in memory however little there is.
	leastEntries = 1 << 17
	// beside is what a run takes of small things, such as buffers.
	beside = 1 << 20
)

// mostOnce is how much a part over all vertices may take that is run only once. The first of
// several runs takes as long as smaller parts do, and the others are faster. Tests lower it.
var mostOnce uint64 = 256 << 20

// Expect says what Open will be given, for forecasts: how many bytes of an arena, whether
// the device has memory of its own, and the folder.
func (i *Inference) Expect(arena uint64, foreign bool, dir string) {
	i.reused, i.foreign, i.folder.dir = arena, foreign, dir
}

// Once says that it will run only once.
func (i *Inference) Once() { i.once = true }

// Least returns the least memory that it can do with, for all stages of any model.
func (i *Inference) Least() uint64 { return i.LeastFor(0) }

// LeastFor returns the least memory for the first stages only; 0: for all of them.
func (i *Inference) LeastFor(stages int) uint64 {
	return i.within(0, func(all int) uint64 {
		if stages > 0 {
			all = stages
		}
		if i.brings() {
			return i.leastBrought(all)
		}
		return min(i.beyond(i.inParts(all, true)), i.beyond(i.inParts(all, false)), i.wholeBytes(all))
	})
}

// Takes returns how much it takes of some memory that it may use.
func (i *Inference) Takes(memory uint64) uint64 {
	return i.within(memory, func(stages int) uint64 { return i.beyond(i.plan(stages)) })
}

// Disk returns how much its files take if it may use some memory.
func (i *Inference) Disk(memory uint64) uint64 {
	return i.within(memory, func(stages int) uint64 { return i.plan(stages).disk })
}

// Spills returns the sentence that tells users what lies in files if some memory may be
// used; empty: nothing does.
func (i *Inference) Spills(memory uint64) string {
	bytes := i.Disk(memory)
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("evaluation has %s of memory on a node, so what lies between its steps takes up to %s of files there: it takes longer", budget.Format(memory), budget.Format(bytes))
}

// Arena returns how large the arena is to be that it is lent, if it may use some memory.
func (i *Inference) Arena(memory uint64) uint64 {
	if i.foreign {
		return 0
	}
	return i.within(memory, func(stages int) uint64 { return i.plan(stages).arena })
}

// beyond returns what a plan takes beside the arena that is lent, or by which that is too
// small.
func (i *Inference) beyond(p plan) uint64 { return p.memory + p.arena - min(p.arena, i.reused) }

// within is the largest size of all models if it might use some memory.
func (i *Inference) within(memory uint64, size func(stages int) uint64) uint64 {
	before := i.memory
	i.memory = memory
	defer func() { i.memory = before }()
	return i.largest(size)
}

// largest returns the largest size of all models, with all their stages.
func (i *Inference) largest(size func(stages int) uint64) (most uint64) {
	now := i.now
	for _, i.now = range i.views {
		most = max(most, size(len(i.now.stages)))
	}
	i.now = now
	return most
}

// plan returns how stages are run in the memory that may be used.
func (i *Inference) plan(stages int) plan {
	if p, fits := i.fits(stages); fits {
		if i.once && len(i.views) == 1 && !i.brings() && i.beyond(p) > mostOnce {
			if parts := i.inParts(stages, false); i.beyond(parts) < i.beyond(p) {
				return parts
			}
		}
		return p
	}
	if i.brings() {
		return i.planBrought(stages)
	}
	if p := i.inParts(stages, false); i.beyond(p) <= i.memory {
		return p
	}
	return i.inParts(stages, true)
}

// fits returns the plan of one part over all vertices, and whether there is room for it: for
// those of all models, where there are several, since what they read stays.
func (i *Inference) fits(stages int) (plan, bool) {
	p := i.inWhole(stages)
	most := i.beyond(p)
	if len(i.views) > 1 {
		most = i.largest(func(stages int) uint64 { return i.beyond(i.inWhole(stages)) })
	}
	return p, most <= i.memory && i.own.rows > 0
}

// brings reports whether the rows of a part's sources have to be brought together: to a
// device with memory of its own, or for a layer that can't be divided.
func (i *Inference) brings() bool {
	if i.foreign {
		return true
	}
	for s, stage := range i.now.stages {
		if stage.Hops > 0 && !i.now.divided[s] {
			return true
		}
	}
	return false
}

// lists is what the halo's vertices take, with those that others have listed.
func (i *Inference) lists() uint64 { return uint64(24*i.halo.size() + 4*i.halo.expects()) }

// ranked returns what ranking takes of memory and of the folder.
func (i *Inference) ranked(inFile bool) (memory, disk uint64) {
	if i.ranks == nil {
		return 0, 0
	}
	return i.ranks.bytes(inFile)
}

// inWhole plans one part over all vertices.
func (i *Inference) inWhole(stages int) plan {
	sources, targets := uint64(i.sources()), uint64(i.own.rows)
	p := plan{whole: true, rows: i.own.rows}
	lanes := i.lanesOf(stages)
	p.arena = max(lanes[0], 4*sources) // factors of features lie there first
	p.memory = slab(lanes[1]) + slab(lanes[2]) + i.lists() + 4*targets + beside
	outs, in, widest := i.exchanges(stages)
	p.memory += outs
	if i.foreign {
		p.memory += in
	}
	if !i.halo.nodes.alone() {
		p.memory += slab(4 * sources * uint64(widest))
	}
	if !i.hears() {
		p.memory += i.inputBytes(targets)
	} else {
		p.memory += i.inputBytes(sources) + i.farBytes(i.farRows(mostChunks*chunkRows))
	}
	ranked, _ := i.ranked(false)
	p.memory += ranked
	if i.now.model.Hops() == 0 {
		return p
	}
	entries := uint64(i.own.edges)
	if i.now.model.Form().SelfLoops {
		entries += targets
	}
	if form := i.now.model.Form(); form.Along || entries > math.MaxInt32 || form.Apart && targets*uint64(form.Relations) > math.MaxInt32 || form.Together && 2*targets > math.MaxInt32 {
		p.memory, p.arena = math.MaxUint64, 0 // more than a block holds, or by parts only
		return p
	}
	p.memory += i.entryBytes()*entries + 8*targets
	size := nn.Size{Targets: int(targets), Sources: int(sources), Entries: int(entries)}
	p.memory += i.now.model.Form().RelatedBytes(size, false)
	return p
}

// exchanges returns what rows take that are offered and that come, and the columns of the
// widest.
func (i *Inference) exchanges(stages int) (outs, in uint64, widest int) {
	widest = i.widest(stages)
	for s := range i.now.stages[:stages] {
		if i.exchanged(s, stages) {
			outs += 4 * uint64(i.halo.expects()*i.now.stages[s].Out)
		}
	}
	return outs, 4 * uint64(widest*i.halo.size()), widest
}

// inParts plans parts whose steps exchange tables.
func (i *Inference) inParts(stages int, inFile bool) plan {
	p := plan{inFile: inFile}
	tables := i.tableBytes(stages, inFile)
	ranked, onDisk := i.ranked(inFile)
	fixed := i.lists() + ranked + beside
	if i.data.Features.Sparse() {
		kept, _ := i.kept()
		fixed += kept
	} else {
		tables += 4 * uint64(i.farKept()*i.denseColumns())
	}
	if inFile {
		p.disk = tables + onDisk
		_, in, _ := i.exchanges(stages)
		fixed += min(uint64(windowBytes), in)
	} else {
		fixed += tables
	}
	room := min(mostPart, i.memory-min(i.memory, fixed))
	for chunks := mostChunks; chunks > 0; chunks /= 2 {
		p.rows = min(chunks*chunkRows, max(i.own.rows, i.farTotal()))
		p.entries = min(i.mostEntries(p.rows), int(max(leastEntries, room/4/i.entryBytes())))
		p.arena = i.partArena(stages, p.rows, p.entries)
		p.memory = fixed + i.partBeside(p.rows, p.entries)
		if p.arena+p.memory-fixed <= room {
			break
		}
	}
	if most := i.mostEntries(p.rows); most > p.entries {
		p.disk += i.entryBytes() * uint64(most)
	}
	if p.disk > 0 && i.folder.memory() {
		p.memory += p.disk
	}
	return p
}

// partArena is the most that a step of a part takes of an arena.
func (i *Inference) partArena(stages, rows, entries int) (most uint64) {
	for s, stage := range i.now.stages[:stages] {
		if i.now.like[s] < s {
			continue
		}
		in := i.inputSize(s, rows)
		scratch := uint64(0)
		if s == 0 {
			scratch = uint64(4 * rows * (1 + i.denseColumns())) // rows that are read, and factors of rows
		}
		if stage.Hops == 0 {
			most = max(most, scratch+uint64(i.now.model.ForecastStage(s, in, nn.Size{Sources: rows, Targets: rows})))
			continue
		}
		d := i.now.divisions[s]
		if d.Carried > 0 {
			most = max(most, scratch+uint64(i.now.model.ForecastCarry(s, in)))
		}
		if !d.Own {
			in.Rows, in.Entries, scratch = 0, 0, 0
		}
		arena, _ := i.now.model.ForecastSum(s, in, nn.Size{Sources: i.sources(), Targets: rows, Entries: entries})
		most = max(most, scratch+uint64(arena))
	}
	return most
}

// partBeside is what a part takes beside its arena: its block, and features as they come.
func (i *Inference) partBeside(rows, entries int) uint64 {
	bytes := i.entryBytes()*uint64(entries) + 16*uint64(rows)
	if i.data.Features.Sparse() {
		bytes += i.inputBytes(uint64(rows))
	}
	if _, kept := i.kept(); !kept || !i.data.Features.Sparse() {
		bytes += i.farBytes(i.farRows(rows))
	}
	return bytes
}

// inputSize is the size of so many rows that enter a stage.
func (i *Inference) inputSize(s, rows int) nn.InputSize {
	z := nn.InputSize{Rows: rows}
	if s == 0 && i.data.Features.Sparse() {
		z.Sparse, z.Entries = true, int(float64(rows)*i.data.Entries)
	}
	return z
}

// denseColumns is how many columns dense features have.
func (i *Inference) denseColumns() int {
	if i.data.Features.Sparse() {
		return 0
	}
	return i.data.Features.Columns()
}

// entryBytes is what an entry of a block takes.
func (i *Inference) entryBytes() uint64 { return uint64(i.weaver.entryBytes()) }

// mostEntries is how many entries a part of so many rows has at most.
func (i *Inference) mostEntries(rows int) (most int) {
	if i.now.model.Hops() == 0 {
		return 0
	}
	for first := 0; first < i.own.rows; {
		n := i.part(first, rows)
		most = max(most, i.edges(first, first+n)+n)
		first += n
	}
	return most
}

// part returns how many rows from first on a part has: as many whole chunks as have at most
// so many rows, and one at least.
func (i *Inference) part(first, rows int) (n int) {
	for first+n < i.own.rows {
		end := i.own.end(first + n)
		if n > 0 && end-first > rows {
			break
		}
		n = end - first
	}
	return n
}

// edges counts those of the rows from first to end.
func (i *Inference) edges(first, end int) (n int) {
	if i.own.mean > 0 {
		return int(i.own.mean * float64(end-first))
	}
	for at := i.own.at(first); first < end; at++ {
		s := &i.own.spans[at]
		to := min(end, s.row+s.rows)
		indptr := i.data.Shards[s.shard].Indptr
		n += int(indptr[to-s.row] - indptr[first-s.row])
		first = to
	}
	return n
}

// tableBytes is what all tables take that are needed at once, with the rows that nodes
// exchange.
func (i *Inference) tableBytes(stages int, inFile bool) (most uint64) {
	table := func(rows, cols int) uint64 {
		if inFile {
			return 4 * uint64(rows*cols)
		}
		return slab(4 * uint64(rows*cols))
	}
	// Rows that are exchanged lie in files of one evaluation each, or in memory that stays.
	var x, beside, outs uint64
	if !inFile {
		outs, _, _ = i.exchanges(stages)
	}
	for s, stage := range i.now.stages[:stages] {
		d, carried := i.now.divisions[s], uint64(0)
		if stage.Hops > 0 {
			carried = table(i.sources(), d.Carried)
		}
		most = max(most, x+beside+carried+outs)
		if carried > 0 && !d.Own {
			x = 0
		}
		var nextX, nextBeside uint64
		if s < stages-1 {
			nextX, nextBeside = table(i.seenBy(s+1), stage.Out), table(i.own.rows, stage.CarryOut)
		}
		most = max(most, x+beside+carried+nextX+nextBeside+outs)
		x, beside = nextX, nextBeside
		if inFile && i.exchanged(s, stages) {
			outs += 4 * uint64(i.halo.expects()*stage.Out)
			most = max(most, x+beside+outs)
		}
	}
	return most
}

// seenBy is how many rows a stage may see: those of the halo, too, if it has hops.
func (i *Inference) seenBy(s int) int {
	if i.now.stages[s].Hops > 0 {
		return i.sources()
	}
	return i.own.rows
}

// kept returns what the features of the halo take if they are kept, which they are where
// they take no more than a quarter of the memory.
func (i *Inference) kept() (bytes uint64, ok bool) {
	if i.now.stages[0].Hops == 0 {
		return 0, true
	}
	bytes = i.farBytes(i.halo.size())
	if bytes > i.memory/4 {
		return 0, false
	}
	return bytes, true
}

// mostFar is about how many bytes of the halo's features are brought at once: they need room
// where they come from, too.
const mostFar = 2 << 20

// farRows is how many rows of the halo are brought at once where so many may be.
func (i *Inference) farRows(rows int) int {
	if !i.hears() || i.halo.size() == 0 {
		return 0
	}
	return min(rows, i.halo.size(), max(64, int(mostFar/max(1, i.inputBytes(1)))))
}

// farTotal is how many rows of the halo are brought in all.
func (i *Inference) farTotal() int {
	if !i.hears() {
		return 0
	}
	return i.halo.size()
}

// farKept is how many rows of the halo's dense features are kept for the next run.
func (i *Inference) farKept() int {
	if i.once || i.data.Features.Learnt() {
		return 0
	}
	return i.farTotal()
}

// farBytes is what features of so many vertices of the halo take as they come.
func (i *Inference) farBytes(rows int) uint64 { return i.inputBytes(uint64(rows)) * 9 / 8 }

// inputBytes is what the features of so many vertices take, on average.
func (i *Inference) inputBytes(vertices uint64) uint64 {
	if i.data.Features.Sparse() {
		return 8*vertices + uint64(float64(vertices)*8*i.data.Entries)
	}
	return 4 * vertices * uint64(i.data.Features.Columns())
}

// hears reports whether the first stage of any model reads the rows of neighbours. The
// others have them as well then, and do not use them.
func (i *Inference) hears() bool {
	for _, v := range i.views {
		if v.stages[0].Hops > 0 {
			return true
		}
	}
	return false
}

// A stageCost is what a stage takes of an arena: bytes for each of its sources, targets and
// edges.
type stageCost struct{ source, target, edge float64 }

// costOf returns the cost of a model's stage. Rows of sparse features have so many entries.
func costOf(m *nn.Model, stage int, sparse bool, entries float64) stageCost {
	const n = 1 << 10
	at := func(sources, targets, edges int) float64 {
		in := nn.InputSize{Rows: sources, Sparse: sparse, Entries: int(float64(sources) * entries)}
		return float64(m.ForecastStage(stage, in, nn.Size{Targets: targets, Sources: sources, Entries: edges}))
	}
	if m.Stages()[stage].Hops == 0 {
		return stageCost{source: (at(2*n, 2*n, 0) - at(n, n, 0)) / n}
	}
	base := at(2*n, n, n)
	// Where edges are few the peak may be that of targets, and rises more slowly.
	edge := max(at(2*n, n, 2*n)-base, at(2*n, n, 33*n)-at(2*n, n, 32*n))
	return stageCost{source: (at(3*n, n, n) - base) / n, target: (at(2*n, 2*n, n) - base) / n, edge: edge / n}
}

func (c stageCost) bytes(sources, targets, edges uint64) uint64 {
	return uint64(c.source*float64(sources) + c.target*float64(targets) + c.edge*float64(edges))
}
