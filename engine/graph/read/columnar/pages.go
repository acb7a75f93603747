package columnar

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

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
	case parquet.Encodings.RLE:
		if p.physical != parquet.Types.Boolean {
			return refuseEncoding(encoding)
		}
	case parquet.Encodings.ByteStreamSplit:
		if p.column.Kind != Text && p.physical != parquet.Types.Boolean {
			return nil
		}
		return refuseEncoding(encoding)
	case parquet.Encodings.DeltaBinaryPacked:
		if p.column.Kind != Ints || p.physical == parquet.Types.Boolean {
			return refuseEncoding(encoding)
		}
		b, err := p.behindLevels(page)
		if err == nil && len(b) > 0 {
			_, err = readDeltas(b, values)
		}
		return err
	case parquet.Encodings.DeltaLengthByteArray, parquet.Encodings.DeltaByteArray:
		if p.column.Kind != Text {
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
	return Refusal{fmt.Errorf("the values (encoding %d) are written in a way that is not known here: write the file with the plain or the dictionary encoding", encoding)}
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
