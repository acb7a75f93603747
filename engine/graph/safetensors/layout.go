package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// align is the alignment in bytes of the first tensor: a cache line.
const align = 64

// A Layout is the layout of a file to be written. The writer puts the header first and
// then each tensor's bytes, in any order or as a stream: all offsets are known.
type Layout struct {
	header  []byte
	offsets []int64 // of each tensor and the end, from the file's start
}

// NewLayout lays out tensors in the given order. Those with larger elements should come
// first, so that every tensor is aligned to its elements.
func NewLayout(tensors []Tensor, metadata map[string]string) (*Layout, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	if len(metadata) > 0 {
		text, err := json.Marshal(metadata) // sorts the keys
		if err != nil {
			return nil, fmt.Errorf("encode the metadata: %w", err)
		}
		fmt.Fprintf(&b, "%q:%s", metadataKey, text)
	}
	l := &Layout{offsets: make([]int64, 0, len(tensors)+1)}
	names := map[string]bool{metadataKey: true}
	at := int64(0)
	for _, t := range tensors {
		n, err := t.bytes()
		if err != nil {
			return nil, err
		}
		if n > math.MaxInt64/2-at {
			return nil, fmt.Errorf("tensor %q %w", t.Name, errTooLarge)
		}
		if names[t.Name] {
			return nil, fmt.Errorf("tensor %q stands twice", t.Name)
		}
		names[t.Name] = true
		if size := t.DType.size(); at%size != 0 {
			return nil, fmt.Errorf("tensor %q would not be aligned to its elements: put larger elements first", t.Name)
		}
		if b.Len() > 9 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(t.Name)
		if err != nil {
			return nil, fmt.Errorf("encode the name of tensor %q: %w", t.Name, err)
		}
		shape, err := json.Marshal(append([]int64{}, t.Shape...))
		if err != nil {
			return nil, fmt.Errorf("encode the shape of tensor %q: %w", t.Name, err)
		}
		fmt.Fprintf(&b, `%s:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, name, t.DType, shape, at, at+n)
		l.offsets = append(l.offsets, at)
		at += n
	}
	l.offsets = append(l.offsets, at)
	b.WriteByte('}')
	for b.Len()%align != 0 {
		b.WriteByte(' ')
	}
	l.header = b.Bytes()
	if len(l.header)-8 > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes is larger than the %d that are read again", len(l.header), maxHeader)
	}
	binary.LittleEndian.PutUint64(l.header, uint64(len(l.header)-8))
	for i := range l.offsets {
		l.offsets[i] += int64(len(l.header))
	}
	return l, nil
}

// Header returns the beginning of the file, including the header's length.
func (l *Layout) Header() []byte { return slices.Clip(l.header) }

// Offset returns where tensor i starts in the file.
func (l *Layout) Offset(i int) int64 { return l.offsets[i] }

// Size returns the length of the file.
func (l *Layout) Size() int64 { return l.offsets[len(l.offsets)-1] }
