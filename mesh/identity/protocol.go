package identity

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Range is the numbers of one kind that a program works with, from Min to Max. It is text as
// "1" or "1-2". The zero value is a program's from before there were numbers, which counts as 1.
type Range struct{ Min, Max int }

// maxNumber bounds what is believed of others.
const maxNumber = 1 << 16

var errRange = errors.New("no range of numbers, such as 1 or 1-2")

func (r Range) norm() Range {
	if r == (Range{}) {
		return Range{1, 1}
	}
	return r
}

func (r Range) String() string {
	if r = r.norm(); r.Min == r.Max {
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

// Common returns the highest number that both work with.
func (r Range) Common(o Range) (n int, ok bool) {
	r, o = r.norm(), o.norm()
	n = min(r.Max, o.Max)
	return n, n >= max(r.Min, o.Min)
}

// ParseRange parses a range that another node has sent. The empty text is the zero Range.
func ParseRange(s string) (Range, error) {
	if s == "" {
		return Range{}, nil
	}
	low, high, more := strings.Cut(s, "-")
	if !more {
		high = low
	}
	var r Range
	var err, err2 error
	r.Min, err = strconv.Atoi(low)
	r.Max, err2 = strconv.Atoi(high)
	if err != nil || err2 != nil || r.Min < 1 || r.Max < r.Min || r.Max > maxNumber || r.String() != s {
		return Range{}, fmt.Errorf("%w: %.20q", errRange, s)
	}
	return r, nil
}

// MarshalText returns r as String does.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses what another node has sent.
func (r *Range) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRange(string(b))
	return err
}

// Wire is what this program speaks on the wire. CONTRIBUTING.md says when to raise it.
var Wire = Range{1, 1}

// protocolPrefix begins the names of all protocols of hopmesh, of any version.
const protocolPrefix = "hopmesh-"

// offers lists a members' protocol in each version, the highest first: the server chooses the
// first of its own that the client has.
func offers(protocol string, wire Range) (list []string) {
	wire = wire.norm()
	for n := wire.Max; n >= wire.Min; n-- {
		list = append(list, fmt.Sprintf("%s/%d", protocol, n))
	}
	return list
}

// Protocol takes the name of a negotiated protocol apart. The number is 0 unless this is the
// name of one of hopmesh's protocols.
func Protocol(negotiated string) (protocol string, wire int) {
	protocol, number, _ := strings.Cut(negotiated, "/")
	if r, err := ParseRange(number); err == nil && r.Min == r.Max && strings.HasPrefix(protocol, protocolPrefix) {
		return protocol, r.Min
	}
	return protocol, 0
}
