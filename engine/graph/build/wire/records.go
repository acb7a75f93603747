package wire

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"unsafe"
)

// MaxRecords bounds the records of a message.
const MaxRecords = 1 << 16

// Records begin with their number, how they are written, and the bits of a key's lower half
// that are used.
const (
	recordsHead = 8
	plainKeys   = 0 // as they are, then their weights
	packedKeys  = 1 // nearly sorted, each as its distance from the one before
)

// AppendRecords appends keys, in their order, and the weights of some of them.
func AppendRecords(m []byte, keys []uint64, weights []float32) []byte {
	m = binary.LittleEndian.AppendUint32(m, uint32(len(keys)))
	m = append(m, plainKeys, 0, 0, 0)
	for _, k := range keys {
		m = binary.LittleEndian.AppendUint64(m, k)
	}
	if len(weights) == 0 {
		return m
	}
	return append(m, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(weights))), 4*len(weights))...)
}

// A Packer packs keys of which neither the order nor the number of equal ones matters. The
// processor takes less time for that than for sending the bytes that are saved.
type Packer struct {
	spare []uint64
	bytes []byte
}

// Append appends the keys, which it puts into another order.
func (p *Packer) Append(m []byte, keys []uint64) []byte {
	lower := uint64(0)
	for _, k := range keys {
		lower |= k & (1<<32 - 1)
	}
	width := bits.Len64(lower)
	for i, k := range keys {
		keys[i] = k>>32<<width | k&(1<<32-1)
	}
	if cap(p.spare) < len(keys) {
		p.spare = make([]uint64, len(keys))
		p.bytes = make([]byte, 0, binary.MaxVarintLen64*len(keys))
	}
	keys = radix(keys, p.spare[:len(keys)])
	out, n, last := p.bytes[:cap(p.bytes)], 0, uint64(0)
	count := uint32(0)
	for i, k := range keys {
		if k == last && i > 0 {
			continue
		}
		d := zigzag(k - last)
		last = k
		count++
		for ; d >= 0x80; d >>= 7 {
			out[n] = byte(d) | 0x80
			n++
		}
		out[n] = byte(d)
		n++
	}
	m = binary.LittleEndian.AppendUint32(m, count)
	m = append(m, packedKeys, byte(width), 0, 0)
	return append(m, out[:n]...)
}

// zigzag makes small numbers of small distances, also of negative ones.
func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

func zagzig(d uint64) uint64 { return d>>1 ^ -(d & 1) }

// radix sorts keys by the first bits in which they differ, and returns them, in keys or in
// spare. Two passes leave hardly any keys out of order.
func radix(keys, spare []uint64) []uint64 {
	least, most := ^uint64(0), uint64(0)
	for _, k := range keys {
		least, most = min(least, k), max(most, k)
	}
	if most <= least {
		return keys
	}
	width := uint(bits.Len64(most ^ least)) // the bits above are those of all
	step := min(11, (width+1)/2)
	mask := uint64(1)<<step - 1
	for shift := width - min(width, 2*step); shift < width; shift += step {
		var at [1 << 11]uint32
		for _, k := range keys {
			at[k>>shift&mask&(1<<11-1)]++
		}
		sum := uint32(0)
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, k := range keys {
			digit := k >> shift & mask & (1<<11 - 1)
			spare[at[digit]] = k
			at[digit]++
		}
		keys, spare = spare, keys
	}
	return keys
}

// Records splits what AppendRecords or a Packer has written. Keys may lie in the message, or
// in into if that has room.
func Records(b []byte, into []uint64) (keys []uint64, weights []float32, err error) {
	if len(b) < recordsHead {
		return nil, nil, ErrMessage
	}
	n, kind, width := int64(binary.LittleEndian.Uint32(b)), b[4], b[5]
	b = b[recordsHead:]
	if n > MaxRecords || n > int64(len(b)) || width > 32 {
		return nil, nil, ErrMessage
	}
	if int64(cap(into)) < n {
		into = make([]uint64, n)
	}
	into = into[:n]
	switch kind {
	case packedKeys:
		return into, nil, unpack(b, into, width)
	case plainKeys:
		if 8*n > int64(len(b)) || (int64(len(b))-8*n)%4 != 0 {
			return nil, nil, ErrMessage
		}
		for i := range into {
			into[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		if b = b[8*n:]; len(b) > 0 {
			weights = make([]float32, len(b)/4)
			copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(weights))), len(b)), b)
		}
		return into, weights, nil
	}
	return nil, nil, ErrMessage
}

// A Reader reads messages of records into memory that it keeps. It may be used by several
// goroutines.
type Reader struct{ kept sync.Pool }

// Read gives take the records of a message, which are valid until it returns.
func (r *Reader) Read(b []byte, take func(keys []uint64, weights []float32) error) error {
	room, ok := r.kept.Get().(*[]uint64)
	if !ok {
		room = new([]uint64)
	}
	defer r.kept.Put(room)
	keys, weights, err := Records(b, *room)
	if err != nil {
		return err
	}
	*room = keys
	return take(keys, weights)
}

// unpack fills keys.
func unpack(b []byte, keys []uint64, width byte) error {
	last, at := uint64(0), 0
	for i := range keys {
		d, shift := uint64(0), uint(0)
		for {
			if at == len(b) || shift > 63 {
				return ErrMessage
			}
			c := b[at]
			at++
			d |= uint64(c&0x7f) << shift
			if c < 0x80 {
				break
			}
			shift += 7
		}
		k := last + zagzig(d)
		if k>>width>>32 != 0 {
			return ErrMessage
		}
		last = k
		keys[i] = k>>width<<32 | k&(1<<width-1)
	}
	if at != len(b) {
		return ErrMessage
	}
	return nil
}
