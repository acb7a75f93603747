package evaluate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/evaluate/overflow"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/metric"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// The area under the ROC curve and the average precision are of all vertices of a mark
// together. Each node sorts the logits of its own, class by class. Each class is compared by
// one node, which takes the sorted logits of all others as it merges them, so that none has all
// at once.

// ranks are the marks whose vertices are ranked: none, unless a metric ranks them.
type ranks struct {
	of      []*rank
	classes int
	nodes   *Nodes
	// exclusive means that who belongs to a class belongs to no other. Nodes exchange less
	// then, and know of no precision.
	exclusive bool
	known     bool // what others rank
}

// A rank is the vertices of a mark that are ranked.
type rank struct {
	*metric.Ranking
	mark   graph.Mark
	what   int              // kind of parcel
	counts [][]metric.Sides // of each node, by class
	all    []metric.Sides   // of all nodes
	ranks  []metric.Ranks   // by class

	memory     memoryStore
	file       *overflow.File // where memory is too small
	comparison metric.Comparison
	readers    []*reader          // of each node
	streams    [2][]metric.Stream // of the class that is compared
	own        [2]keys            // of this node
}

// memoryStore keeps sorted logits in memory.
type memoryStore []byte

// Write sets bytes from a place on.
func (m memoryStore) Write(b []byte, at int64) error {
	copy(m[at:], b)
	return nil
}

// Bytes returns all bytes.
func (m memoryStore) Bytes() []byte { return m }

// newRanks finds the vertices here that are ranked.
func newRanks(d *dataset.Graph, nodes *Nodes, kind *task.Kind, words int) ranks {
	r := ranks{classes: d.About.Classes, nodes: nodes, exclusive: kind.Exclusive}
	var target []int32
	for _, k := range []*rank{{mark: graph.Validation, what: valLogits}, {mark: graph.Test, what: testLogits}} {
		own := make([]metric.Sides, r.classes)
		for i, s := range d.Shards {
			if !s.HasTargets() || d.Split >= len(s.Marks) || !nodes.owns(i) {
				continue
			}
			for row, mark := range s.Marks[d.Split] {
				if mark != k.mark {
					continue
				}
				target = s.AppendTarget(target[:0], row)
				for c := range own {
					if side := kind.Ranks(target, c); side >= 0 {
						own[c][side]++
					}
				}
			}
		}
		k.Ranking, k.ranks = metric.NewRanking(own, words, kind.Ranks), make([]metric.Ranks, r.classes)
		for range max(1, len(nodes.Work.Nodes)) {
			k.counts, k.readers = append(k.counts, make([]metric.Sides, r.classes)), append(k.readers, new(reader))
		}
		k.counts[nodes.Work.Self] = own
		r.of = append(r.of, k)
	}
	return r
}

// bytes returns what is taken of memory and of the folder.
func (r *ranks) bytes(inFile bool) (memory, disk uint64) {
	for _, k := range r.of {
		sorting, another := k.Beside()
		stored := uint64(k.Size() + another)
		memory += uint64(sorting) + 8*chunkRows + uint64(2*rankWindow*(len(k.readers)-1))
		if inFile {
			disk += stored
		} else {
			memory += stored
		}
	}
	return memory, disk
}

// keys counts the keys of a node in the classes from first to end (exclusive).
func (k *rank) keys(node, first, end int) (n int) {
	for _, of := range k.counts[node][first:end] {
		n += of[metric.Without] + of[metric.With]
	}
	return n
}

// begin forgets the last evaluation.
func (r *ranks) begin(inFile bool, dir string) (err error) {
	for _, k := range r.of {
		if !inFile {
			k.memory = plain.Grow(k.memory, int(k.Size()))
			k.Begin(k.memory)
			continue
		}
		if k.file, err = overflow.New(dir, k.Size()); err != nil {
			return err
		}
		k.Begin(k.file)
	}
	return nil
}

// add adds the logits of a chunk's vertices that have a mark and a target.
func (r *ranks) add(mark graph.Mark, logits []float32, targets []int32) error {
	for _, k := range r.of {
		if k.mark == mark {
			return k.Add(logits, targets)
		}
	}
	return nil
}

// values adds the metrics of a mark to others.
func (r *ranks) values(mark graph.Mark, to map[string]float64) {
	for _, k := range r.of {
		if k.mark != mark {
			continue
		}
		k.all = slices.Grow(k.all[:0], r.classes)[:r.classes]
		all := k.all
		clear(all)
		for _, counts := range k.counts {
			for c, of := range counts {
				all[c][metric.Without] += of[metric.Without]
				all[c][metric.With] += of[metric.With]
			}
		}
		if area, ok := metric.Area(k.ranks, all); ok {
			to[task.ROCAUC] = area
		}
		if precision, ok := metric.Precision(k.ranks, all); ok && !r.exclusive {
			to[task.AveragePrecision] = precision
		}
	}
}

// classesOf returns the classes that a node compares, from the first to the last
// (exclusive).
func (r *ranks) classesOf(node int) (first, end int) {
	if len(r.of) == 0 {
		return 0, 0
	}
	n := max(1, len(r.nodes.Work.Nodes))
	return node * r.classes / n, (node + 1) * r.classes / n
}

// finish sorts all logits, and compares those of the classes that this node compares.
func (r *ranks) finish(ctx context.Context, h *halo, dir string, inFile bool) error {
	if len(r.of) == 0 {
		return nil
	}
	if !h.nodes.alone() {
		if err := r.meet(ctx, h); err != nil {
			return err
		}
	}
	for _, k := range r.of {
		if err := k.sort(inFile, dir); err != nil {
			return fmt.Errorf("sort the logits that are ranked: %w", err)
		}
	}
	for _, k := range r.of {
		for node := range h.nodes.Work.Nodes {
			if node != h.nodes.Work.Self {
				first, end := r.classesOf(node)
				h.parcels.offer(k.parcel(h, node), k.Keys(first, end))
			}
		}
	}
	for _, k := range r.of {
		if err := r.compare(k, h); err != nil {
			return err
		}
	}
	return nil
}

// sort sorts the logits of a mark.
func (k *rank) sort(inFile bool, dir string) error {
	var another *overflow.File
	err := k.Sort(func(bytes int64) (metric.Store, error) {
		if !inFile {
			return memoryStore(plain.Room(int(bytes))), nil
		}
		var err error
		another, err = overflow.New(dir, bytes)
		return another, err
	})
	return errors.Join(err, another.Close())
}

// meet exchanges, once a run, how many vertices of each class each node ranks.
func (r *ranks) meet(ctx context.Context, h *halo) error {
	if r.known {
		return nil
	}
	var mine []byte
	for _, k := range r.of {
		for _, of := range k.Counts() {
			mine = binary.LittleEndian.AppendUint32(mine, uint32(of[metric.With]))
			if !r.exclusive {
				mine = binary.LittleEndian.AppendUint32(mine, uint32(of[metric.Without]))
			}
		}
	}
	tag := exchange.Tag{Epoch: h.parcels.epoch, Step: h.parcels.step, Index: rankMessage}
	all, err := h.nodes.Exchange.Gather(ctx, tag, mine, &h.parcels.tally)
	if err != nil {
		return fmt.Errorf("exchange how many vertices each node ranks: %w", err)
	}
	for node, message := range all {
		if err := r.count(node, message, h.nodes.Layout.Vertices()); err != nil {
			return fmt.Errorf("node %s ranks vertices for the evaluation: %w", h.nodes.name(node), err)
		}
	}
	r.known = true
	return nil
}

// numbers is how many numbers of a class a node says before and after it is compared: of an
// exclusive one, how many vertices have it, and the pairs.
func (r *ranks) numbers() int {
	if r.exclusive {
		return 1
	}
	return 2
}

// count reads how many vertices a node ranks, of so many in all.
func (r *ranks) count(node int, message []byte, vertices uint32) error {
	if want := 4 * len(r.of) * r.classes * r.numbers(); len(message) != want {
		return fmt.Errorf("its message has %d bytes in place of %d", len(message), want)
	}
	next := func() int {
		n := binary.LittleEndian.Uint32(message)
		message = message[4:]
		return int(n)
	}
	for _, k := range r.of {
		rows := 0 // of an exclusive ranking
		for c := range k.counts[node] {
			with, without := next(), 0
			if rows += with; !r.exclusive {
				without = next()
			}
			if most := int(vertices); with+without > most || r.exclusive && rows > most {
				return fmt.Errorf("%d of %d vertices", max(rows, with+without), vertices)
			}
			k.counts[node][c] = metric.Sides{metric.Without: without, metric.With: with}
		}
		for c := range k.counts[node] {
			if of := &k.counts[node][c]; r.exclusive {
				of[metric.Without] = rows - of[metric.With]
			}
		}
	}
	return nil
}

// parcel is what carries sorted logits to a node.
func (k *rank) parcel(h *halo, to int) parcel {
	return parcel{what: len(h.parcels.stages) + k.what, to: to, row: 4, window: rankWindow}
}

// compare compares the classes that are this node's to compare.
func (r *ranks) compare(k *rank, h *halo) error {
	self := h.nodes.Work.Self
	first, end := r.classesOf(self)
	for node, t := range h.parcels.takers {
		if node != self {
			k.readers[node].begin(t, k.parcel(h, self), 4*k.keys(node, first, end))
		}
	}
	if !h.nodes.alone() {
		if err := h.parcels.take(); err != nil {
			return err
		}
	}
	own := plain.Numbers[uint32](k.Keys(first, end))
	for c := first; c < end; c++ {
		k.streams[0], k.streams[1] = k.streams[0][:0], k.streams[1][:0]
		all := metric.Sides{}
		for node := range k.readers {
			at, of := k.keys(node, first, c), k.counts[node][c]
			bounds := [3]int{at, at + of[metric.Without], at + of[metric.Without] + of[metric.With]}
			for side := range 2 {
				all[side] += of[side]
				if node == self {
					k.own[side].rest = own[bounds[side]:bounds[side+1]]
					k.streams[side] = append(k.streams[side], &k.own[side])
				} else {
					k.streams[side] = append(k.streams[side], k.readers[node].stream(side, bounds[side], bounds[side+1]))
				}
			}
		}
		var err error
		if k.ranks[c], err = k.comparison.Compare(k.streams[metric.Without], k.streams[metric.With], all); err != nil {
			return fmt.Errorf("rank the vertices of class %d: %w", c, err)
		}
	}
	return nil
}

// keys is a stream of keys in memory.
type keys struct{ rest []uint32 }

// Next implements metric.Stream.
func (k *keys) Next() (some []uint32, err error) {
	some, k.rest = k.rest, nil
	return some, nil
}

// append appends the ranks of the classes that this node compares to a message.
func (r *ranks) append(to []byte) []byte {
	for _, k := range r.of {
		first, end := r.classesOf(r.nodes.Work.Self)
		for _, of := range k.ranks[first:end] {
			to = binary.LittleEndian.AppendUint64(to, math.Float64bits(of.Pairs))
			if !r.exclusive {
				to = binary.LittleEndian.AppendUint64(to, math.Float64bits(of.Precisions))
			}
		}
	}
	return to
}

// appended is how many bytes a node appends.
func (r *ranks) appended(node int) int {
	first, end := r.classesOf(node)
	return 8 * len(r.of) * (end - first) * r.numbers()
}

// absorb reads what a node has appended.
func (r *ranks) absorb(node int, from []byte) error {
	next := func() float64 {
		n := math.Float64frombits(binary.LittleEndian.Uint64(from))
		from = from[8:]
		return n
	}
	for _, k := range r.of {
		first, end := r.classesOf(node)
		for c := first; c < end; c++ {
			of := metric.Ranks{Pairs: next()}
			if !r.exclusive {
				of.Precisions = next()
			}
			if !(of.Pairs >= 0 && of.Pairs <= math.MaxFloat64) {
				return fmt.Errorf("class %d has the larger logit in %g pairs", c, of.Pairs)
			}
			if !(of.Precisions >= 0 && of.Precisions <= math.MaxUint32) {
				return fmt.Errorf("class %d has precisions of %g in all", c, of.Precisions)
			}
			k.ranks[c] = of
		}
	}
	return nil
}

// lend has the files stay as long as others read what is offered of them.
func (r *ranks) lend(h *halo) {
	for _, k := range r.of {
		if k.file != nil {
			h.files, k.file = append(h.files, k.file), nil
		}
	}
}

// close closes the files.
func (r *ranks) close() (err error) {
	for _, k := range r.of {
		err = errors.Join(err, k.file.Close())
		k.file = nil
	}
	return err
}

// rankWindow is how many bytes of sorted logits are taken at once. All nodes have the same.
var rankWindow = 256 << 10

// A reader reads what a node has sorted: all at once if it is little, or by windows, of which
// each stream has one.
type reader struct {
	taker  *taker
	parcel parcel
	bytes  int
	all    []byte // empty: it is read by windows
	of     [2]window
}

// window is the stream of some of a reader's keys.
type window struct {
	reader  *reader
	at, end int // bytes
	b       []byte
	place   int // of b; -1: none
}

// begin begins to read, and has the taker take what is little.
func (r *reader) begin(t *taker, p parcel, bytes int) {
	r.taker, r.parcel, r.bytes, r.all = t, p, bytes, r.all[:0]
	for has := range r.of {
		r.of[has].place = -1
	}
	if bytes > 0 && bytes <= rankWindow {
		r.all = plain.Grow(r.all, bytes)
		t.parcel, t.kind, t.to = p, peer.Activation, r.all
	}
}

// stream returns the stream of some keys.
func (r *reader) stream(has, first, end int) metric.Stream {
	w := &r.of[has]
	w.reader, w.at, w.end = r, 4*first, 4*end
	return w
}

// Next implements metric.Stream.
func (w *window) Next() ([]uint32, error) {
	r := w.reader
	if w.at >= w.end {
		return nil, nil
	}
	b, from := r.all, w.at
	if len(b) == 0 {
		size, room := r.taker.parcels.window(r.parcel, r.bytes)
		place := w.at / size
		if place != w.place {
			w.b, w.place = plain.Grow(w.b, min(size, r.bytes-place*size)), place
			if err := r.taker.at(r.parcel, peer.Activation, place, room, w.b); err != nil {
				return nil, err
			}
		}
		b, from = w.b, w.at-place*size
	}
	b = b[from:min(len(b), from+w.end-w.at)]
	w.at += len(b)
	return plain.Numbers[uint32](b), nil
}
