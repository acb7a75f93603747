package trained_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/epoch"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// The hash of a share is what it was, and nothing else is taken for one.
func TestTheHashOfAShare(t *testing.T) {
	var h trained.Share
	hash := strings.Repeat("0a", 32)
	if err := h.Sign(hash); err != nil || h.Hash[31] != 10 {
		t.Errorf("%x, %v", h.Hash, err)
	}
	for _, wrong := range []string{"0a", "x"} {
		if err := new(trained.Share).Sign(wrong); err == nil {
			t.Errorf("%q is taken for a digest", wrong)
		}
	}
	if err := new(trained.Share).Sign(""); err != nil {
		t.Error(err) // others report it
	}
}

// FuzzShare reads what nodes report to each other, which may be anything.
func FuzzShare(f *testing.F) {
	for _, v := range []any{&trained.Share{Seconds: 1, Rows: epoch.Rows{Local: 5}}, &trained.Share{Seconds: math.NaN()}} {
		b, err := binary.Append(nil, binary.LittleEndian, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h trained.Share
		if err := h.Read(b); err == nil && (h.Seconds < 0 || math.IsNaN(h.Seconds) || len(b) != binary.Size(&h)) {
			t.Errorf("%+v", h)
		}
	})
}
