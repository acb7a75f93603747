package build

import "testing"

// A hole is of whole blocks within what is freed.
func TestHolesAreOfWholeBlocks(t *testing.T) {
	for _, c := range [][4]int64{{0, 100, 0, 0}, {0, 4096, 0, 4096}, {100, 4096, 4096, 0}, {100, 8191, 4096, 4096}, {4000, 5000, 4096, 4096}} {
		if first, bytes := whole(c[0], c[1]); first != c[2] || bytes != c[3] {
			t.Errorf("of %d bytes at %d, %d at %d are freed", c[1], c[0], bytes, first)
		}
	}
}
