//go:build long

package baseline

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestBothDrawTheSame(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	topology := ring(t, 5003, 1000, 1000, 2500, 5003)
	w, err := Build(t.Context(), topology)
	if errors.Is(err, exec.ErrNotFound) && strings.Contains(err.Error(), "install it") {
		return // as it should be, without a compiler
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, fanouts := range [][]int{{5}, {0}, {10, 25}, {15, 10, 5}, {70, 0}} {
		for threads := range 3 {
			work := Work{Fanouts: fanouts, Seed: 3, Epoch: 4, Roots: roots(5003)[:1500], Batch: 128, Threads: threads + 1}
			ours, err := Ours(topology, work)
			if err != nil || ours.Edges == 0 || ours.Checksum == 0 {
				t.Fatalf("%+v, %v", ours, err)
			}
			theirs, err := w.Run(t.Context(), work)
			if err != nil || theirs.Rate() <= 0 || theirs.CPU <= 0 {
				t.Fatalf("%+v, %v", theirs, err)
			}
			if err := agree(ours, theirs); err != nil {
				t.Errorf("fan-outs %v: %v", fanouts, err)
			}
		}
	}
	work := Work{Fanouts: []int{3}, Roots: roots(5003)[:100], Batch: 10, Threads: 1}
	c, err := Compare(t.Context(), w, work, 3)
	if err != nil || c.Edges == 0 || c.Ours <= 0 || c.Theirs <= 0 || c.Ratio <= 0 {
		t.Errorf("%+v, %v", c, err)
	}
	theirs, err := w.Run(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	work.Seed++
	if ours, err := Ours(topology, work); err != nil || agree(ours, theirs) == nil {
		t.Errorf("another seed draws the same (%v)", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("%v is left behind (%v)", left, err)
	}
}
