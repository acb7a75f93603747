package read

import "encoding/binary"

// deltas reads integers that are written as differences, in blocks of a few
// miniblocks, of which it holds one.
type deltas struct {
	b              []byte
	perMini, minis int
	left           uint64 // values still to come
	value, least   int64
	widths         []byte   // of the miniblocks still to come
	mini           []uint64 // what is left of buffer
	buffer         []uint64
	first          bool
}

// maxBlock bounds a miniblock; writers have 32 or 64 values in it.
const maxBlock = 1 << 16

// newDeltas reads the head of b. A page that has most values can't have more of them.
func newDeltas(b []byte, most int64) (*deltas, error) {
	d := &deltas{b: b, first: true}
	size, minis, count := d.uvarint(), d.uvarint(), d.uvarint()
	first := d.uvarint()
	if d.b == nil || count > uint64(most) || minis == 0 || size > maxBlock || minis > size || size%minis != 0 || (size/minis)%8 != 0 {
		return nil, errThrift
	}
	d.perMini, d.minis, d.left = int(size/minis), int(minis), count
	d.value = unzigzag(first)
	return d, nil
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// uvarint leaves b nil when there is none.
func (d *deltas) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *deltas) next() (int64, error) {
	if d.left == 0 {
		return 0, errValues
	}
	d.left--
	if d.first {
		d.first = false
		return d.value, nil
	}
	if len(d.mini) == 0 {
		if err := d.miniblock(); err != nil {
			return 0, err
		}
	}
	d.value += d.least + int64(d.mini[0])
	d.mini = d.mini[1:]
	return d.value, nil
}

func (d *deltas) miniblock() error {
	if len(d.widths) == 0 {
		d.least = unzigzag(d.uvarint())
		if len(d.b) < d.minis {
			return errValues
		}
		d.widths, d.b = d.b[:d.minis], d.b[d.minis:]
	}
	width := int(d.widths[0])
	d.widths = d.widths[1:]
	size := d.perMini * width / 8
	if width > 64 || len(d.b) < size {
		return errValues
	}
	if d.buffer == nil {
		d.buffer = make([]uint64, d.perMini)
	}
	d.mini = d.buffer
	for i := range d.mini {
		d.mini[i] = bitsAt(d.b[:size], i*width, width)
	}
	d.b = d.b[size:]
	return nil
}

// bitsAt reads up to 64 bits, the lowest first.
func bitsAt(b []byte, at, width int) uint64 {
	var v uint64
	for got := 0; got < width; {
		take := min(8-(at+got)%8, width-got)
		v |= uint64(b[(at+got)/8]>>((at+got)%8)&(1<<take-1)) << got
		got += take
	}
	return v
}

// deltaInts is a page of integers written as differences.
type deltaInts struct {
	leaf *parquetLeaf
	*deltas
}

func (d *deltaInts) read(c *columnValues, n int) error {
	for range n {
		v, err := d.next()
		if err != nil {
			return err
		}
		d.leaf.addInt(c, v)
	}
	return nil
}

// deltaText is a page of strings whose lengths, and those of what each shares with
// the one before it, are written as differences.
type deltaText struct {
	shared  *deltas // nil: they share nothing
	lengths *deltas
	b       []byte
	last    []byte
}

func newDeltaText(b []byte, most int64, sharing bool) (*deltaText, error) {
	t := &deltaText{}
	var err error
	if sharing {
		if t.shared, b, err = passDeltas(b, most); err != nil {
			return nil, err
		}
	}
	t.lengths, t.b, err = passDeltas(b, most)
	return t, err
}

// passDeltas returns a reader at the beginning of b and what follows the values.
func passDeltas(b []byte, most int64) (*deltas, []byte, error) {
	d, err := newDeltas(b, most)
	if err != nil {
		return nil, nil, err
	}
	end := *d
	for end.left > 0 {
		if _, err := end.next(); err != nil {
			return nil, nil, err
		}
	}
	return d, end.b, nil
}

func (t *deltaText) read(c *columnValues, n int) error {
	for range n {
		length, err := t.lengths.next()
		if err != nil {
			return err
		}
		shared := int64(0)
		if t.shared != nil {
			if shared, err = t.shared.next(); err != nil {
				return err
			}
		}
		if length < 0 || length > int64(len(t.b)) || shared < 0 || shared > int64(len(t.last)) || shared+length > maxLine {
			return errValues
		}
		t.last = append(t.last[:shared], t.b[:length]...)
		t.b = t.b[length:]
		c.text.addText(t.last)
	}
	return nil
}

// scattered is a page of numbers whose first bytes lie together, then their second
// ones and so on.
type scattered struct {
	leaf  *parquetLeaf
	b     []byte
	at, n int
}

func newScattered(leaf *parquetLeaf, b []byte) (*scattered, error) {
	size := leaf.size()
	if size == 0 || len(b)%size != 0 {
		return nil, errThrift
	}
	return &scattered{leaf: leaf, b: b, n: len(b) / size}, nil
}

func (s *scattered) read(c *columnValues, n int) error {
	if n > s.n-s.at {
		return errValues
	}
	var word [8]byte
	for range n {
		for i := range s.leaf.size() {
			word[i] = s.b[i*s.n+s.at]
		}
		s.leaf.add(c, word[:])
		s.at++
	}
	return nil
}
