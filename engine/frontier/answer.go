package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// Bounds of one message.
const (
	mostBody   = 16 << 20
	mostAnswer = 256 << 20
)

// prefix is the size of the fan-out, with which a question's body begins.
const prefix = 4

// ends is what a question for degrees has in the place of a hop. Its fan-out is 0, and its
// answer is 1/sqrt(degree) of each vertex.
const ends = math.MaxUint32

// mostVertices is how many one question names.
const mostVertices = (mostBody - prefix) / 4

// header is the size of an answer's head: how many rows follow, how many entries they
// have, and whether these have weights. Then come the rows' degrees in the whole graph, as
// sample.Drawn has them, the entries' sources and their weights. The number of sampled
// entries of a row follows from its degree and the fan-out.
const header = 12

// mostEntries returns how many fit in an answer of so many rows, weights included.
func mostEntries(rows int) int { return (mostAnswer - header - 4*rows) / 8 }

// limit bounds the size of the answer to a question for so many rows.
func limit(rows, fanout int) int {
	if fanout == 0 || fanout > mostAnswer/8/max(1, rows) {
		return mostAnswer
	}
	return min(mostAnswer, header+rows*(4+8*fanout))
}

// Bytes returns what a question for so many rows takes together with its answer, where
// these rows have so many drawn entries.
func Bytes(rows, entries int, weighted bool) int {
	entry := 4
	if weighted {
		entry = 8
	}
	return peer.QueryFraming + prefix + 4*rows + peer.AnswerFraming + header + 4*rows + entry*entries
}

// InverseBytes returns what a question for 1/sqrt(degree) of so many vertices takes together
// with its answer.
func InverseBytes(vertices int) int {
	return peer.QueryFraming + prefix + 4*vertices + peer.AnswerFraming + 4*vertices
}

// encode returns the parts of an answer, which lie in d except the first, in head.
func encode(d *sample.Drawn, head *[header]byte) [4][]byte {
	weighted := uint32(0)
	if d.Weights != nil {
		weighted = 1
	}
	binary.LittleEndian.PutUint32(head[0:], uint32(len(d.Degrees)))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(d.Sources)))
	binary.LittleEndian.PutUint32(head[8:], weighted)
	return [4][]byte{head[:], raw(d.Degrees), raw(d.Sources), raw(d.Weights)}
}

// raw returns the memory of elements. A node that serves has mapped shards, so it is
// little-endian.
func raw[T int32 | float32](data []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), 4*len(data))
}

var errCutOff = errors.New("it is cut off, or goes on after its end")

// rows are those of one owner, answer after answer.
type rows struct {
	sample.Drawn        // Weights are valid if weighted
	weighted     bool   // the entries have weights
	most         uint64 // entries of all rows; 0: any number
}

func (r *rows) reset(most uint64) {
	r.most = most
	r.Degrees, r.Indptr = r.Degrees[:0], append(r.Indptr[:0], 0)
	r.Sources, r.Weights, r.weighted = r.Sources[:0], r.Weights[:0], false
}

// decode appends the rows of an answer, and returns how many these are. asked bounds
// their number, and vertices is the size of the graph.
func (r *rows) decode(b []byte, asked, fanout int, vertices uint32) (int, error) {
	if len(b) < header {
		return 0, errCutOff
	}
	n, entries := int64(binary.LittleEndian.Uint32(b)), int64(binary.LittleEndian.Uint32(b[4:]))
	weighted := binary.LittleEndian.Uint32(b[8:])
	if n == 0 || n > int64(asked) || weighted > 1 {
		return 0, fmt.Errorf("it has %d rows where up to %d were asked for, or is of another kind", n, asked)
	}
	if int64(len(b)) != header+4*n+4*entries*int64(1+weighted) {
		return 0, errCutOff
	}
	degrees, b := b[header:][:4*n], b[header+4*n:]
	if err := r.decodeDegrees(degrees, entries, fanout, vertices); err != nil {
		return 0, err
	}
	before := len(r.Sources)
	r.Sources = slices.Grow(r.Sources, int(entries))
	for at := 0; at < 4*int(entries); at += 4 {
		v := binary.LittleEndian.Uint32(b[at:])
		if v >= vertices {
			return 0, fmt.Errorf("it names vertex %d of a graph of %d", v, vertices)
		}
		r.Sources = append(r.Sources, int32(v))
	}
	switch {
	case weighted == 0 && r.weighted:
		r.Weights = ones(r.Weights, int(entries))
	case weighted == 1:
		if !r.weighted {
			r.Weights, r.weighted = ones(r.Weights[:0], before), true
		}
		r.Weights = slices.Grow(r.Weights, int(entries))
		for b = b[4*entries:]; len(b) > 0; b = b[4:] {
			r.Weights = append(r.Weights, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	}
	return int(n), nil
}

// decodeDegrees appends degrees, and the bounds of the entries sampled of them.
func (r *rows) decodeDegrees(b []byte, entries int64, fanout int, vertices uint32) error {
	before := r.Indptr[len(r.Indptr)-1]
	end := before
	for ; len(b) > 0; b = b[4:] {
		said := int32(binary.LittleEndian.Uint32(b))
		degree := said & sample.Degree
		if uint64(degree) > uint64(vertices)*graph.MaxRelations { // a source may occur once for each
			return fmt.Errorf("a vertex has %d neighbours in a graph of %d", degree, vertices)
		}
		if end += int64(sample.Kept(degree, fanout)); r.most > 0 && uint64(end) > r.most {
			return fmt.Errorf("its rows have %d entries with those before, of a graph of %d edges", end, r.most)
		}
		r.Degrees = append(r.Degrees, said)
		r.Indptr = append(r.Indptr, end)
	}
	if end-before != entries {
		return fmt.Errorf("it has %d entries where its rows have %d", entries, end-before)
	}
	return nil
}

// decodeInverses appends what came of 1/sqrt(degree) of so many vertices.
func decodeInverses(to []float32, b []byte, asked int) ([]float32, error) {
	if len(b) != 4*asked {
		return to, errCutOff
	}
	for ; len(b) > 0; b = b[4:] {
		f := math.Float32frombits(binary.LittleEndian.Uint32(b))
		if !(f >= 0 && f <= math.MaxFloat32) {
			return to, fmt.Errorf("a vertex has a degree whose root is 1/%v", f)
		}
		to = append(to, f)
	}
	return to, nil
}

// ones appends n weights of 1, for entries without weights.
func ones(to []float32, n int) []float32 {
	for range n {
		to = append(to, 1)
	}
	return to
}
