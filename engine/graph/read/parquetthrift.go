package read

import (
	"encoding/binary"
	"errors"
)

// thrift reads Thrift's compact protocol, in which Parquet's footer and page headers
// are written. Nothing is allocated by what it reads: bytes are slices of b, and a
// list can't be longer than the bytes that are left. After an error all is zero.
type thrift struct {
	b     []byte
	at    int
	depth int
	err   error
}

// The wire types that are told apart here.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBytes  = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

var errThrift = errors.New("metadata out of order")

// errThriftEnd says that more bytes could make sense of it.
var errThriftEnd = errors.New("metadata cut short")

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.at = len(t.b)
}

func (t *thrift) byte() byte {
	if t.at >= len(t.b) {
		t.fail(errThriftEnd)
		return 0
	}
	t.at++
	return t.b[t.at-1]
}

func (t *thrift) uvarint() uint64 {
	v, n := binary.Uvarint(t.b[t.at:])
	switch {
	case n == 0:
		t.fail(errThriftEnd)
		return 0
	case n < 0:
		t.fail(errThrift)
		return 0
	}
	t.at += n
	return v
}

// int is an integer of 16, 32 or 64 bits.
func (t *thrift) int() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (t *thrift) bytes() []byte {
	n := t.uvarint()
	if n > uint64(len(t.b)-t.at) {
		t.fail(errThriftEnd)
		return nil
	}
	t.at += int(n)
	return t.b[t.at-int(n) : t.at]
}

// structure calls field for each field, which reads the value and returns true, or
// leaves it to be skipped.
func (t *thrift) structure(field func(id int64, kind byte) bool) {
	if t.depth++; t.depth > 32 {
		t.fail(errThrift)
	}
	id := int64(0)
	for t.err == nil {
		head := t.byte()
		if head == 0 {
			break
		}
		if delta := head >> 4; delta != 0 {
			id += int64(delta)
		} else {
			id = t.int()
		}
		if kind := head & 15; t.err == nil && !field(id, kind) {
			t.skip(kind)
		}
	}
	t.depth--
}

// list calls element for each element.
func (t *thrift) list(element func(kind byte)) {
	head := t.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	if n > uint64(len(t.b)-t.at) { // each has a byte at least
		t.fail(errThriftEnd)
	}
	for ; n > 0 && t.err == nil; n-- {
		element(head & 15)
	}
}

func (t *thrift) skip(kind byte) {
	if t.depth > 32 {
		t.fail(errThrift)
	}
	switch {
	case kind == thriftTrue || kind == thriftFalse: // the field's head says it
	case kind == thriftByte:
		t.byte()
	case kind > thriftByte && kind <= thriftI64:
		t.uvarint()
	case kind == thriftDouble:
		for range 8 {
			t.byte()
		}
	case kind == thriftBytes:
		t.bytes()
	case kind == thriftList || kind == thriftSet:
		t.depth++
		t.list(t.skipElement)
		t.depth--
	case kind == thriftMap:
		n := t.uvarint()
		if n == 0 {
			return
		}
		kinds := t.byte()
		t.depth++
		for ; n > 0 && t.err == nil; n-- {
			t.skipElement(kinds >> 4)
			t.skipElement(kinds & 15)
		}
		t.depth--
	case kind == thriftStruct:
		t.structure(func(int64, byte) bool { return false })
	default:
		t.fail(errThrift)
	}
}

// skipElement skips what is in a list or map, where truth has a byte of its own.
func (t *thrift) skipElement(kind byte) {
	if kind == thriftTrue || kind == thriftFalse {
		t.byte()
		return
	}
	t.skip(kind)
}
