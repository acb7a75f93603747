// Package footers checks the footers of Parquet and Arrow files before a library acts on
// what they claim.
package footers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/thrift/lib/go/thrift"
	flatbuffers "github.com/google/flatbuffers/go"
)

// MaxFooter bounds a footer, in bytes.
const MaxFooter = 64 << 20

// What a footer may be refused for.
var (
	ErrDamaged  = errors.New("its contents are out of order")
	ErrClaims   = errors.New("it claims to hold far more than a file of its size can")
	errNotArrow = errors.New("it does not begin and end as an Arrow file; streams and the first version of Feather are not known")
)

// Short returns the error for a file that is too short to be one of its kind.
func Short(size int64) error {
	if size == 0 {
		return errors.New("it is empty")
	}
	return fmt.Errorf("it has only %d bytes", size)
}

// Damaged wraps an error of the library. An io.EOF in it would be taken for the end of
// the rows.
func Damaged(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// The fields of a footer, and of a node of its schema, that CheckParquet looks at.
const (
	footerSchemaField    = 2
	schemaChildrenField  = 5
	maxSchemaDepth       = 32
	maxFooterDepth       = 16
	leastSchemaElement   = 4 // bytes in the footer
	leastFooterStructure = 1
)

// CheckParquet looks at the lists and the tree in a footer before the library does,
// which takes memory for as many elements as a list claims to have, and follows a
// schema as deep as it goes.
func CheckParquet(footer []byte) error {
	from := &thrift.TMemoryBuffer{Buffer: bytes.NewBuffer(footer)}
	c := footerCheck{from: from, p: thrift.NewTCompactProtocolConf(from, &thrift.TConfiguration{})}
	if err := c.structure(0, true); err != nil {
		return Damaged(err)
	}
	return c.tree()
}

// footerCheck goes through a footer without keeping it.
type footerCheck struct {
	from     *thrift.TMemoryBuffer
	p        *thrift.TCompactProtocol
	children []int32 // of each node of the schema, in pre-order
}

// structure goes through one struct; root says that it is the footer itself.
func (c *footerCheck) structure(depth int, root bool) error {
	ctx := context.Background()
	if depth > maxFooterDepth {
		return ErrDamaged
	}
	if _, err := c.p.ReadStructBegin(ctx); err != nil {
		return err
	}
	for {
		_, kind, id, err := c.p.ReadFieldBegin(ctx)
		if err != nil {
			return err
		}
		if kind == thrift.STOP {
			return c.p.ReadStructEnd(ctx)
		}
		if root && id == footerSchemaField && kind == thrift.LIST {
			err = c.schema(depth)
		} else {
			err = c.value(kind, depth)
		}
		if err != nil {
			return err
		}
	}
}

func (c *footerCheck) value(kind thrift.TType, depth int) error {
	if depth > maxFooterDepth { // lists in lists take one byte each, and the stack is not endless
		return ErrDamaged
	}
	switch kind {
	case thrift.STRUCT:
		return c.structure(depth+1, false)
	case thrift.LIST, thrift.SET:
		of, n, err := c.list(leastFooterStructure)
		for ; err == nil && n > 0; n-- {
			err = c.value(of, depth+1)
		}
		return err
	case thrift.MAP:
		return ErrDamaged // there is none in a footer
	}
	return thrift.Skip(context.Background(), c.p, kind, 1)
}

// list returns what a list holds, if as many elements fit into what is left.
func (c *footerCheck) list(least uint64) (of thrift.TType, n int, err error) {
	of, n, err = c.p.ReadListBegin(context.Background())
	if err == nil && (n < 0 || uint64(n)*least > c.from.RemainingBytes()) {
		err = ErrClaims
	}
	return of, n, err
}

// schema goes through the nodes of the schema and records how many children they have.
func (c *footerCheck) schema(depth int) error {
	ctx := context.Background()
	of, n, err := c.list(leastSchemaElement)
	if err != nil {
		return err
	}
	if of != thrift.STRUCT || c.children != nil {
		return ErrDamaged
	}
	c.children = make([]int32, n)
	for i := range c.children {
		if _, err := c.p.ReadStructBegin(ctx); err != nil {
			return err
		}
		for {
			_, kind, id, err := c.p.ReadFieldBegin(ctx)
			if err != nil {
				return err
			}
			if kind == thrift.STOP {
				break
			}
			if id == schemaChildrenField && kind == thrift.I32 {
				c.children[i], err = c.p.ReadI32(ctx)
			} else {
				err = c.value(kind, depth+1)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// tree returns an error unless the nodes of the schema make one tree that is not
// too deep.
func (c *footerCheck) tree() error {
	var open []int32 // children still to come, of each node from the root down
	for i, n := range c.children {
		if i > 0 && len(open) == 0 || n < 0 || int(n) > len(c.children) || len(open) > maxSchemaDepth {
			return ErrDamaged
		}
		if len(open) > 0 {
			open[len(open)-1]--
		}
		open = append(open, n)
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 || len(c.children) == 0 {
		return ErrDamaged
	}
	return nil
}

// Places in the tables of Arrow's footer and messages: a field's number, doubled, plus 4.
const (
	footerSchema       = 6
	footerDictionaries = 8
	footerBatches      = 10
	schemaFields       = 6
	schemaMetadata     = 8
	fieldName          = 4
	fieldTypeKind      = 8
	fieldType          = 10
	fieldChildren      = 14
	fieldMetadata      = 16
	timestampZone      = 6
	unionIDs           = 6
	pairKey            = 4
	pairValue          = 6
	messageKind        = 6
	messageHeader      = 8
	messageMetadata    = 12
	dictionaryBatch    = 6
	batchBuffers       = 12 // how many each column of text views has
)

// What a table may be, where there is a choice.
const (
	kindTimestamp  = 10
	kindUnion      = 14
	kindDictionary = 2
	kindBatch      = 3
)

// A Block is where a message with a batch lies in a file of Arrow, and how long its description is.
type Block struct {
	Offset int64
	Length int32
}

// ordered turns a panic of arrowCheck or flatbuffers into an error; it is deferred.
func ordered(err *error) {
	switch is := recover().(type) {
	case nil:
	case error:
		*err = Damaged(is)
	default:
		*err = fmt.Errorf("%w: %v", ErrDamaged, is)
	}
}

// CheckArrow looks at the lists in a footer and in the descriptions of dictionaries before the
// library does, which takes memory for as many elements as a list claims to have. It returns where
// the batches of rows are, each of which CheckMessage has to see before the library reads it.
func CheckArrow(f io.ReaderAt, size int64) (batches []Block, err error) {
	defer ordered(&err)
	const magic = "ARROW1"
	var head, tail [10]byte
	if size < 32 {
		return nil, Short(size)
	}
	if _, err := f.ReadAt(head[:6], 0); err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(tail[:], size-10); err != nil {
		return nil, err
	}
	if string(head[:6]) != magic || string(tail[4:]) != magic {
		return nil, errNotArrow
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length < 8 || length > size-16 || length > MaxFooter {
		return nil, ErrDamaged
	}
	b := make([]byte, length)
	if _, err := f.ReadAt(b, size-10-length); err != nil {
		return nil, err
	}
	footer := flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}
	c := newArrowCheck(b)
	dictionaries, batches := c.blocks(footer, footerDictionaries), c.blocks(footer, footerBatches)
	c.schema(child(footer, footerSchema))
	read := int64(0)
	for _, d := range dictionaries {
		if read += int64(d.Length); read > size { // some lie in the same bytes
			return nil, ErrClaims
		}
		if err := CheckMessage(f, size, d); err != nil {
			return nil, err
		}
	}
	return batches, nil
}

// CheckMessage looks at the lists in the description of a batch.
func CheckMessage(f io.ReaderAt, size int64, block Block) (err error) {
	defer ordered(&err)
	length := int64(block.Length)
	if block.Offset < 0 || length < 16 || length > MaxFooter || block.Offset > size-length {
		return ErrDamaged
	}
	b := make([]byte, length)
	if _, err := f.ReadAt(b, block.Offset); err != nil {
		return err
	}
	prefix := 4 // its length; later versions of the format have a mark before that
	if binary.LittleEndian.Uint32(b) == 1<<32-1 {
		prefix = 8
	}
	b = b[prefix:]
	message := flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}
	c := newArrowCheck(b)
	c.list(message, messageMetadata, 4, c.pair)
	batch := child(message, messageHeader)
	switch kindOf(message, messageKind) {
	case kindDictionary:
		batch = child(batch, dictionaryBatch)
	case kindBatch:
	default:
		return ErrDamaged
	}
	c.list(batch, batchBuffers, 8, nil)
	if at := flatbuffers.UOffsetT(batch.Offset(batchBuffers)); at != 0 {
		const least = 16 // bytes of what is said of a buffer
		left := int64(len(b)) / least
		for i := range batch.VectorLen(at) {
			n := batch.GetInt64(batch.Vector(at) + flatbuffers.UOffsetT(i*8))
			if n < 0 || n > left {
				return ErrClaims
			}
			left -= n
		}
	}
	return nil
}

// child returns a table in a table, which must be there.
func child(t flatbuffers.Table, place flatbuffers.VOffsetT) flatbuffers.Table {
	at := flatbuffers.UOffsetT(t.Offset(place))
	if at == 0 {
		panic(ErrDamaged)
	}
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at + t.Pos)}
}

// kindOf returns which of several tables another is; 0: none.
func kindOf(t flatbuffers.Table, place flatbuffers.VOffsetT) byte {
	if at := flatbuffers.UOffsetT(t.Offset(place)); at != 0 {
		return t.GetByte(at + t.Pos)
	}
	return 0
}

// arrowCheck panics, for ordered to catch, where lists have more elements than there are bytes for.
// left makes several lists in the same bytes impossible too, and text bounds how often the same
// text can stand for others, since the library copies each.
type arrowCheck struct {
	left, text int64
	depth      int
}

func newArrowCheck(b []byte) *arrowCheck {
	const copies = 16
	return &arrowCheck{left: int64(len(b)), text: copies * int64(len(b))}
}

// blocks returns a list of blocks.
func (c *arrowCheck) blocks(t flatbuffers.Table, place flatbuffers.VOffsetT) (all []Block) {
	const size = 24
	c.list(t, place, size, nil)
	if at := flatbuffers.UOffsetT(t.Offset(place)); at != 0 {
		for i := range t.VectorLen(at) {
			one := t.Vector(at) + flatbuffers.UOffsetT(i*size)
			all = append(all, Block{Offset: t.GetInt64(one), Length: t.GetInt32(one + 8)})
		}
	}
	return all
}

// copied counts a text.
func (c *arrowCheck) copied(t flatbuffers.Table, place flatbuffers.VOffsetT) {
	if at := flatbuffers.UOffsetT(t.Offset(place)); at != 0 {
		if c.text -= int64(len(t.ByteVector(at + t.Pos))); c.text < 0 {
			panic(ErrClaims)
		}
	}
}

// pair counts a key and its value.
func (c *arrowCheck) pair(t flatbuffers.Table) {
	c.copied(t, pairKey)
	c.copied(t, pairValue)
}

// list checks one list and each table in it.
func (c *arrowCheck) list(t flatbuffers.Table, place flatbuffers.VOffsetT, size int64, each func(flatbuffers.Table)) {
	at := flatbuffers.UOffsetT(t.Offset(place))
	if at == 0 {
		return
	}
	n, first := t.VectorLen(at), t.Vector(at)
	if c.left -= int64(n) * size; n < 0 || c.left < 0 {
		panic(ErrClaims)
	}
	for i := range n {
		if each != nil {
			each(flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(first + flatbuffers.UOffsetT(i*4))})
		}
	}
}

func (c *arrowCheck) schema(t flatbuffers.Table) {
	c.list(t, schemaFields, 4, c.field)
	c.list(t, schemaMetadata, 4, c.pair)
}

func (c *arrowCheck) field(t flatbuffers.Table) {
	if c.depth++; c.depth > 32 {
		panic(ErrDamaged)
	}
	c.copied(t, fieldName)
	switch kindOf(t, fieldTypeKind) {
	case kindTimestamp:
		c.copied(child(t, fieldType), timestampZone)
	case kindUnion:
		c.list(child(t, fieldType), unionIDs, 4, nil)
	}
	c.list(t, fieldChildren, 4, c.field)
	c.list(t, fieldMetadata, 4, c.pair)
	c.depth--
}
