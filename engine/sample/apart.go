package sample

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// apart is a block whose relations are kept apart. The rows of one relation follow those of
// another, so that each has a matrix of its own over the same arrays.
type apart struct {
	each       []tensor.CSR
	transposed []tensor.Transpose
	reach      tensor.CSR
	back       tensor.Transpose // of reach
	indptr     []int64          // of reach
	indices    []int32
	idle       []bool

	text string  // of ends
	ends []uint8 // the type at which each relation ends; nil: all end at one
}

// ParseEnds returns the numbers of the types at which so many relations end, from a text such as
// "0,0,1"; nil for "", where all end at one type.
func ParseEnds(text string, relations int) ([]uint8, error) {
	if text == "" {
		return nil, nil
	}
	if n := strings.Count(text, ",") + 1; n != relations {
		return nil, fmt.Errorf("%d relations end at %d types", relations, n)
	}
	ends := make([]uint8, 0, relations)
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(word, 10, 8)
		if err != nil {
			return nil, fmt.Errorf("a relation ends at the type %.20q, which is no number from 0 to 255", word)
		}
		ends = append(ends, uint8(n))
	}
	return ends, nil
}

// relateApart is Relate for a form that keeps relations apart.
func (b *Block) relateApart(f Form) {
	r, a, n := &b.related, &b.related.apart, f.Relations
	if a.text != f.Ends || len(a.each) != n {
		a.text = f.Ends
		a.ends, _ = ParseEnds(f.Ends, n) // the model has checked it
		a.each, a.transposed, a.idle = make([]tensor.CSR, n), make([]tensor.Transpose, n), make([]bool, n)
	}
	from := b.Indptr[0]
	entries := int(b.Indptr[b.Rows] - from)
	sources, of := b.Indices[from:], b.Values[from:]
	r.indptr = slices.Grow(r.indptr[:0], b.Rows*n+1)[:b.Rows*n+1]
	r.indices = slices.Grow(r.indices[:0], entries)[:entries]
	clear(r.indptr)
	ends := r.indptr[1:] // of each row: how many entries, then where the next lies
	a.indptr = append(slices.Grow(a.indptr[:0], b.Rows+1), 0)
	a.indices = slices.Grow(a.indices[:0], b.Rows*n)
	for relation := range a.idle {
		a.idle[relation] = true
	}
	for t := range b.Rows {
		first, end := b.Indptr[t]-from, b.Indptr[t+1]-from
		for _, x := range of[first:end] {
			ends[int(x)*b.Rows+t]++
		}
		for relation := range n {
			if a.ends == nil || first < end && a.ends[relation] == a.ends[int(of[first])] {
				a.indices = append(a.indices, int32(relation*b.Rows+t))
				a.idle[relation] = false
			}
		}
		a.indptr = append(a.indptr, int64(len(a.indices)))
	}
	at := int64(0)
	for i, count := range ends {
		ends[i] = at
		at += count
	}
	for t := range b.Rows {
		for e := b.Indptr[t] - from; e < b.Indptr[t+1]-from; e++ {
			to := &ends[int(of[e])*b.Rows+t]
			r.indices[*to] = sources[e]
			*to++
		}
	}
	for i := range a.each {
		a.each[i] = tensor.CSR{Rows: b.Rows, Cols: b.Cols, Indptr: r.indptr[i*b.Rows:][:b.Rows+1], Indices: r.indices, Stamp: tensor.NewStamp()}
	}
	a.reach = tensor.CSR{Rows: b.Rows, Cols: b.Rows * n, Indptr: a.indptr, Indices: a.indices, Stamp: tensor.NewStamp()}
	b.Apart, b.Reach, b.Idle, b.Values = a.each, &a.reach, a.idle, nil
}

// transposeApart builds the transposes of all that relateApart has made.
func (b *Block) transposeApart() {
	for i := range b.Apart {
		transpose(&b.Apart[i], &b.related.apart.transposed[i])
	}
	transpose(b.Reach, &b.related.apart.back)
}

// RelatedBytes returns what the matrices by relation, or those of entries, of a block of this size
// take, beside the block and its transpose; with back, what more their transposes take.
func (f Form) RelatedBytes(z Size, back bool) uint64 {
	switch {
	case f.Plain:
		return 4*uint64(f.EdgeFeatures)*uint64(z.Entries) + f.addedBytes(z)
	case f.Relations == 0:
		return f.alongBytes(z)
	case f.Together:
		return f.togetherBytes(z, back)
	}
	n := 4*uint64(z.Entries) + 8*uint64(z.Targets+1)
	if !f.Apart {
		pairs, relations := uint64(z.PairsAtMost(f.Relations)), uint64(f.Relations)
		n += 8*(relations+1) + uint64(unsafe.Sizeof(cursor{}))*relations
		if n += 8*(pairs+1) + 8*pairs; back {
			n += 8*(pairs+1) + 4*pairs + 4*uint64(z.Sources) // the last are places of rows
			n += uint64(unsafe.Sizeof(tensor.CSR{})) * relations
		}
		return n
	}
	rows := uint64(z.Targets) * uint64(f.Relations)
	n += 8*(rows+1) + 4*rows
	if back {
		n += 8*uint64(f.Relations)*uint64(z.Sources+1) + 8*(rows+1) + 8*rows
	}
	return n
}
