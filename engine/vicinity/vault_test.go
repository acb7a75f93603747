package vicinity

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// Arrays are what was added, however that was cut, in files and in memory.
func TestArraysAreWhatWasAdded(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, filed := range []bool{false, true} {
		in := vaultOf(t, filed)
		for _, n := range []int{0, 1, pending/8 - 1, pending / 8, 3*pending/8 + 5} {
			want := make([]int64, n)
			for i := range want {
				want[i] = r.Int64()
			}
			a := array[int64]{in: in}
			for rest := want; len(rest) > 0; {
				some := min(len(rest), 1+r.IntN(n))
				if err := a.add(rest[:some]); err != nil {
					t.Fatal(err)
				}
				rest = rest[some:]
			}
			got, err := a.end()
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("files %v: %d of %d elements, %v", filed, len(got), n, err)
			}
			if kept, err := Keep(in, want); err != nil || !slices.Equal(kept, want) {
				t.Errorf("files %v: %d of %d elements are kept, %v", filed, len(kept), n, err)
			}
		}
	}
}

// An array that could not be written once is never mapped, even if there is room again: it
// lacks elements, and what is read beyond its file would end the process.
func TestAnArrayThatWasNotWritten(t *testing.T) {
	in := vaultOf(t, true)
	path := t.TempDir() + "/array"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full, err := os.Open(path) // can't be written to
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	a := array[int64]{in: in, file: full}
	if err := a.add(make([]int64, pending)); err == nil {
		t.Fatal("it was written")
	}
	if a.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	if got, err := a.end(); err == nil {
		t.Errorf("%d elements are mapped", len(got))
	}
}

// A folder that can't be written to is an error, which says what it was for.
func TestAVaultWithoutAFolder(t *testing.T) {
	in := NewVault(t.TempDir() + "/none")
	shards := shardsOf(kind{}, 9, 7)
	_, all := sourcesOf(t, shards, 2, []int{0, 1})
	if _, err := all[0].Edges(t.Context(), in, []uint32{9, 12}, nil, nil); err == nil || !strings.Contains(err.Error(), "make a file for what groups see") {
		t.Error(err)
	}
	if _, err := all[0].Rows(t.Context(), in, []uint32{9, 12}, nil, nil); err == nil || !strings.Contains(err.Error(), "make a file for what groups see") {
		t.Error(err)
	}
	if err := in.Close(); err != nil || in.Size() != 0 {
		t.Errorf("%d bytes are left, %v", in.Size(), err)
	}
}
