package read

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// A pickle is Python's way to write down objects: a program for a small machine
// with a stack. Run by Python it may call any function. Here it builds inert values
// only, and stops at any name that is not on a short list.
//
// Values are nil, bool, int64, float64, pyText, pyBytes, *pyList, *pyTuple, *pyDict,
// pyName, *pyDType, *pyArray and *pyMatrix.
type (
	pyText  string
	pyBytes []byte
	pyName  string // of a class or function on the list
	pyList  struct{ items []any }
	pyTuple struct{ items []any }
	pyDict  struct{ items []any } // a key, its value, the next key
	pyDType struct{ dtype }
	// pyArray is an array of NumPy.
	pyArray struct {
		npyHeader
		raw pyBytes
	}
	// pyMatrix is a sparse matrix of SciPy; its state comes last.
	pyMatrix struct{ state *pyDict }
)

// unpickler runs one pickle.
type unpickler struct {
	from *bufio.Reader
	size int64 // of the file
	read int64
	// Values and marks. A mark is where on the stack it stands.
	stack []any
	marks []int
	memo  []any
	// containers is how many lists and the like there are. Each takes a few bytes
	// in the file and many more here.
	containers int64
}

var (
	errPickle      = errors.New("it is damaged or no pickle of Python")
	errPickleEarly = errors.New("it ends too early")
)

// unpickle reads what a pickle of size bytes holds. What it allocates is at most
// some tens of times as much.
func unpickle(r io.Reader, size int64) (any, error) {
	u := &unpickler{from: bufio.NewReaderSize(r, 64<<10), size: size}
	for {
		op, err := u.byte()
		if err != nil {
			return nil, err
		}
		if op == '.' {
			return u.pop()
		}
		if err := u.step(op); err != nil {
			return nil, err
		}
	}
}

func (u *unpickler) byte() (byte, error) {
	b, err := u.from.ReadByte()
	if err != nil {
		return 0, early(err)
	}
	u.read++
	return b, nil
}

func early(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errPickleEarly
	}
	return err
}

// bytes reads n bytes, if the file can have as many.
func (u *unpickler) bytes(n uint64) ([]byte, error) {
	if n > uint64(max(u.size-u.read, 0)) {
		return nil, errPickleEarly
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(u.from, b); err != nil {
		return nil, early(err)
	}
	u.read += int64(n)
	return b, nil
}

// little reads a number of n bytes, the least significant first.
func (u *unpickler) little(n int) (uint64, error) {
	var v uint64
	for i := range n {
		b, err := u.byte()
		if err != nil {
			return 0, err
		}
		v |= uint64(b) << (8 * i)
	}
	return v, nil
}

// sized reads bytes behind their length, which has n bytes itself.
func (u *unpickler) sized(n int) ([]byte, error) {
	length, err := u.little(n)
	if err != nil {
		return nil, err
	}
	return u.bytes(length)
}

// line reads up to a line's end, which it leaves out.
func (u *unpickler) line() ([]byte, error) {
	var line []byte
	for {
		part, err := u.from.ReadSlice('\n')
		line = append(line, part...)
		u.read += int64(len(part))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, early(err)
		}
		return line[:len(line)-1], nil
	}
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

// floor is where what may be popped begins: above the last mark.
func (u *unpickler) floor() int {
	if len(u.marks) == 0 {
		return 0
	}
	return u.marks[len(u.marks)-1]
}

func (u *unpickler) pop() (any, error) {
	if len(u.stack) <= u.floor() {
		return nil, errPickle
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v, nil
}

func (u *unpickler) top() (any, error) {
	if len(u.stack) <= u.floor() {
		return nil, errPickle
	}
	return u.stack[len(u.stack)-1], nil
}

// popMark takes all that is above the last mark. The slice is the stack's, and
// valid until the next push.
func (u *unpickler) popMark() ([]any, error) {
	if len(u.marks) == 0 {
		return nil, errPickle
	}
	at := u.floor()
	u.marks = u.marks[:len(u.marks)-1]
	items := u.stack[at:]
	u.stack = u.stack[:at]
	return items, nil
}

// container counts one more.
func (u *unpickler) container() error {
	const free, bytesEach = 64, 4
	if u.containers++; u.containers > free+u.size/bytesEach {
		return fmt.Errorf("it holds more lists than its %d bytes can need", u.size)
	}
	return nil
}

func (u *unpickler) pushTuple(items []any) error {
	if err := u.container(); err != nil {
		return err
	}
	u.push(&pyTuple{append([]any(nil), items...)})
	return nil
}

// remember puts the top of the stack under a number. Python numbers in order; what
// is far ahead of that is no honest number.
func (u *unpickler) remember(at uint64) error {
	v, err := u.top()
	if err != nil {
		return err
	}
	if at > uint64(u.read) {
		return errPickle
	}
	for uint64(len(u.memo)) <= at {
		u.memo = append(u.memo, nil)
	}
	u.memo[at] = v
	return nil
}

func (u *unpickler) recall(at uint64) error {
	if at >= uint64(len(u.memo)) {
		return errPickle
	}
	u.push(u.memo[at])
	return nil
}
