package read

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// entriesAhead is how many entries of a list column are looked at in one go.
const entriesAhead = 4096

// A parquetColumn reads the rows of one column chunk, page by page.
type parquetColumn struct {
	leaf       *parquetLeaf
	pages      *pages
	most       int64 // values that the chunk may have, by the footer
	left       int64 // entries of the page: values, nulls and empty lists
	rep, def   *hybrid
	values     valueReader
	dictionary *columnValues
	reps, defs []uint32 // entries looked at and not yet taken
	levels     [2][]uint32
}

// read appends the next rows.
func (p *parquetColumn) read(c *columnValues, rows int) error {
	if p.leaf.list {
		return p.readLists(c, rows)
	}
	for rows > 0 {
		if p.left == 0 {
			if err := p.page(); err != nil {
				return short(err)
			}
			continue
		}
		n := int(min(int64(rows), p.left))
		if err := p.readValues(c, n); err != nil {
			return err
		}
		rows -= n
		p.left -= int64(n)
	}
	return nil
}

// short makes of an end what it is where more should be.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return errValues
	}
	return err
}

func (p *parquetColumn) readValues(c *columnValues, n int) error {
	if p.leaf.maxDef == 0 {
		return p.values.read(c, n)
	}
	var err error
	if p.levels[0], err = p.def.read(p.levels[0][:0], n); err != nil {
		return err
	}
	for defs := p.levels[0]; len(defs) > 0; {
		run := 0
		for run < len(defs) && int(defs[run]) == p.leaf.maxDef {
			run++
		}
		if run > 0 {
			if err := p.values.read(c, run); err != nil {
				return err
			}
		}
		for ; run < len(defs) && int(defs[run]) != p.leaf.maxDef; run++ {
			c.addNull()
		}
		defs = defs[run:]
	}
	return nil
}

// readLists reads whole lists: where one ends, only the next one's beginning says.
func (p *parquetColumn) readLists(c *columnValues, rows int) error {
	started := 0
	for {
		if len(p.reps) == 0 {
			if err := p.look(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
		}
		values, at := 0, 0
		for ; at < len(p.reps); at++ {
			if p.reps[at] == 0 {
				if started == rows {
					break
				}
				started++
				c.lengths = append(c.lengths, 0)
			} else if started == 0 {
				return errThrift
			}
			switch def := int(p.defs[at]); {
			case def == p.leaf.maxDef:
				values++
				c.lengths[len(c.lengths)-1]++
			case def >= p.leaf.repeated:
				c.addNullIn(len(c.lengths) - 1)
			}
		}
		if values > 0 {
			if err := p.values.read(c, values); err != nil {
				return err
			}
		}
		stop := at < len(p.reps)
		p.reps, p.defs = p.reps[at:], p.defs[at:]
		if stop {
			break
		}
	}
	if started != rows {
		return errValues
	}
	return nil
}

// look decodes the levels of the next entries of a list column.
func (p *parquetColumn) look() error {
	for p.left == 0 {
		if err := p.page(); err != nil {
			return err
		}
	}
	n := int(min(p.left, entriesAhead))
	p.left -= int64(n)
	var err error
	if p.levels[0], err = p.rep.read(p.levels[0][:0], n); err != nil {
		return err
	}
	if p.levels[1], err = p.def.read(p.levels[1][:0], n); err != nil {
		return err
	}
	p.reps, p.defs = p.levels[0], p.levels[1]
	return nil
}

// page goes to the next page with values.
func (p *parquetColumn) page() error {
	h, b, err := p.pages.next()
	if err != nil {
		return err
	}
	if h.values > p.most {
		return errThrift
	}
	switch h.kind {
	case 2:
		p.dictionary = &columnValues{kind: p.leaf.kind}
		return (&plain{leaf: p.leaf, b: b}).read(p.dictionary, int(h.values))
	case 0, 3:
	default:
		return nil // an index
	}
	p.left = h.values
	rep, def := b[:0], b[:0]
	if h.version2 {
		if int64(len(b)) < h.repLength+h.defLength {
			return errThrift
		}
		rep, def, b = b[:h.repLength], b[h.repLength:h.repLength+h.defLength], b[h.repLength+h.defLength:]
	} else {
		if h.defEncoding == 4 && p.leaf.maxDef > 0 {
			return fmt.Errorf("the nesting (encoding %d) %w: write the file with a newer program", h.defEncoding, errForeign)
		}
		if p.leaf.maxRep > 0 {
			if rep, b, err = cutLevels(b); err != nil {
				return err
			}
		}
		if p.leaf.maxDef > 0 {
			if def, b, err = cutLevels(b); err != nil {
				return err
			}
		}
	}
	if p.rep, err = newHybrid(rep, levelWidth(p.leaf.maxRep)); err != nil {
		return err
	}
	if p.def, err = newHybrid(def, levelWidth(p.leaf.maxDef)); err != nil {
		return err
	}
	p.values, err = p.reader(h.encoding, b, h.values)
	return err
}

func cutLevels(b []byte) (levels, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errValues
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if n > uint64(len(b)-4) {
		return nil, nil, errValues
	}
	return b[4 : 4+n], b[4+n:], nil
}

// reader is how the values of a page with this encoding are read.
func (p *parquetColumn) reader(encoding int64, b []byte, most int64) (valueReader, error) {
	number := p.leaf.kind == intValues || p.leaf.kind == floatValues
	switch {
	case encoding == 0:
		return &plain{leaf: p.leaf, b: b}, nil
	case encoding == 2 || encoding == 8:
		if p.dictionary == nil {
			return nil, fmt.Errorf("%w: a dictionary is missing", errThrift)
		}
		if len(b) == 0 { // all are null
			return &indexed{places: &hybrid{}, dictionary: p.dictionary}, nil
		}
		places, err := newHybrid(b[1:], uint(b[0]))
		return &indexed{places: places, dictionary: p.dictionary}, err
	case encoding == 5 && p.leaf.kind == intValues:
		if len(b) == 0 {
			return &plain{leaf: p.leaf}, nil
		}
		d, err := newDeltas(b, most)
		return &deltaInts{leaf: p.leaf, deltas: d}, err
	case (encoding == 6 || encoding == 7) && p.leaf.kind == textValues:
		if len(b) == 0 {
			return &plain{leaf: p.leaf}, nil
		}
		return newDeltaText(b, most, encoding == 7)
	case encoding == 9 && number:
		return newScattered(p.leaf, b)
	}
	return nil, fmt.Errorf("the values (encoding %d) %w: write the file with the plain or the dictionary encoding", encoding, errForeign)
}
