package planetoid

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph/read/numpy"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// What a name stands for. Nothing is ever called.
const (
	nameArray      = iota + 1 // a class, as an argument
	nameRebuild               // makes an array, which BUILD fills
	nameFromBuffer            // makes an array of bytes
	nameScalar
	nameDType
	nameMatrix
	nameReconstructor // makes an object of a class, which BUILD fills
	nameDefaultDict
	nameEncode
	nameInert // an argument only
)

// pickleNames are all names that a pickle may use, as the versions of Python, NumPy
// and SciPy write them.
var pickleNames = map[string]int{
	"numpy.ndarray": nameArray, "numpy.dtype": nameDType,
	"numpy.core.multiarray._reconstruct": nameRebuild, "numpy._core.multiarray._reconstruct": nameRebuild,
	"numpy.core.multiarray.scalar": nameScalar, "numpy._core.multiarray.scalar": nameScalar,
	"numpy.core.numeric._frombuffer": nameFromBuffer, "numpy._core.numeric._frombuffer": nameFromBuffer,
	"scipy.sparse.csr.csr_matrix": nameMatrix, "scipy.sparse._csr.csr_matrix": nameMatrix, "scipy.sparse._csr.csr_array": nameMatrix,
	"copy_reg._reconstructor": nameReconstructor, "copyreg._reconstructor": nameReconstructor,
	"collections.defaultdict": nameDefaultDict, "_codecs.encode": nameEncode,
	"__builtin__.list": nameInert, "builtins.list": nameInert, "__builtin__.object": nameInert, "builtins.object": nameInert,
}

// object runs the operations that make objects in Python.
func (u *unpickler) object(op byte) error {
	switch op {
	case 'c':
		module, err := u.line()
		if err != nil {
			return err
		}
		name, err := u.line()
		if err != nil {
			return err
		}
		return u.name(string(module), string(name))
	case 0x93: // STACK_GLOBAL
		name, err := u.pop()
		if err != nil {
			return err
		}
		module, err := u.pop()
		if err != nil {
			return err
		}
		m, ok := module.(pyText)
		n, ok2 := name.(pyText)
		if !ok || !ok2 {
			return errPickle
		}
		return u.name(string(m), string(n))
	}
	argument, err := u.pop()
	if err != nil {
		return err
	}
	if op == 'b' {
		object, err := u.top()
		if err != nil {
			return err
		}
		return u.fill(object, argument)
	}
	callable, err := u.pop()
	if err != nil {
		return err
	}
	name, ok := callable.(pyName)
	arguments, ok2 := argument.(*pyTuple)
	if !ok || !ok2 {
		return errPickle
	}
	if err := u.container(); err != nil {
		return err
	}
	v, err := build(name, arguments.items)
	if err != nil {
		return err
	}
	copied := 0
	switch v := v.(type) {
	case pyBytes:
		copied = len(v)
	case *pyArray:
		copied = len(v.raw)
	}
	if err := u.copied(copied); err != nil {
		return err
	}
	u.push(v)
	return nil
}

func (u *unpickler) name(module, name string) error {
	full := module + "." + name
	if pickleNames[full] == 0 {
		return fmt.Errorf("it names %s, which Python would execute, and only arrays, sparse matrices and dicts are read: get the file from where it was published", source.Shorten([]byte(full)))
	}
	u.push(pyName(full))
	return nil
}

// build makes the inert value for what a call would have made.
func build(name pyName, arguments []any) (any, error) {
	switch pickleNames[string(name)] {
	case nameRebuild:
		return &pyArray{}, nil
	case nameMatrix:
		return &pyMatrix{}, nil
	case nameDefaultDict:
		return &pyDict{}, nil
	case nameReconstructor:
		if len(arguments) == 3 {
			if class, ok := arguments[0].(pyName); ok && pickleNames[string(class)] == nameMatrix {
				return &pyMatrix{}, nil
			}
		}
	case nameDType:
		if len(arguments) > 0 {
			if descr, ok := word(arguments[0]); ok {
				d, err := numpy.ParseDType(descr)
				return &pyDType{d}, err
			}
		}
	case nameEncode:
		if len(arguments) == 2 {
			text, ok := arguments[0].(pyText)
			code, ok2 := word(arguments[1])
			if ok && ok2 && strings.EqualFold(strings.ReplaceAll(code, "-", ""), "latin1") {
				if b, ok := latin1(text); ok {
					return b, nil
				}
			}
		}
	case nameScalar:
		if len(arguments) == 2 {
			d, ok := arguments[0].(*pyDType)
			raw, ok2 := arguments[1].(pyBytes)
			if ok && ok2 && len(raw) == d.Size {
				if d.Float() {
					return d.Number(raw, 0), nil
				}
				return d.Int(raw, 0), nil
			}
		}
	case nameFromBuffer:
		if len(arguments) == 4 {
			order, ok := word(arguments[3])
			a := &pyArray{}
			if ok && a.set(arguments[2], arguments[1], order == "F", arguments[0]) {
				return a, nil
			}
		}
	}
	return nil, errPickle
}

// fill gives an object its state.
func (u *unpickler) fill(object, state any) error {
	switch o := object.(type) {
	case *pyArray:
		if s, ok := state.(*pyTuple); ok && len(s.items) == 5 && o.Shape == nil {
			fortran, isBool := truth(s.items[3])
			if isBool && o.set(s.items[1], s.items[2], fortran, s.items[4]) {
				return u.copied(len(o.raw))
			}
		}
	case *pyDType:
		if s, ok := state.(*pyTuple); ok && len(s.items) > 1 {
			if order, ok := word(s.items[1]); ok {
				o.Big = order == ">"
				return nil
			}
		}
	case *pyMatrix:
		if s, ok := state.(*pyDict); ok {
			o.state = s
			return nil
		}
	}
	return errPickle
}

// set fills an array. It reports whether the bytes fit its shape.
func (a *pyArray) set(shape, kind any, fortran bool, raw any) bool {
	sizes, ok := shape.(*pyTuple)
	d, ok2 := kind.(*pyDType)
	b, ok3 := raw.(pyBytes)
	if text, isText := raw.(pyText); isText { // Python 2 text that Python 3 wrote again
		b, ok3 = latin1(text)
	}
	if !ok || !ok2 || !ok3 || len(sizes.items) > 32 {
		return false
	}
	h := numpy.Header{DType: d.DType, Fortran: fortran, Shape: []uint64{}}
	for _, s := range sizes.items {
		v, ok := s.(int64)
		if !ok || v < 0 {
			return false
		}
		h.Shape = append(h.Shape, uint64(v))
	}
	n, ok := h.Count()
	if !ok || n*uint64(d.Size) != uint64(len(b)) || slices.Max(append(h.Shape, 0)) > uint64(len(b))+1<<20 {
		return false
	}
	a.Header, a.raw = h, b
	return true
}

func truth(v any) (value, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case int64:
		return v != 0, true
	}
	return false, false
}

// word returns a string of either kind.
// word returns what is a name or a mark. All of them are short, and more would take time to copy.
func word(v any) (string, bool) {
	const longest = 256
	switch v := v.(type) {
	case pyText:
		return string(v[:min(len(v), longest)]), len(v) <= longest
	case pyBytes:
		return string(v[:min(len(v), longest)]), len(v) <= longest
	}
	return "", false
}

// rowsInMemory is a sparse matrix that was read from a pickle.
type rowsInMemory struct {
	indptr  []int64
	indices []uint32
	values  []float32
	width   int
}

var errNoMatrix = errors.New("its sparse matrix is not whole: take the file from kimiyoung/planetoid")

// part finds an array in the matrix's state.
func (m *pyMatrix) part(key string) (*pyArray, error) {
	a, ok := m.state.get(key).(*pyArray)
	if !ok || len(a.Shape) != 1 {
		return nil, errNoMatrix
	}
	return a, nil
}

// get finds the value of a key that is a string.
func (d *pyDict) get(key string) any {
	if d == nil || len(d.items)%2 != 0 {
		return nil
	}
	for i := 0; i < len(d.items); i += 2 {
		if k, ok := word(d.items[i]); ok && k == key {
			return d.items[i+1]
		}
	}
	return nil
}

// rows decodes the matrix from its state.
func (m *pyMatrix) rows() (*rowsInMemory, error) {
	shape, ok := m.state.get("_shape").(*pyTuple)
	if !ok {
		shape, ok = m.state.get("shape").(*pyTuple)
	}
	if !ok || len(shape.items) != 2 {
		return nil, errNoMatrix
	}
	height, ok := shape.items[0].(int64)
	width, ok2 := shape.items[1].(int64)
	if !ok || !ok2 || width < 0 || width > source.MaxSparseFeatures {
		return nil, errNoMatrix
	}
	indptr, err := m.part("indptr")
	if err != nil {
		return nil, err
	}
	indices, err := m.part("indices")
	if err != nil {
		return nil, err
	}
	data, err := m.part("data")
	if err != nil {
		return nil, err
	}
	entries := indices.Shape[0]
	if height < 0 || indptr.Shape[0] != uint64(height)+1 || data.Shape[0] < entries || indptr.Float() || indices.Float() {
		return nil, errNoMatrix
	}
	out := &rowsInMemory{indptr: make([]int64, height+1), indices: make([]uint32, entries), values: make([]float32, entries), width: int(width)}
	indptr.Ints(out.indptr, indptr.raw)
	for i, end := range out.indptr {
		if end < 0 || end > int64(entries) || i == 0 && end != 0 || i > 0 && end < out.indptr[i-1] {
			return nil, errNoMatrix
		}
	}
	if out.indptr[height] != int64(entries) {
		return nil, errNoMatrix
	}
	if bad := indices.Vertices(out.indices, indices.raw, uint32(width)); bad >= 0 {
		return nil, errNoMatrix
	}
	if bad := data.Floats(out.values, data.raw); bad >= 0 {
		return nil, fmt.Errorf("entry %d of its sparse matrix is %v as a float32: take the file from kimiyoung/planetoid", bad, out.values[bad])
	}
	for i, from := range out.indptr[:height] {
		row, values := out.indices[from:out.indptr[i+1]], out.values[from:out.indptr[i+1]]
		if !slices.IsSorted(row) {
			numpy.SortRow(row, values)
		}
		for j := 1; j < len(row); j++ {
			if row[j] == row[j-1] {
				return nil, fmt.Errorf("row %d has column %d twice: call sum_duplicates() on the matrix before it is saved", i, row[j])
			}
		}
	}
	return out, nil
}
