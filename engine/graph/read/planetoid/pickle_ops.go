package planetoid

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// step runs one operation. Those that reach outside of the pickle are refused.
func (u *unpickler) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		v, err := u.byte()
		if err == nil && v > 5 {
			err = fmt.Errorf("it is a pickle of protocol %d, and those up to 5 are known", v)
		}
		return err
	case 0x95: // FRAME: how much follows, which shows by itself
		_, err := u.little(8)
		return err
	case '(': // MARK
		u.marks = append(u.marks, len(u.stack))
		return nil
	case '0': // POP
		_, err := u.pop()
		return err
	case '1': // POP_MARK
		_, err := u.popMark()
		return err
	case '2': // DUP
		v, err := u.top()
		u.push(v)
		return err
	case 'N': // NONE
		u.push(nil)
		return nil
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		u.push(op == 0x88)
		return nil
	case 'I', 'L', 'F', 'J', 'K', 'M', 0x8a, 0x8b, 'G':
		return u.number(op)
	case 'S', 'V', 'T', 'U', 'X', 'B', 'C', 0x8c, 0x8d, 0x8e, 0x96:
		return u.string(op)
	case ']', 'l', 'a', 'e', ')', 't', 0x85, 0x86, 0x87, '}', 'd', 's', 'u':
		return u.collect(op)
	case 'p', 'q', 'r', 'g', 'h', 'j', 0x94:
		return u.refer(op)
	case 'c', 0x93, 'R', 0x81, 'b':
		return u.object(op)
	case 'i', 'o', 'P', 'Q', 0x82, 0x83, 0x84, 0x92, 0x97, 0x98, 0x8f, 0x90, 0x91:
		return fmt.Errorf("it uses the pickle operation %#02x, which plain arrays and dicts do not need", op)
	}
	return errPickle
}

func (u *unpickler) number(op byte) error {
	switch op {
	case 'I', 'L', 'F':
		b, err := u.line()
		if err != nil {
			return err
		}
		s := strings.TrimSuffix(string(b), "\r")
		switch {
		case op == 'I' && (s == "00" || s == "01"):
			u.push(s == "01")
		case op == 'F':
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return errPickle
			}
			u.push(v)
		default:
			v, err := strconv.ParseInt(strings.TrimSuffix(s, "L"), 10, 64)
			if err != nil {
				return errPickle
			}
			u.push(v)
		}
	case 'J':
		v, err := u.little(4)
		u.push(int64(int32(v)))
		return err
	case 'K':
		v, err := u.byte()
		u.push(int64(v))
		return err
	case 'M':
		v, err := u.little(2)
		u.push(int64(v))
		return err
	case 'G':
		b, err := u.bytes(8)
		if err != nil {
			return err
		}
		u.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	default: // LONG1, LONG4
		width := 1
		if op == 0x8b {
			width = 4
		}
		b, err := u.sized(width)
		if err != nil {
			return err
		}
		if len(b) > 8 {
			return fmt.Errorf("it holds an integer of %d bytes", len(b))
		}
		var v uint64
		for i, c := range b {
			v |= uint64(c) << (8 * i)
		}
		unused := 64 - 8*len(b)
		u.push(int64(v<<unused) >> unused)
	}
	return nil
}

func (u *unpickler) string(op byte) error {
	switch op {
	case 'S', 'V':
		b, err := u.line()
		if err != nil {
			return err
		}
		if op == 'V' {
			s, ok := unescapeText(b)
			if !ok {
				return errPickle
			}
			u.push(pyText(s))
			return nil
		}
		if b = unquote(b); b == nil {
			return errPickle
		}
		u.push(pyBytes(b))
		return nil
	}
	width := 4
	switch op {
	case 'U', 'C', 0x8c:
		width = 1
	case 0x8d, 0x8e, 0x96:
		width = 8
	}
	b, err := u.sized(width)
	if err != nil {
		return err
	}
	if op == 'X' || op == 0x8c || op == 0x8d {
		u.push(pyText(b))
	} else {
		u.push(pyBytes(b))
	}
	return nil
}

func (u *unpickler) refer(op byte) error {
	var at uint64
	var err error
	switch op {
	case 'p', 'g':
		var b []byte
		if b, err = u.line(); err == nil {
			if at, err = strconv.ParseUint(string(b), 10, 32); err != nil {
				return errPickle
			}
		}
	case 'q', 'h':
		at, err = u.little(1)
	case 'r', 'j':
		at, err = u.little(4)
	default: // MEMOIZE
		at = uint64(len(u.memo))
	}
	if err != nil {
		return err
	}
	if op == 'g' || op == 'h' || op == 'j' {
		return u.recall(at)
	}
	return u.remember(at)
}

func (u *unpickler) collect(op byte) error {
	switch op {
	case ']', '}':
		if op == ']' {
			u.push(&pyList{})
		} else {
			u.push(&pyDict{})
		}
		return u.container()
	case ')':
		u.push(&pyTuple{})
		return u.container()
	case 0x85, 0x86, 0x87:
		n := int(op) - 0x84
		if len(u.stack)-u.floor() < n {
			return errPickle
		}
		items := u.stack[len(u.stack)-n:]
		u.stack = u.stack[:len(u.stack)-n]
		return u.pushTuple(items)
	case 'a', 's':
		n := 1
		if op == 's' {
			n = 2
		}
		if len(u.stack)-u.floor() < n {
			return errPickle
		}
		items := u.stack[len(u.stack)-n:]
		u.stack = u.stack[:len(u.stack)-n]
		return u.extend(items, op == 'a')
	}
	items, err := u.popMark()
	if err != nil {
		return err
	}
	switch op {
	case 'e', 'u':
		return u.extend(items, op == 'e')
	case 't':
		return u.pushTuple(items)
	case 'l':
		u.push(&pyList{append([]any(nil), items...)})
	default: // DICT
		if len(items)%2 != 0 {
			return errPickle
		}
		u.push(&pyDict{append([]any(nil), items...)})
	}
	return u.container()
}

// extend appends items, which were on the stack, to the list or dict below.
func (u *unpickler) extend(items []any, list bool) error {
	v, err := u.top()
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case *pyList:
		if list {
			v.items = append(v.items, items...)
			return nil
		}
	case *pyDict:
		if !list && len(items)%2 == 0 {
			v.items = append(v.items, items...)
			return nil
		}
	}
	return errPickle
}
