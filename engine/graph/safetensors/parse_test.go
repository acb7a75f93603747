package safetensors

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// TestWhatLiesInMemoryIsRead parses a file at places that are aligned and that are not.
func TestWhatLiesInMemoryIsRead(t *testing.T) {
	l, err := NewLayout([]Tensor{{"a", I64, []int64{2}}, {"b", F32, []int64{1}}}, map[string]string{"x": "y"})
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.NewBuffer(l.Header())
	if err := binary.Write(b, binary.LittleEndian, struct {
		A [2]int64
		B float32
	}{[2]int64{-1, 5}, 2.5}); err != nil {
		t.Fatal(err)
	}
	for at := range 9 {
		whole := append(make([]byte, at), b.Bytes()...)[at:]
		f, err := Parse("it", whole)
		if err != nil {
			t.Fatal(err)
		}
		see(t, f, "a", []int64{-1, 5})
		see(t, f, "b", []float32{2.5})
		if f.Size() != l.Size() || f.Metadata()["x"] != "y" {
			t.Errorf("%d bytes, %v", f.Size(), f.Metadata())
		}
		if _, _, err := View[float32](f, "c"); err == nil || !strings.Contains(err.Error(), "it has no tensor") {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	for n := range b.Len() {
		if _, err := Parse("it", b.Bytes()[:n]); err == nil || !strings.Contains(err.Error(), "parse it: ") {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}
