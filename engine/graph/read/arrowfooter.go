package read

import (
	"encoding/binary"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Places in the tables of Arrow's footer: a field's number, doubled, plus 4.
const (
	footerSchema       = 6
	footerDictionaries = 8
	footerBatches      = 10
	schemaFields       = 6
	schemaMetadata     = 8
	fieldChildren      = 14
	fieldMetadata      = 16
)

// checkArrowFooter looks at the lists in a footer before the library does, which
// takes memory for as many elements as a list claims to have.
func checkArrowFooter(f io.ReaderAt, size int64) (err error) {
	defer orderly(&err)
	const magic = "ARROW1"
	var head, tail [10]byte
	if size < 32 {
		return errNotArrow
	}
	if _, err := f.ReadAt(head[:6], 0); err != nil {
		return err
	}
	if _, err := f.ReadAt(tail[:], size-10); err != nil {
		return err
	}
	if string(head[:6]) != magic || string(tail[4:]) != magic {
		return errNotArrow
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length < 8 || length > size-16 || length > maxFooter {
		return errArrow
	}
	b := make([]byte, length)
	if _, err := f.ReadAt(b, size-10-length); err != nil {
		return err
	}
	footer := flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}
	c := footerCheck{left: length}
	c.list(footer, footerDictionaries, 24, nil)
	c.list(footer, footerBatches, 24, nil)
	schema := flatbuffers.UOffsetT(footer.Offset(footerSchema))
	if schema == 0 {
		return errArrow
	}
	c.schema(flatbuffers.Table{Bytes: b, Pos: footer.Indirect(schema + footer.Pos)})
	return nil
}

// footerCheck panics, for orderly to catch, where lists have more elements than the
// footer has bytes for. left makes several lists in the same bytes impossible too.
type footerCheck struct {
	left  int64
	depth int
}

// list checks one list and each table in it.
func (c *footerCheck) list(t flatbuffers.Table, place flatbuffers.VOffsetT, size int64, each func(flatbuffers.Table)) {
	at := flatbuffers.UOffsetT(t.Offset(place))
	if at == 0 {
		return
	}
	n, first := t.VectorLen(at), t.Vector(at)
	if c.left -= int64(n) * size; n < 0 || c.left < 0 {
		panic(errArrowMemory)
	}
	for i := range n {
		if each != nil {
			each(flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(first + flatbuffers.UOffsetT(i*4))})
		}
	}
}

func (c *footerCheck) schema(t flatbuffers.Table) {
	c.list(t, schemaFields, 4, c.field)
	c.list(t, schemaMetadata, 4, nil)
}

func (c *footerCheck) field(t flatbuffers.Table) {
	if c.depth++; c.depth > 32 {
		panic(errArrow)
	}
	c.list(t, fieldChildren, 4, c.field)
	c.list(t, fieldMetadata, 4, nil)
	c.depth--
}
