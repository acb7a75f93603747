//go:build cuda

package sample

import (
	"errors"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Batch is the blocks of some seed vertices in the GPU's memory, the outermost first,
// like sample.Batch. It keeps its memory from one use to the next. Its blocks are valid
// until the next use.
type Batch struct {
	Blocks []Block
	// Vertices are the vertices whose features are read, the sources of the first block:
	// Inputs of uint32.
	Vertices driver.Memory
	Inputs   int
	// Listed holds the Vertices in host memory.
	Listed []uint32
	// Summed is the number of entries of the hop that has no block.
	Summed int

	header, vertices driver.Memory
	pinned, listed   driver.Pinned // of the header and of Listed
	hops             []hop         // from the seed vertices outwards
}

// Block is one hop. It has the contents of a sample.Block, with the same numbers in its
// arrays.
type Block struct {
	Rows, Cols, Entries int

	Vertices driver.Memory // of the sources: Cols of uint32
	Indptr   driver.Memory // Rows+1 of int64
	Indices  driver.Memory // Entries of int32
	Values   driver.Memory // Entries of float32, or empty if all are 1
	Valued   bool
	// The transpose: Cols+1 of int64, and Entries of int32 twice.
	Columns, Targets, Edges driver.Memory
}

// hop is the memory of a block, with its capacity.
type hop struct {
	indptr, indices, values, columns, targets, edges driver.Memory
}

func (h *hop) memories() []*driver.Memory {
	return []*driver.Memory{&h.indptr, &h.indices, &h.values, &h.columns, &h.targets, &h.edges}
}

// Close frees the batch's memory.
func (b *Batch) Close(on *driver.Thread) error {
	err := free(on, &b.header, &b.vertices)
	for i := range b.hops {
		err = errors.Join(err, free(on, b.hops[i].memories()...))
	}
	err = errors.Join(err, freePinned(on, &b.pinned), freePinned(on, &b.listed))
	*b = Batch{}
	return err
}

// Host returns a copy of the block in host memory.
func (b *Block) Host(on *driver.Thread) (sample.Block, error) {
	f := fetching{on: on}
	block := sample.Block{CSR: tensor.CSR{Rows: b.Rows, Cols: b.Cols}}
	block.Vertices = fetched[uint32](&f, b.Vertices)
	block.Indptr = fetched[int64](&f, b.Indptr)
	block.Indices = fetched[int32](&f, b.Indices)
	if b.Valued {
		block.Values = fetched[float32](&f, b.Values)
	}
	block.Transposed = &tensor.Transpose{
		Indptr: fetched[int64](&f, b.Columns), Rows: fetched[int32](&f, b.Targets), Edges: fetched[int32](&f, b.Edges),
	}
	block.Stamp = tensor.NewStamp()
	return block, f.err
}

// fetching records the first error.
type fetching struct {
	on  *driver.Thread
	err error
}

func fetched[T uint32 | int32 | int64 | float32](f *fetching, m driver.Memory) []T {
	if f.err != nil || m.Len() == 0 {
		return []T{}
	}
	p, err := f.on.AllocPinned(m.Len())
	if err != nil {
		f.err = err
		return nil
	}
	f.err = f.on.FetchNow(p, m)
	numbers := append([]T{}, driver.Numbers[T](p)...)
	f.err = errors.Join(f.err, f.on.FreePinned(p))
	return numbers
}

// free frees memories that are not empty.
func free(on *driver.Thread, memories ...*driver.Memory) error {
	var err error
	for _, m := range memories {
		if m.Len() > 0 {
			err = errors.Join(err, on.Free(*m))
		}
		*m = driver.Memory{}
	}
	return err
}

func freePinned(on *driver.Thread, p *driver.Pinned) error {
	if p.Len() == 0 {
		return nil
	}
	err := on.FreePinned(*p)
	*p = driver.Pinned{}
	return err
}

// reservePinned makes p at least this long. If it grows, its content is lost.
func reservePinned(on *driver.Thread, p *driver.Pinned, bytes int) error {
	if p.Len() >= bytes {
		return nil
	}
	if err := freePinned(on, p); err != nil {
		return err
	}
	taken, err := on.AllocPinned(bytes)
	if err != nil {
		return err
	}
	*p = taken
	return nil
}

// reserve makes m at least this long. If it grows, its content is lost.
func reserve(on *driver.Thread, m *driver.Memory, bytes int) error {
	if m.Len() >= bytes {
		return nil
	}
	if err := free(on, m); err != nil {
		return err
	}
	taken, err := on.Alloc(bytes)
	if err != nil {
		return err
	}
	*m = taken
	return nil
}
