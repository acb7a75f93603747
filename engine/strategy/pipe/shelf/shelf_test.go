package shelf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// arrays are some of all sizes, around those at which they are written.
func arrays() (all [][]int32) {
	for i, n := range []int{1, 0, 16, 17, together/4 - 1, 5, together / 4, 3, together, 7, together/4 - 32, 31, 2, 100_000} {
		a := make([]int32, n)
		for j := range a {
			a[j] = int32(i*1_000_000 + j)
		}
		all = append(all, a)
	}
	return all
}

// whole puts all and reads them again.
func whole(t *testing.T, s *Shelf) error {
	t.Helper()
	var at []Array[int32]
	for _, a := range arrays() {
		where, err := Put(s, a)
		if err != nil {
			return err
		}
		at = append(at, where)
	}
	if err := s.Map(); err != nil {
		return err
	}
	for i, a := range arrays() {
		if got := Get(s, at[i]); !slices.Equal(got, a) {
			t.Errorf("array %d of %d elements comes back with %d others", i, len(a), len(got))
		}
	}
	return nil
}

// Arrays come back as they were put, from a file and from memory.
func TestArrays(t *testing.T) {
	dir := t.TempDir()
	for _, in := range []string{dir, ""} {
		s := New(in, 0)
		if err := whole(t, s); err != nil {
			t.Error(err)
		}
		if held := s.Held(); (held == 0) != Files(in) {
			t.Errorf("in %q, %d bytes are in memory", in, held)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("the folder has %v, %v", all, err)
	}
	if s := New(dir, 0); s.Map() != nil || s.Close() != nil {
		t.Error("a shelf without arrays can't be read")
	}
	if _, err := Put(New(dir+"/none", 0), []int64{1}); err != nil {
		t.Errorf("where there is no folder: %v", err) // there are no files
	}
}

// A block comes back with its values and its transpose, or without them.
func TestBlocks(t *testing.T) {
	s := New(t.TempDir(), 0)
	blocks := []*sample.Block{
		{Vertices: []uint32{7, 9, 1}, CSR: tensor.CSR{Rows: 2, Cols: 3, Indptr: []int64{0, 2, 3}, Indices: []int32{0, 2, 1}, Values: []float32{1, 2, 3}}},
		{Vertices: []uint32{4}, CSR: tensor.CSR{Rows: 1, Cols: 1, Indptr: []int64{0, 0}}},
	}
	blocks[0].Transpose()
	var at []Block
	for _, b := range blocks {
		where, err := PutBlock(s, b)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, where)
	}
	if err := s.Map(); err != nil {
		t.Fatal(err)
	}
	text := func(b *sample.Block) string {
		turned := tensor.Transpose{}
		if b.Transposed != nil {
			turned = *b.Transposed
		}
		return fmt.Sprint(b.Rows, b.Cols, b.Vertices, b.Indptr, b.Indices, b.Values, turned)
	}
	for i, b := range blocks {
		if got := at[i].Get(s); text(got) != text(b) {
			t.Errorf("block %d is %v in place of %v", i, text(got), text(b))
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Rows are zeros first, and then what was written, in a file and in memory.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	for _, in := range []string{dir, ""} {
		r, err := NewRows(in, 10_000, 0)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Max(r.Bytes()) != 0 || len(r.Bytes()) != 10_000 || (r.Held() == 0) != Files(in) || r.Full() != nil {
			t.Errorf("in %q: %d bytes of which %d are in memory, %v", in, len(r.Bytes()), r.Held(), r.Full())
		}
		for _, b := range []byte{1, 2} {
			want := slices.Repeat([]byte{b}, 5000)
			if err := r.Write(want, 4000); err != nil || !slices.Equal(r.Bytes()[4000:9000], want) || r.Bytes()[3999]+r.Bytes()[9000] != 0 {
				t.Errorf("in %q, %d: other bytes come back: %v", in, b, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("the folder has %v, %v", all, err)
	}
	var none *Rows
	if none.Held() != 0 || none.Full() != nil || none.Close() != nil {
		t.Error("none are not none")
	}
}

// inChild is set in the process that TestFullDisk begins, whose files may not grow.
const inChild = "HOPMESH_SHELF_FULL"

// On a full disk, arrays that memory has room for come back all the same, those that are in
// the file already from there. Where memory has no room either, it is an error in one line.
func TestFullDisk(t *testing.T) {
	if os.Getenv(inChild) != "" {
		underLimit(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	child.Env = append(os.Environ(), inChild+"=1")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk") {
		t.Errorf("%v: %s", err, out)
	}
}

func underLimit(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ) // so that a write fails as on a full disk, after a part of it
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []uint64{0, 100, together, together + 100, 2*together + 5000, 5 * together} {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		s := New(t.TempDir(), 1<<30)
		if err := whole(t, s); err != nil || s.Full() == nil || s.Held() == 0 {
			t.Errorf("%d bytes of disk: %v; %v, %d bytes in memory", bytes, err, s.Full(), s.Held())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		const rows = 6 * together
		if r, err := NewRows(t.TempDir(), rows, rows); err != nil || r.Full() == nil || r.Held() != rows || r.Write([]byte{1}, rows-1) != nil || r.Close() != nil {
			t.Errorf("%d bytes of disk: %v", bytes, err)
		}
		if _, err := NewRows(t.TempDir(), rows, rows-1); !errors.Is(err, unix.EFBIG) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), "free some space there") != 1 {
			t.Errorf("%d bytes of disk, and no memory: %v", bytes, err)
		}
		s = New(t.TempDir(), 1000)
		err := whole(t, s)
		if !errors.Is(err, unix.EFBIG) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), "free some space there") != 1 {
			t.Errorf("%d bytes of disk, and no memory: %v", bytes, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
