package train

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A table is the rows of all vertices between two stages: in memory or, where that
// is too small, in a file without a name, which is gone when it is closed or the
// process ends. Rows are written by the file and read by its mapping, so that a full
// disk is an error and not a signal.
type table struct {
	x       tensor.Matrix
	device  tensor.Device
	arena   tensor.Arena // in memory
	file    *os.File
	mapping []byte
	buffer  []float32
}

func newTable(d tensor.Device, rows, cols int, inFile bool, dir string) (*table, error) {
	t := &table{device: d}
	if rows == 0 || cols == 0 {
		return t, nil
	}
	if !inFile {
		arena, err := d.NewArena(rows * cols * 4)
		if err != nil {
			return nil, err
		}
		t.arena, t.x = arena, arena.Alloc(tensor.F32, rows, cols)
		return t, nil
	}
	if err := t.mapFile(rows, cols, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("make a file for the rows between two layers: %w", err), t.close())
	}
	return t, nil
}

func (t *table) mapFile(rows, cols int, dir string) (err error) {
	if t.file, err = os.CreateTemp(dir, "rows-*.tmp"); err != nil {
		return err
	}
	if err := os.Remove(t.file.Name()); err != nil {
		return err
	}
	size := int64(rows) * int64(cols) * 4
	if err := t.file.Truncate(size); err != nil {
		return err
	}
	if t.mapping, err = unix.Mmap(int(t.file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map %d bytes: %w", size, err)
	}
	t.x = tensor.Over(tensor.F32, rows, cols, cols, unsafe.Pointer(unsafe.SliceData(t.mapping)))
	return nil
}

// write sets rows from first on.
func (t *table) write(first int, y tensor.Matrix) error {
	if y.Rows == 0 || y.Cols == 0 {
		return nil
	}
	if t.file == nil {
		t.device.Combine(t.x.RowRange(first, y.Rows), 1, y, 0, tensor.Matrix{})
		return nil
	}
	n := y.Rows * y.Cols
	if cap(t.buffer) < n {
		t.buffer = make([]float32, n)
	}
	t.device.Read32(t.buffer[:n], y)
	if _, err := t.file.WriteAt(bytesOf(t.buffer[:n]), int64(first)*int64(y.Cols)*4); err != nil {
		return fmt.Errorf("write the rows between two layers: %w: free some space in the folder of the job, or allow more memory", err)
	}
	return nil
}

// bytesOf are the bytes of some numbers, where they lie. Machines whose order of
// bytes differs can't open shards and do not come this far.
func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

func (t *table) close() (err error) {
	if t == nil {
		return nil
	}
	if t.arena != nil {
		t.arena.Close()
	}
	if t.mapping != nil {
		err = unix.Munmap(t.mapping)
	}
	if t.file != nil {
		err = errors.Join(err, t.file.Close())
	}
	*t = table{}
	return err
}
