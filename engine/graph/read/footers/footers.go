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

// CheckArrow looks at the lists in a footer before the library does, which
// takes memory for as many elements as a list claims to have.
func CheckArrow(f io.ReaderAt, size int64) (err error) {
	defer func() { // arrowCheck and flatbuffers panic
		switch is := recover().(type) {
		case nil:
		case error:
			err = Damaged(is)
		default:
			err = fmt.Errorf("%w: %v", ErrDamaged, is)
		}
	}()
	const magic = "ARROW1"
	var head, tail [10]byte
	if size < 32 {
		return Short(size)
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
	if length < 8 || length > size-16 || length > MaxFooter {
		return ErrDamaged
	}
	b := make([]byte, length)
	if _, err := f.ReadAt(b, size-10-length); err != nil {
		return err
	}
	footer := flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}
	c := arrowCheck{left: length}
	c.list(footer, footerDictionaries, 24, nil)
	c.list(footer, footerBatches, 24, nil)
	schema := flatbuffers.UOffsetT(footer.Offset(footerSchema))
	if schema == 0 {
		return ErrDamaged
	}
	c.schema(flatbuffers.Table{Bytes: b, Pos: footer.Indirect(schema + footer.Pos)})
	return nil
}

// arrowCheck panics, for CheckArrow to catch, where lists have more elements than the
// footer has bytes for. left makes several lists in the same bytes impossible too.
type arrowCheck struct {
	left  int64
	depth int
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
	c.list(t, schemaMetadata, 4, nil)
}

func (c *arrowCheck) field(t flatbuffers.Table) {
	if c.depth++; c.depth > 32 {
		panic(ErrDamaged)
	}
	c.list(t, fieldChildren, 4, c.field)
	c.list(t, fieldMetadata, 4, nil)
	c.depth--
}
