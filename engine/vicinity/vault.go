package vicinity

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/unnamed"
)

// A Vault holds what a node sees of others' shards: in files without names, which are gone
// when it is closed or the process ends. The system drops their pages where memory is short
// and reads them again, so they are no memory of the process. Arrays are written through
// files and read through mappings, so that a full disk is an error and not a signal. It is
// safe for concurrent use. A nil Vault holds arrays in ordinary memory.
type Vault struct {
	dir string

	mu       sync.Mutex
	mappings [][]byte
}

// NewVault returns a vault of a folder; "": one in ordinary memory.
func NewVault(dir string) *Vault {
	if dir == "" {
		return nil
	}
	return &Vault{dir: dir}
}

// Close removes all arrays, which nobody must read any more.
func (v *Vault) Close() error {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var all error
	for _, m := range v.mappings {
		all = errors.Join(all, unnamed.Unmap(m))
	}
	v.mappings = nil
	return all
}

// Size returns the bytes of all arrays in files.
func (v *Vault) Size() (bytes uint64) {
	if v == nil {
		return 0
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.mappings {
		bytes += uint64(len(m))
	}
	return bytes
}

// number is what arrays consist of.
type number interface {
	byte | int32 | int64 | float32 | uint64
}

// Keep returns an array with the same elements in the vault. The old one may be dropped.
func Keep[T number](v *Vault, all []T) ([]T, error) {
	if v == nil || len(all) == 0 {
		return all, nil
	}
	a := array[T]{in: v}
	if err := a.add(all); err != nil {
		return nil, cmp.Or(err, a.drop())
	}
	return a.end()
}

// An array is appended to, and then read.
type array[T number] struct {
	in     *Vault
	file   *os.File
	memory []T // all elements, or those that are yet to be written
	n      int
	failed error // of the first write that did; elements are missing since
}

// pending is how many bytes of an array wait until they are written.
const pending = 256 << 10

// expect makes room in memory for n elements.
func (a *array[T]) expect(n int) {
	if a.in == nil {
		a.memory = make([]T, 0, n)
	}
}

// add appends elements.
func (a *array[T]) add(some []T) error {
	a.n += len(some)
	if a.in == nil {
		a.memory = append(a.memory, some...)
		return nil
	}
	size := pending / int(unsafe.Sizeof(*new(T)))
	if len(a.memory)+len(some) < size {
		a.memory = append(a.memory, some...)
		return nil
	}
	if err := a.write(a.memory); err != nil {
		return err
	}
	a.memory = a.memory[:0]
	if len(some) < size {
		a.memory = append(a.memory, some...)
		return nil
	}
	return a.write(some)
}

func (a *array[T]) write(some []T) error {
	if a.failed == nil {
		a.failed = a.put(some)
	}
	return a.failed
}

func (a *array[T]) put(some []T) error {
	if len(some) == 0 {
		return nil
	}
	if a.file == nil {
		file, err := unnamed.Create(a.in.dir, "seen-*.tmp")
		if err != nil {
			return fmt.Errorf("make a file for what groups see: %w", err)
		}
		a.file = file
	}
	size := len(some) * int(unsafe.Sizeof(some[0]))
	if _, err := a.file.Write(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(some))), size)); err != nil {
		return fmt.Errorf("write what groups see: %w: free some space in the folder of the job", err)
	}
	return nil
}

// end returns all elements. The array must not be used any more.
func (a *array[T]) end() ([]T, error) {
	if a.in == nil {
		all := a.memory
		*a = array[T]{}
		if cap(all) > len(all)+len(all)/16 {
			all = slices.Clone(all)
		}
		return all, nil
	}
	if a.n == 0 {
		return []T{}, a.drop()
	}
	err := a.write(a.memory)
	n, size := a.n, a.n*int(unsafe.Sizeof(*new(T)))
	var mapping []byte
	if err == nil {
		if mapping, err = unnamed.Map(a.file, size); err != nil {
			err = fmt.Errorf("read what groups see: %w", err)
		}
	}
	in := a.in
	if err = cmp.Or(err, a.drop()); err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mappings = append(in.mappings, mapping)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mapping))), n), nil
}

// drop forgets what has been added.
func (a *array[T]) drop() (err error) {
	if a.file != nil {
		err = a.file.Close()
	}
	*a = array[T]{}
	return err
}

// KeepOffsets is Keep, as are KeepIDs and KeepWeights, by which a Vault is a sample.Keeper.
func (v *Vault) KeepOffsets(all []int64) ([]int64, error) { return Keep(v, all) }

// KeepIDs is Keep.
func (v *Vault) KeepIDs(all []int32) ([]int32, error) { return Keep(v, all) }

// KeepWeights is Keep.
func (v *Vault) KeepWeights(all []float32) ([]float32, error) { return Keep(v, all) }
