package sample

import (
	"slices"
	"testing"
	"unsafe"
)

func TestLargePagesBeginWhereTheyShould(t *testing.T) {
	for _, n := range []int{0, 1, huge / 8, huge/8 + 1, huge} {
		of := inLargePages[uint64](n)
		if len(of) != n || cap(of) != n || slices.Max(append(of, 0)) != 0 {
			t.Errorf("%d elements of %d", len(of), n)
		}
		if n*8 >= huge && uintptr(unsafe.Pointer(&of[0]))%huge != 0 {
			t.Errorf("%d elements do not begin with a page", n)
		}
	}
	if of := inLargePages[float32](huge); uintptr(unsafe.Pointer(&of[0]))%huge != 0 {
		t.Error("small elements do not begin with a page")
	}
}
