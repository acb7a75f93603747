package planetoid

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/graph/read/numpy"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Values are nil, bool, int64, float64, pyText, pyBytes, *pyList, *pyTuple, *pyDict,
// pyName, *pyDType, *pyArray and *pyMatrix.
type (
	pyText  string
	pyBytes []byte
	pyName  string // of a class or function on the list
	pyList  struct{ items []any }
	pyTuple struct{ items []any }
	pyDict  struct{ items []any } // a key, its value, the next key
	pyDType struct{ numpy.DType }
	// pyArray is an array of NumPy.
	pyArray struct {
		numpy.Header
		raw pyBytes
	}
	// pyMatrix is a sparse matrix of SciPy; its state comes last.
	pyMatrix struct{ state *pyDict }
)

// unpickler runs one pickle.
type unpickler struct {
	from   *bufio.Reader
	size   int64 // of the file
	read   int64
	memory *source.Memory
	full   error // there is no memory for more
	// Values and marks. A mark is where on the stack it stands.
	stack []any
	marks []int
	memo  []any
	// containers counts lists, tuples and dicts. Each takes a few bytes in the file
	// and many more in memory.
	containers int64
	// copies counts bytes of text and of arrays. A few bytes in the file may ask for any text again.
	copies int64
}

var (
	errPickle      = errors.New("it is damaged or not a pickle of Python")
	errPickleEarly = errors.New("it ends too early")
)

// unpickle reads a pickle of size bytes. What it takes beyond the bytes that the file has is counted
// in memory: values of one byte take sixteen.
func unpickle(ctx context.Context, r io.Reader, size int64, memory *source.Memory) (any, error) {
	u := &unpickler{from: bufio.NewReaderSize(r, 64<<10), size: size, memory: memory}
	defer func() { memory.Free(wordBytes * uint64(cap(u.stack)+cap(u.memo))) }()
	for steps := 0; ; steps++ {
		if steps&0xffff == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		op, err := u.byte()
		if err != nil {
			return nil, err
		}
		if op == '.' {
			return u.pop()
		}
		err = u.step(op)
		if u.full != nil {
			return nil, u.full
		}
		if err != nil {
			return nil, err
		}
	}
}

// wordBytes is what a value takes on the stack and in the memo, and listBytes what a list takes
// beside its items.
const wordBytes, listBytes = 16, 40

// grow counts memory that has been taken, or is about to be.
func (u *unpickler) grow(bytes uint64) {
	if err := u.memory.Grow(0, bytes); err != nil {
		u.full = err
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

// bytes reads n bytes, if the file can have that many.
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

func (u *unpickler) push(v any) {
	stack, err := source.Enlarge(u.memory, u.stack, 1, wordBytes)
	if err != nil {
		u.full = err
		return
	}
	u.stack = append(stack, v)
}

// floor is where the values above the last mark begin; only they may be popped.
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

// popMark removes all values above the last mark. The slice is the stack's, and
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
	u.grow(listBytes)
	return u.full
}

// copied counts bytes that were copied, or may have been. Each is meant to be once or twice.
func (u *unpickler) copied(bytes int) error {
	const free, times = 64 << 10, 4
	if u.copies += int64(bytes); u.copies > free+times*u.size {
		return fmt.Errorf("it copies its text more often than its %d bytes can need", u.size)
	}
	if u.copies > u.size { // what a reader counts has room for one copy
		u.grow(uint64(bytes))
	}
	return u.full
}

func (u *unpickler) pushTuple(items []any) error {
	if err := u.container(); err != nil {
		return err
	}
	u.push(&pyTuple{append([]any(nil), items...)})
	return nil
}

// remember stores the top of the stack under a number. Python numbers in order, so a
// number far ahead is refused.
func (u *unpickler) remember(at uint64) error {
	v, err := u.top()
	if err != nil {
		return err
	}
	if at > uint64(u.read) {
		return errPickle
	}
	if n := uint64(len(u.memo)); n <= at {
		memo, err := source.Enlarge(u.memory, u.memo, int(at+1-n), wordBytes)
		if err != nil {
			return err
		}
		u.memo = memo[:at+1]
		clear(u.memo[n:])
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

// unquote reads a string as Python 2 prints it: in quotes, with escapes. It returns
// nil if there is none.
func unquote(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\r' || b[len(b)-1] == ' ') {
		b = b[:len(b)-1]
	}
	if len(b) < 2 || b[0] != '\'' && b[0] != '"' || b[len(b)-1] != b[0] {
		return nil
	}
	b = b[1 : len(b)-1]
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		if i++; i == len(b) {
			return nil
		}
		switch c := b[i]; c {
		case 'x':
			if i+2 >= len(b) {
				return nil
			}
			v, err := strconv.ParseUint(string(b[i+1:i+3]), 16, 8)
			if err != nil {
				return nil
			}
			out = append(out, byte(v))
			i += 2
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case '\\', '\'', '"':
			out = append(out, c)
		default:
			return nil
		}
	}
	return out
}

// unescapeText reads text as Python writes it in lines: Latin-1 with \u and \U.
func unescapeText(b []byte) (string, bool) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		digits := 0
		if b[i] == '\\' && i+1 < len(b) {
			switch b[i+1] {
			case 'u':
				digits = 4
			case 'U':
				digits = 8
			}
		}
		if digits == 0 {
			out = utf8.AppendRune(out, rune(b[i]))
			continue
		}
		if i+2+digits > len(b) {
			return "", false
		}
		v, err := strconv.ParseUint(string(b[i+2:i+2+digits]), 16, 32)
		if err != nil || v > utf8.MaxRune {
			return "", false
		}
		out = utf8.AppendRune(out, rune(v))
		i += 1 + digits
	}
	return string(out), true
}

// latin1 returns the bytes that text stands for in pickles that Python 3 writes for
// Python 2.
func latin1(s pyText) (pyBytes, bool) {
	out := make(pyBytes, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return nil, false
		}
		out = append(out, byte(r))
	}
	return out, true
}
