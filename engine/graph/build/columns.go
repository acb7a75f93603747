package build

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// gathered writes one element for each row, through a buffer.
func gathered[T fixed](out *output, buf []byte, rows []uint32, of func(v uint32) T) error {
	room := cast[T](buf)
	for len(rows) > 0 {
		n := min(len(rows), len(room))
		for i, v := range rows[:n] {
			room[i] = of(v)
		}
		if err := out.next(raw(room[:n])); err != nil {
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

// offsets writes the offsets of sparse features and of names, or numeric ids themselves.
func (w *shardWriter) offsets(out *output, rows []uint32, first uint32) error {
	b := w.b
	if b.sparseAt != nil {
		at := b.sparseAt[first : int(first)+len(rows)+1]
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
	}
	ids := b.src.IDs()
	switch {
	case ids.Strings != nil:
		offsets := ids.Strings.Offsets
		if err := out.next(raw([]int64{0})); err != nil {
			return err
		}
		at := int64(0)
		return gathered(out, w.copying, rows, func(v uint32) int64 {
			at += offsets[v+1] - offsets[v]
			return at
		})
	case ids.Ints != nil:
		return gathered(out, w.copying, rows, func(v uint32) int64 { return ids.Ints[v] })
	}
	return gathered(out, w.copying, rows, func(v uint32) int64 { return int64(v) })
}

// copyEdges writes the shard's merged edges.
func (w *shardWriter) copyEdges(out *output, edges uint64) error {
	if w.whole != nil {
		if err := out.next(raw(w.whole)); err != nil {
			return err
		}
		return out.next(raw(w.heavy))
	}
	if err := w.copyFrom(w.merged, out, edges*4); err != nil || !w.b.meta.Weighted {
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

// tail writes what follows a shard's features: marks and names.
func (b *builder) tail(out *output, shard int, buf []byte) error {
	rows := b.order[b.numbers.first[shard]:b.numbers.first[shard+1]]
	if splits := b.src.Splits(); len(splits) > 0 {
		out.at = out.place["splits"]
		for _, marks := range splits {
			if err := gathered(out, buf, rows, func(v uint32) graph.Mark { return marks[v] }); err != nil {
				return err
			}
		}
	}
	names := b.src.IDs().Strings
	if names == nil {
		return nil
	}
	out.at = out.place["original_ids.bytes"]
	held := buf[:0]
	for _, v := range rows {
		name := names.Bytes[names.Offsets[v]:names.Offsets[v+1]]
		if len(held)+len(name) > cap(held) {
			if err := out.next(held); err != nil {
				return err
			}
			held = buf[:0]
		}
		held = append(held, name...) // grows only for a name longer than the buffer
	}
	return out.next(held)
}
