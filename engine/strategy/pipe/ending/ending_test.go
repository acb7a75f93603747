package ending

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestMessages(t *testing.T) {
	rows := []byte{1, 2, 3, 4}
	b := Append(nil, math.Pi, Settle|Late, rows)
	loss, word, rest, err := Read(b, len(rows))
	if err != nil || loss != math.Pi || word != Settle|Late || !bytes.Equal(rest, rows) {
		t.Errorf("%v, %v, %v, %v", loss, word, rest, err)
	}
	for _, c := range []struct {
		b         []byte
		gradients int
	}{{b, 0}, {b, len(rows) + 4}, {b[:Bytes-1], 0}, {nil, 0}, {append(make([]byte, Bytes-1), byte(words)), 0}} {
		if _, _, _, err := Read(c.b, c.gradients); err == nil || !strings.Contains(err.Error(), "run the same version") {
			t.Errorf("%v with %d bytes of gradients: %v", c.b, c.gradients, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(Append(nil, 1, Mark, []byte{1, 2}), 2)
	f.Fuzz(func(t *testing.T, b []byte, gradients int) {
		if gradients < 0 {
			return // it follows from the model
		}
		loss, word, rest, err := Read(b, gradients)
		if err != nil {
			return
		}
		if again := Append(nil, loss, word, rest); !bytes.Equal(again, b) {
			t.Errorf("%v was %v", again, b)
		}
	})
}
