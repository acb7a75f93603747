package read

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Bounds of what a page may claim. Writers aim at pages of a megabyte; some make one
// page of a whole row group.
const (
	maxPage       = 128 << 20
	pageExtra     = 1 << 20 // beside the values
	widestValue   = 64      // bytes on average; only text is wider than 8
	maxPageHeader = 1 << 20 // statistics may lie in it
)

// A pageHeader is what stands before each page.
type pageHeader struct {
	kind                 int64 // 0: data, 2: dictionary, 3: data of version 2
	unpacked, packed     int64
	values, encoding     int64
	defLength, repLength int64 // version 2
	plain                bool  // version 2: not packed
	version2             bool
	defEncoding          int64
}

// pages reads the pages of one column chunk.
type pages struct {
	r     *bufio.Reader
	left  int64 // bytes of the chunk
	codec int64
	zstd  *zstd.Decoder
	raw   []byte
	most  int64 // values that are left in the chunk, by the footer
}

func newPages(f io.ReaderAt, c *parquetChunk) *pages {
	return &pages{r: bufio.NewReaderSize(io.NewSectionReader(f, c.offset, c.length), 16<<10), left: c.length, codec: c.codec, most: c.values}
}

func (p *pages) close() {
	if p.zstd != nil {
		p.zstd.Close()
	}
}

// next reads a page. The bytes are valid until the next call; those of version 2
// begin with levels, which are never packed.
func (p *pages) next() (pageHeader, []byte, error) {
	if p.left == 0 {
		return pageHeader{}, nil, io.EOF
	}
	h, err := p.header()
	if err != nil {
		return h, nil, err
	}
	levels := h.defLength + h.repLength
	if h.packed < 0 || h.packed > p.left || h.unpacked < 0 || h.unpacked > maxPage || h.values < 0 || h.defLength < 0 || h.repLength < 0 || levels > h.packed || levels > h.unpacked {
		return h, nil, errThrift
	}
	// A page takes memory by what it holds, not by what it was blown up to. That of a
	// dictionary may hold as many values as the chunk.
	if h.values > p.most || h.unpacked > h.values*widestValue+pageExtra {
		return h, nil, errThrift
	}
	if h.kind != 2 {
		p.most -= h.values
	}
	if int64(cap(p.raw)) < h.packed {
		p.raw = make([]byte, h.packed)
	}
	p.raw = p.raw[:h.packed]
	if _, err := io.ReadFull(p.r, p.raw); err != nil {
		return h, nil, err
	}
	p.left -= h.packed
	if h.plain || p.codec == 0 {
		return h, p.raw, nil
	}
	body, err := p.unpack(p.raw[levels:], h.unpacked-levels, levels)
	if err != nil {
		return h, nil, err
	}
	copy(body, p.raw[:levels])
	return h, body, nil
}

func (p *pages) header() (pageHeader, error) {
	for look := int64(4 << 10); ; look *= 4 {
		if int64(p.r.Size()) < min(look, p.left) {
			p.r = bufio.NewReaderSize(p.r, int(look))
		}
		b, err := p.r.Peek(int(min(look, p.left)))
		if err != nil && !errors.Is(err, io.EOF) {
			return pageHeader{}, err
		}
		t := &thrift{b: b}
		h := readPageHeader(t)
		if errors.Is(t.err, errThriftEnd) && look < p.left && look < maxPageHeader {
			continue
		}
		if t.err != nil {
			return h, t.err
		}
		p.left -= int64(t.at)
		_, err = p.r.Discard(t.at)
		return h, err
	}
}

func readPageHeader(t *thrift) pageHeader {
	h := pageHeader{}
	t.structure(func(id int64, kind byte) bool {
		switch {
		case id == 1 && kind == thriftI32:
			h.kind = t.int()
		case id == 2 && kind == thriftI32:
			h.unpacked = t.int()
		case id == 3 && kind == thriftI32:
			h.packed = t.int()
		case (id == 5 || id == 7 || id == 8) && kind == thriftStruct:
			h.version2 = id == 8
			t.structure(func(id int64, kind byte) bool {
				if version2Plain := h.version2 && id == 7; version2Plain || kind != thriftI32 {
					h.plain = h.plain || version2Plain && kind == thriftFalse
					return false // among them whether a dictionary is sorted
				}
				switch {
				case id == 1:
					h.values = t.int()
				case id == 2 && !h.version2, id == 4 && h.version2:
					h.encoding = t.int()
				case id == 3 && !h.version2:
					h.defEncoding = t.int()
				case id == 5 && h.version2:
					h.defLength = t.int()
				case id == 6 && h.version2:
					h.repLength = t.int()
				default:
					return false
				}
				return true
			})
		default:
			return false
		}
		return true
	})
	return h
}

// unpack takes a page's bytes out of their codec and leaves room before them. What
// is claimed must be possible: no codec makes more of a byte than these.
func (p *pages) unpack(b []byte, size, room int64) ([]byte, error) {
	ratio := map[int64]int64{1: 64, 2: 1100, 6: 50000, 7: 300}[p.codec]
	if ratio == 0 {
		return nil, fmt.Errorf("the packing (codec %d) %w: write the file with snappy, gzip, zstd or lz4_raw", p.codec, errForeign)
	}
	if size > (int64(len(b))+64)*ratio {
		return nil, errThrift
	}
	if size == 0 {
		return make([]byte, room), nil
	}
	out := make([]byte, room+size)
	body := out[room:]
	switch p.codec {
	case 1:
		if n, err := snappy.DecodedLen(b); err != nil {
			return nil, err
		} else if int64(n) != size {
			return nil, errThrift
		}
		if _, err := snappy.Decode(body, b); err != nil {
			return nil, err
		}
	case 2:
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(z, body); err != nil {
			return nil, err
		}
	case 6:
		if p.zstd == nil {
			var err error
			if p.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage)); err != nil {
				return nil, err
			}
		}
		if err := p.zstd.Reset(bytes.NewReader(b)); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(p.zstd, body); err != nil {
			return nil, err
		}
	case 7:
		if n, err := lz4.UncompressBlock(b, body); err != nil {
			return nil, err
		} else if int64(n) != size {
			return nil, errThrift
		}
	}
	return out, nil
}
