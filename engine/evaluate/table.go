package evaluate

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A table holds the rows between two stages: in memory or, where that is too small, in a
// file without a name, which is gone when it is closed or the process ends. Rows are
// written through the file and read through its mapping, so that a full disk is an error
// and not a signal.
type table struct {
	x       tensor.Matrix
	device  tensor.Device
	arena   tensor.Arena // in memory
	file    *os.File
	mapping []byte
	buffer  []byte
}

func newTable(d tensor.Device, rows, cols int, inFile bool, dir string) (*table, error) {
	t := &table{device: d}
	if rows == 0 || cols == 0 {
		return t, nil
	}
	if !inFile {
		arena, err := d.NewArena(rows * cols * d.Type().Bytes())
		if err != nil {
			return nil, err
		}
		t.arena, t.x = arena, arena.Alloc(d.Type(), rows, cols)
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
	kind := t.device.Type()
	size := int64(rows) * int64(cols) * int64(kind.Bytes())
	if err := t.file.Truncate(size); err != nil {
		return err
	}
	if t.mapping, err = unix.Mmap(int(t.file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map %d bytes: %w", size, err)
	}
	t.x = tensor.Over(kind, rows, cols, cols, unsafe.Pointer(unsafe.SliceData(t.mapping)))
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
	t.buffer = plain.Grow(t.buffer, y.Rows*y.Cols*t.x.Type.Bytes())
	plain.Read(t.device, t.buffer, y)
	return t.writeBytes(first, t.buffer)
}

// writeBytes sets rows from first on to what plain.Read has made of them.
func (t *table) writeBytes(first int, rows []byte) error {
	if len(rows) == 0 {
		return nil
	}
	row := t.x.Cols * t.x.Type.Bytes()
	if t.file == nil {
		plain.Write(t.device, t.x.RowRange(first, len(rows)/row), rows)
		return nil
	}
	if _, err := t.file.WriteAt(rows, int64(first)*int64(row)); err != nil {
		return fmt.Errorf("write the rows between two layers: %w: free some space in the folder of the job, or allow more memory", err)
	}
	return nil
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
