package columnar

import (
	"fmt"

	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/hopmesh/hopmesh/engine/graph/read/footers"
)

// orderly turns a panic into an error; it is deferred. The library's decoders follow
// the offsets in a file without checking them, and panic on a damaged file. That must
// end the import, not the node. No state outlives the reader, which is dropped.
func orderly(err *error) {
	switch is := recover().(type) {
	case nil:
	case Refusal:
		*err = is
	case error:
		*err = damaged(is)
	default:
		*err = fmt.Errorf("%w: %v", errDamaged, is)
	}
}

var errDamaged = footers.ErrDamaged

func damaged(err error) error { return footers.Damaged(err) }

// boundedAllocator limits what the library allocates because a file says so. Beyond
// the limit it panics, which orderly catches.
type boundedAllocator struct {
	arrowmemory.GoAllocator
	left int64
	err  error // what it panics with
}

var errClaims = footers.ErrClaims

func (b *boundedAllocator) take(n int) {
	if int64(n) > b.left {
		panic(b.err)
	}
	b.left -= int64(n)
}

func (b *boundedAllocator) Allocate(n int) []byte {
	b.take(n)
	return b.GoAllocator.Allocate(n)
}

func (b *boundedAllocator) Reallocate(n int, old []byte) []byte {
	b.take(n - len(old))
	return b.GoAllocator.Reallocate(n, old)
}

func (b *boundedAllocator) Free(old []byte) {
	b.left += int64(len(old))
	b.GoAllocator.Free(old)
}

// packings say how many bytes a byte of a chunk can become at most.
var packings = map[compress.Compression]int64{
	compress.Codecs.Uncompressed: 1,
	compress.Codecs.Snappy:       64,
	compress.Codecs.Gzip:         1100,
	compress.Codecs.Brotli:       1 << 20,
	compress.Codecs.Zstd:         50_000,
	compress.Codecs.Lz4Raw:       300,
}

// checkPacking returns how large a page of a chunk can be, or an error if its codec
// is not known.
func checkPacking(codec compress.Compression, length int64) (int64, error) {
	ratio := packings[codec]
	if ratio == 0 {
		return 0, Refusal{fmt.Errorf("the packing (codec %d) is not known: write the file with snappy, gzip, brotli, zstd or lz4_raw", codec)}
	}
	const slack = 64 << 10 // the library takes some before it reads, and rounds up
	return min(maxPage, (length+64)*ratio) + slack, nil
}

// pageAllocator refuses single pages that a chunk cannot hold.
type pageAllocator struct {
	*boundedAllocator
	most int64
}

func (p *pageAllocator) Allocate(n int) []byte {
	if int64(n) > p.most {
		panic(errClaims)
	}
	return p.boundedAllocator.Allocate(n)
}

func (p *pageAllocator) Reallocate(n int, old []byte) []byte {
	if int64(n) > p.most {
		panic(errClaims)
	}
	return p.boundedAllocator.Reallocate(n, old)
}

var _ arrowmemory.Allocator = (*pageAllocator)(nil)

// boundedCodec unpacks no more than there is room for. The library's own codecs take
// as much memory as the packed bytes claim, or let them grow without end.
type boundedCodec struct {
	compress.Codec
	decode func(dst, src []byte) ([]byte, error)
}

func (c boundedCodec) DecodeWithError(dst, src []byte) ([]byte, error) {
	if dst == nil {
		dst = []byte{} // nil would let the library choose the room
	}
	return c.decode(dst, src)
}

func (c boundedCodec) Decode(dst, src []byte) []byte {
	out, err := c.DecodeWithError(dst, src)
	if err != nil {
		panic(err)
	}
	return out
}

// init takes the place of the library's codecs, which it keeps in a table that may
// only be changed before anything is read.
func init() {
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxPage+1))
	if err != nil {
		panic(err) // the options are constant
	}
	for codec := range packings {
		own, err := compress.GetCodec(codec)
		if err != nil {
			panic(err)
		}
		decode := func(dst, src []byte) ([]byte, error) { return compress.Decode(own, dst, src) }
		switch codec {
		case compress.Codecs.Snappy:
			decode = func(dst, src []byte) ([]byte, error) {
				if n, err := snappy.DecodedLen(src); err != nil {
					return nil, err
				} else if n != len(dst) {
					return nil, errClaims
				}
				return snappy.Decode(dst, src)
			}
		case compress.Codecs.Zstd:
			decode = func(dst, src []byte) ([]byte, error) { return unpacker.DecodeAll(src, dst[:0:len(dst)]) }
		}
		compress.RegisterCodec(codec, boundedCodec{Codec: own, decode: decode})
	}
}
