package build

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/edgerows"
	"github.com/hopmesh/hopmesh/engine/graph/targets"
)

// gathered gives one element for each row to out, through a buffer.
func gathered[T fixed](out func([]byte) error, buf []byte, rows []uint32, of func(v uint32) T) error {
	room := cast[T](buf)
	for len(rows) > 0 {
		n := min(len(rows), len(room))
		for i, v := range rows[:n] {
			room[i] = of(v)
		}
		if err := out(raw(room[:n])); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// cast returns an aligned byte buffer viewed as elements.
func cast[T fixed](buf []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf)/int(unsafe.Sizeof(*new(T))))
}

// sparseOffsets writes where each row's sparse features begin.
func (w *shardWriter) sparseOffsets(out *output, rows []uint32, first uint32) error {
	if w.b.sparseAt == nil {
		return nil
	}
	at := w.b.sparseAt[first : int(first)+len(rows)+1]
	// The rows' own numbers do not matter here: the offsets are in row order.
	room := cast[int64](w.copying)
	for done := 0; done < len(at); {
		n := min(len(at)-done, len(room))
		for i, offset := range at[done : done+n] {
			room[i] = offset - at[0]
		}
		if err := out.next(raw(room[:n])); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// copyEdges writes the shard's merged edges.
func (w *shardWriter) copyEdges(out *output, edges uint64) error {
	if w.whole != nil {
		if err := out.next(raw(w.whole)); err != nil {
			return err
		}
		return out.next(raw(w.heavy))
	}
	if err := w.copyFrom(w.merged, out, edges*4); err != nil || !edgerows.Of(w.b.src).Weighted(w.b.meta.Weighted) {
		return err
	}
	return w.copyFrom(w.weights, out, edges*4)
}

// copyFrom appends the first length bytes of a spool.
func (w *shardWriter) copyFrom(from *spool, out *output, length uint64) error {
	for at := uint64(0); at < length; {
		buf := w.copying[:min(uint64(len(w.copying)), length-at)]
		if err := from.read(buf, int64(at)); err != nil {
			return err
		}
		if err := out.next(buf); err != nil {
			return err
		}
		at += uint64(len(buf))
	}
	return nil
}

// tail writes what follows a shard's features: targets of a byte, marks and names.
func (b *builder) tail(out *output, shard int, buf []byte) error {
	rows := b.order[b.numbers.first[shard]:b.numbers.first[shard+1]]
	if b.columns.about().labels && targets.Late(&b.meta) {
		out.at = out.place["targets"]
		if err := b.columns.write(labelColumn, shard, rows, buf, out.next); err != nil {
			return err
		}
	}
	if b.columns.about().splits > 0 {
		out.at = out.place["splits"]
		if err := b.columns.write(markColumn, shard, rows, buf, out.next); err != nil {
			return err
		}
	}
	if !b.columns.about().names {
		return nil
	}
	out.at = out.place["original_ids.bytes"]
	return b.columns.write(nameColumn, shard, rows, buf, out.next)
}

// The columns that a shard has beside its edges and features, in the order of its file.
const (
	idColumn    = iota // numbers, or where each row's name ends
	labelColumn        // or other targets, if there are any
	markColumn
	nameColumn // the text of all names
	columnKinds
)

// columns are names, labels and marks, from where they are.
type columns interface {
	about() columnsAbout
	// nameBytes returns how long the names of a shard's rows are together.
	nameBytes(shard int, rows []uint32) int64
	// write gives a column to out in pieces, which may lie in buf.
	write(column, shard int, rows []uint32, buf []byte, out func([]byte) error) error
}

type columnsAbout struct {
	labels bool
	splits int
	names  bool // ids are text
}

// ofSource are the columns of a source.
type ofSource struct{ src graph.Source }

func (c ofSource) about() columnsAbout {
	return columnsAbout{c.src.Labels() != nil || c.src.Meta().Targets != graph.OneClass, len(c.src.Splits()), c.src.IDs().Strings != nil}
}

func (c ofSource) nameBytes(_ int, rows []uint32) int64 {
	length, offsets := int64(0), c.src.IDs().Strings.Offsets
	for _, v := range rows {
		length += offsets[v+1] - offsets[v]
	}
	return length
}

func (c ofSource) write(column, _ int, rows []uint32, buf []byte, out func([]byte) error) error {
	ids := c.src.IDs()
	switch column {
	case labelColumn:
		return targets.Write(c.src, rows, buf, out)
	case markColumn:
		for _, marks := range c.src.Splits() {
			if err := gathered(out, buf, rows, func(v uint32) graph.Mark { return marks[v] }); err != nil {
				return err
			}
		}
		return nil
	case nameColumn:
		return c.names(rows, buf, out)
	}
	switch {
	case ids.Strings != nil:
		offsets := ids.Strings.Offsets
		if err := out(raw([]int64{0})); err != nil {
			return err
		}
		at := int64(0)
		return gathered(out, buf, rows, func(v uint32) int64 {
			at += offsets[v+1] - offsets[v]
			return at
		})
	case ids.Ints != nil:
		return gathered(out, buf, rows, func(v uint32) int64 { return ids.Ints[v] })
	}
	return gathered(out, buf, rows, func(v uint32) int64 { return int64(v) })
}

func (c ofSource) names(rows []uint32, buf []byte, out func([]byte) error) error {
	names := c.src.IDs().Strings
	held := buf[:0]
	for _, v := range rows {
		name := names.Bytes[names.Offsets[v]:names.Offsets[v+1]]
		if len(held)+len(name) > cap(held) {
			if err := out(held); err != nil {
				return err
			}
			held = buf[:0]
		}
		held = append(held, name...) // grows only for a name longer than the buffer
	}
	return out(held)
}
