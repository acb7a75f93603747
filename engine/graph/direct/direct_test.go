package direct

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, bytes.Repeat([]byte("-"), 3*Unit), 0o600); err != nil {
		t.Fatal(err)
	}
	w := Open(path)
	defer w.Close()
	b := Buffer(2 * Unit)
	for i := range b {
		b[i] = byte(i % 251)
	}
	for what, wrote := range map[string]bool{
		"an odd place":  w.WriteAt(b, 1),
		"an odd length": w.WriteAt(b[:Unit+1], 0),
		"odd memory":    w.WriteAt(b[1:Unit+1], 0),
	} {
		if wrote {
			t.Errorf("it wrote at %s", what)
		}
	}
	want := bytes.Repeat([]byte("-"), 3*Unit)
	if w.WriteAt(b, Unit) { // not on every file system
		copy(want[Unit:], b)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file holds something else: %v", err)
	}
	w.Close()
	if w.WriteAt(b, 0) {
		t.Error("it writes when it is closed")
	}
	var none Writer
	if none.WriteAt(b, 0) {
		t.Error("the zero Writer writes")
	}
}

func TestBuffer(t *testing.T) {
	w := Writer{}
	for range 20 {
		if b := Buffer(100); len(b) != 100 || cap(b) != 100 {
			t.Fatalf("%d of %d bytes", len(b), cap(b))
		}
	}
	w.Close()
	if open := Open(filepath.Join(t.TempDir(), "none")); open.file != nil {
		t.Error("there is a way into a file that is not there")
	}
}
