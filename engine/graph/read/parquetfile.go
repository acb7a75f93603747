package read

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Parquet's physical types, as it numbers them.
const (
	parquetBoolean = iota
	parquetInt32
	parquetInt64
	parquetInt96
	parquetFloat
	parquetDouble
	parquetBytes
	parquetFixed
)

// A parquetLeaf is a column that holds values.
type parquetLeaf struct {
	field            int // which of the table's columns it belongs to
	physical, length int
	kind             valueKind
	unsigned         bool
	list             bool
	maxDef, maxRep   int
	// repeated is the definition level from which on a list has an element.
	repeated int
}

// A parquetField is a column of the table. leaf is -1 for what is neither a value
// nor a list of values.
type parquetField struct {
	name string
	leaf int
}

// A parquetChunk is one column of a row group.
type parquetChunk struct {
	codec          int64
	values         int64
	offset, length int64
	physical       int64
}

type parquetGroup struct {
	rows   int64
	chunks []parquetChunk
}

// parquetMeta is what a file's footer says. Offsets are within the file, and rows
// add up; how many values there are, only the pages know.
type parquetMeta struct {
	rows   int64
	fields []parquetField
	leaves []parquetLeaf
	groups []parquetGroup
}

// maxFooter bounds a footer, which is read whole.
const maxFooter = 256 << 20

var errNotParquet = errors.New("it does not begin and end as one")

func readParquetMeta(f *os.File, size int64) (*parquetMeta, error) {
	var head, tail [8]byte
	if size < 12 {
		return nil, errNotParquet
	}
	if _, err := f.ReadAt(head[:4], 0); err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	if string(tail[4:]) == "PARE" {
		return nil, errors.New("it is encrypted")
	}
	if string(head[:4]) != "PAR1" || string(tail[4:]) != "PAR1" {
		return nil, errNotParquet
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length > size-12 || length > maxFooter {
		return nil, fmt.Errorf("its footer would have %d bytes", length)
	}
	footer := make([]byte, length)
	if _, err := f.ReadAt(footer, size-8-length); err != nil {
		return nil, err
	}
	return parseParquetMeta(footer, size-8-length)
}

// A schemaElement is a node of the tree of columns, which is listed in pre-order.
type schemaElement struct {
	physical, length, repetition, children int64
	group                                  bool
	name                                   string
	converted                              int64 // -1: none
	text, half, unsigned, number           bool  // by logical type
}

func parseParquetMeta(footer []byte, end int64) (*parquetMeta, error) {
	m := &parquetMeta{}
	var schema []schemaElement
	t := &thrift{b: footer}
	t.structure(func(id int64, kind byte) bool {
		switch {
		case id == 2 && kind == thriftList:
			t.list(func(byte) {
				// Each takes that many bytes at least, as do the parts of a group.
				if schema = append(schema, readSchemaElement(t)); len(schema)*8 > len(footer) {
					t.fail(errThrift)
				}
			})
		case id == 3 && kind == thriftI64:
			m.rows = t.int()
		case id == 4 && kind == thriftList:
			t.list(func(byte) { m.groups = append(m.groups, readParquetGroup(t)) })
		default:
			return false
		}
		return true
	})
	if t.err != nil {
		return nil, t.err
	}
	if err := m.arrange(schema); err != nil {
		return nil, err
	}
	rows := int64(0)
	for _, g := range m.groups {
		if g.rows < 0 || g.rows > m.rows-rows || len(g.chunks) != len(m.leaves) {
			return nil, errThrift
		}
		rows += g.rows
		for i, c := range g.chunks {
			if c.offset < 4 || c.length < 0 || c.offset > end || c.length > end-c.offset || c.physical != int64(m.leaves[i].physical) {
				return nil, errThrift
			}
		}
	}
	// Even ids in a row, as differences and packed, take more than that; what claims
	// more would keep the reader busy for years.
	if rows != m.rows || rows > end<<16 {
		return nil, errThrift
	}
	return m, nil
}

func readSchemaElement(t *thrift) schemaElement {
	e := schemaElement{converted: -1, group: true}
	t.structure(func(id int64, kind byte) bool {
		switch {
		case id == 1 && kind == thriftI32:
			e.physical, e.group = t.int(), false
		case id == 2 && kind == thriftI32:
			e.length = t.int()
		case id == 3 && kind == thriftI32:
			e.repetition = t.int()
		case id == 4 && kind == thriftBytes:
			e.name = strings.ToValidUTF8(string(t.bytes()), "?")
		case id == 5 && kind == thriftI32:
			e.children = t.int()
		case id == 6 && kind == thriftI32:
			e.converted = t.int()
		case id == 10 && kind == thriftStruct:
			readLogicalType(t, &e)
		default:
			return false
		}
		return true
	})
	return e
}

func readLogicalType(t *thrift, e *schemaElement) {
	t.structure(func(id int64, kind byte) bool {
		switch {
		case kind != thriftStruct:
		case id == 1 || id == 4: // string, enum
			e.text = true
		case id == 10: // integer
			e.number = true
			t.structure(func(id int64, kind byte) bool {
				e.unsigned = e.unsigned || id == 2 && kind == thriftFalse
				return false
			})
			return true
		case id == 15:
			e.half = true
		}
		return false
	})
}

func readParquetGroup(t *thrift) parquetGroup {
	var g parquetGroup
	t.structure(func(id int64, kind byte) bool {
		switch {
		case id == 1 && kind == thriftList:
			t.list(func(byte) {
				if g.chunks = append(g.chunks, readParquetChunk(t)); len(g.chunks)*16 > len(t.b) {
					t.fail(errThrift)
				}
			})
		case id == 3 && kind == thriftI64:
			g.rows = t.int()
		default:
			return false
		}
		return true
	})
	return g
}

func readParquetChunk(t *thrift) parquetChunk {
	var c parquetChunk
	dictionary := int64(0)
	t.structure(func(id int64, kind byte) bool {
		if id != 3 || kind != thriftStruct { // the others are where the same stands elsewhere
			return false
		}
		t.structure(func(id int64, kind byte) bool {
			if kind != thriftI32 && kind != thriftI64 {
				return false
			}
			switch id {
			case 1:
				c.physical = t.int()
			case 4:
				c.codec = t.int()
			case 5:
				c.values = t.int()
			case 7:
				c.length = t.int()
			case 9:
				c.offset = t.int()
			case 11:
				dictionary = t.int()
			default:
				return false
			}
			return true
		})
		return true
	})
	if dictionary >= 4 && dictionary < c.offset {
		c.offset = dictionary
	}
	return c
}
