package tabular

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/thrift/lib/go/thrift"
)

// The fields of a footer, and of a node of its schema, that checkFooter looks at.
const (
	footerSchemaField    = 2
	schemaChildrenField  = 5
	maxSchemaDepth       = 32
	maxFooterDepth       = 16
	leastSchemaElement   = 4 // bytes in the footer
	leastFooterStructure = 1
)

// checkFooter looks at the lists and the tree in a footer before the library does,
// which takes memory for as many elements as a list claims to have, and follows a
// schema as deep as it goes.
func checkFooter(footer []byte) error {
	from := &thrift.TMemoryBuffer{Buffer: bytes.NewBuffer(footer)}
	c := footerCheck{from: from, p: thrift.NewTCompactProtocolConf(from, &thrift.TConfiguration{})}
	if err := c.structure(0, true); err != nil {
		return damaged(err)
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
		return errDamaged
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
		return errDamaged // there is none in a footer
	}
	return thrift.Skip(context.Background(), c.p, kind, 1)
}

// list returns what a list holds, if as many elements fit into what is left.
func (c *footerCheck) list(least uint64) (of thrift.TType, n int, err error) {
	of, n, err = c.p.ReadListBegin(context.Background())
	if err == nil && (n < 0 || uint64(n)*least > c.from.RemainingBytes()) {
		err = errClaims
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
		return errDamaged
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
			return errDamaged
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
		return errDamaged
	}
	return nil
}

// checkChunks returns an error unless all column chunks lie within the first end
// bytes of the file and the rows add up.
func (p *parquetFile) checkChunks(end int64) error {
	rows := int64(0)
	for g := range p.meta.RowGroups {
		group := p.meta.RowGroup(g)
		if group.NumRows() < 0 || group.NumRows() > p.meta.NumRows-rows || group.NumColumns() != p.meta.Schema.NumColumns() {
			return errDamaged
		}
		if group.NumRows() == 0 {
			continue // its chunks may begin nowhere, and nobody reads them
		}
		rows += group.NumRows()
		for i := range group.NumColumns() {
			c, err := group.ColumnChunk(i)
			if err != nil {
				return damaged(err)
			}
			from, length := c.DataPageOffset(), c.TotalCompressedSize()
			if d := c.DictionaryPageOffset(); c.HasDictionaryPage() && d > 0 {
				from = min(from, d)
			}
			if from < 4 || from > end || length < 0 || length > end-from || c.NumValues() < 0 || c.Type() != p.meta.Schema.Column(i).PhysicalType() {
				return errDamaged
			}
		}
	}
	// Even consecutive ids, stored as differences and compressed, take more than that. A
	// file that claims more would keep the reader busy for years.
	if rows != p.meta.NumRows || rows > end<<16 {
		return errDamaged
	}
	return nil
}

// checkedPages looks at each page before it is decoded: a decoder takes memory by
// the number of values that a page claims, and by the lengths of runs within it.
type checkedPages struct {
	file.PageReader
	column   *parquetColumn
	physical parquet.Type
	left     int64 // values that the chunk may still have, by the footer
	batch    int   // values of the page that may be decoded in one go
	empty    bool  // the page has no values, which the column reader takes for the end
	err      error
}

func (p *checkedPages) Next() bool {
	p.empty = false
	if p.err != nil || !p.PageReader.Next() {
		return false
	}
	p.err = p.check(p.PageReader.Page())
	return p.err == nil
}

func (p *checkedPages) Err() error {
	if p.err != nil {
		return p.err
	}
	return p.PageReader.Err()
}

func (p *checkedPages) GetDictionaryPage() (*file.DictionaryPage, error) {
	page, err := p.PageReader.GetDictionaryPage()
	if err == nil && page != nil {
		err = p.check(page)
	}
	return page, err
}

func (p *checkedPages) check(page file.Page) error {
	values, b := int64(page.NumValues()), page.Data()
	if page, ok := page.(*file.DictionaryPage); ok {
		size := int64(4) // of text, the length
		switch p.physical {
		case parquet.Types.Int64, parquet.Types.Double:
			size = 8
		case parquet.Types.FixedLenByteArray:
			size = 2
		}
		if page.NumValues() < 0 || values*size > int64(len(b)) {
			return errClaims
		}
		return nil
	}
	if p.left -= values; p.left < 0 {
		return errClaims
	}
	p.batch, p.empty = entriesAhead, values == 0
	switch encoding := parquet.Encoding(page.Encoding()); encoding {
	case parquet.Encodings.Plain, parquet.Encodings.PlainDict, parquet.Encodings.RLEDict:
	case parquet.Encodings.ByteStreamSplit:
		if p.column.kind != textValues {
			return nil
		}
		return refuseEncoding(encoding)
	case parquet.Encodings.DeltaBinaryPacked:
		if p.column.kind != intValues {
			return refuseEncoding(encoding)
		}
		b, err := p.behindLevels(page)
		if err == nil && len(b) > 0 {
			_, err = readDeltas(b, values)
		}
		return err
	case parquet.Encodings.DeltaLengthByteArray, parquet.Encodings.DeltaByteArray:
		if p.column.kind != textValues {
			return refuseEncoding(encoding)
		}
		b, err := p.behindLevels(page)
		if err != nil || len(b) == 0 {
			return err
		}
		if values > maxDeltaTexts {
			return errClaims
		}
		d, err := readDeltas(b, values)
		if err != nil || encoding == parquet.Encodings.DeltaLengthByteArray {
			return err
		}
		if b, err = d.behind(); err != nil {
			return err
		}
		// Each value may be as long as all of the page, as it begins like the one before.
		p.batch = max(1, min(entriesAhead, sharedText/(len(b)+1)))
		_, err = readDeltas(b, values)
		return err
	default:
		return refuseEncoding(encoding)
	}
	return nil
}

// sharedText bounds what values that begin alike are put together in.
const sharedText = 16 << 20

func refuseEncoding(encoding parquet.Encoding) error {
	return refusal{fmt.Errorf("the values (encoding %d) are written in a way that is not known here: write the file with the plain or the dictionary encoding", encoding)}
}

// behindLevels returns the values of a page.
func (p *checkedPages) behindLevels(page file.Page) ([]byte, error) {
	b := page.Data()
	switch page := page.(type) {
	case *file.DataPageV1:
		for _, level := range []int16{p.column.maxRep, p.column.maxDef} {
			if level == 0 {
				continue
			}
			if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
				return nil, errValues
			}
			b = b[4+binary.LittleEndian.Uint32(b):]
		}
	case *file.DataPageV2:
		levels := int64(page.RepetitionLevelByteLen()) + int64(page.DefinitionLevelByteLen())
		if levels < 0 || levels > int64(len(b)) {
			return nil, errValues
		}
		b = b[levels:]
	}
	return b, nil
}

// deltas are integers written as differences, in blocks of a few miniblocks.
type deltas struct {
	b              []byte // behind the head
	perMini, minis int
	count          uint64
}

// readDeltas reads the head of integers that are written as differences, of a page
// that has most values.
func readDeltas(b []byte, most int64) (*deltas, error) {
	var head [4]uint64 // values in a block, miniblocks in it, values, the first one
	for i := range head {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errValues
		}
		head[i], b = v, b[n:]
	}
	size, minis, count := head[0], head[1], head[2]
	if minis == 0 || minis > size || size%minis != 0 || size/minis > maxMiniblock || size/minis%8 != 0 || minis > maxMiniblock || count > uint64(most) {
		return nil, errClaims
	}
	return &deltas{b: b, perMini: int(size / minis), minis: int(minis), count: count}, nil
}

// behind returns what follows the integers.
func (d *deltas) behind() ([]byte, error) {
	b := d.b
	for left := int64(d.count) - 1; left > 0; {
		_, n := binary.Uvarint(b)
		if n <= 0 || len(b)-n < d.minis {
			return nil, errValues
		}
		widths := b[n : n+d.minis]
		b = b[n+d.minis:]
		for _, width := range widths {
			if left <= 0 {
				break
			}
			size := d.perMini * int(width) / 8
			if width > 64 || size > len(b) {
				return nil, errValues
			}
			b = b[size:]
			left -= int64(d.perMini)
		}
	}
	return b, nil
}
