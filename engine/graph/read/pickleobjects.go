package read

import (
	"fmt"
	"slices"
	"strings"
)

// What a name stands for. None of it is ever called.
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

// pickleNames is all that a pickle may name, by where Python 2, Python 3 and NumPy's
// and SciPy's versions have it.
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

// object does the operations that in Python make objects.
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
	u.push(v)
	return nil
}

func (u *unpickler) name(module, name string) error {
	full := module + "." + name
	if pickleNames[full] == 0 {
		return fmt.Errorf("it names %s, which Python would execute, and only arrays, sparse matrices and dicts are read: get the file from where it was published", shorten([]byte(full)))
	}
	u.push(pyName(full))
	return nil
}

// build makes the inert value that a call would have made.
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
				d, err := parseDType(descr)
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
			if ok && ok2 && len(raw) == d.size {
				if d.float() {
					return d.number(raw, 0), nil
				}
				return d.int(raw, 0), nil
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
		if s, ok := state.(*pyTuple); ok && len(s.items) == 5 && o.shape == nil {
			fortran, isBool := truth(s.items[3])
			if isBool && o.set(s.items[1], s.items[2], fortran, s.items[4]) {
				return nil
			}
		}
	case *pyDType:
		if s, ok := state.(*pyTuple); ok && len(s.items) > 1 {
			if order, ok := word(s.items[1]); ok {
				o.big = order == ">"
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

// set checks that an array has the bytes that it needs.
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
	h := npyHeader{dtype: d.dtype, fortran: fortran, shape: []uint64{}}
	for _, s := range sizes.items {
		v, ok := s.(int64)
		if !ok || v < 0 {
			return false
		}
		h.shape = append(h.shape, uint64(v))
	}
	n, ok := h.count()
	if !ok || n*uint64(d.size) != uint64(len(b)) || slices.Max(append(h.shape, 0)) > uint64(len(b))+1<<20 {
		return false
	}
	a.npyHeader, a.raw = h, b
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

// word is a string of either kind.
func word(v any) (string, bool) {
	switch v := v.(type) {
	case pyText:
		return string(v), true
	case pyBytes:
		return string(v), true
	}
	return "", false
}
