package graph

import (
	"slices"
	"testing"
)

// A set of rows takes no more than a bit for each row, and little where few rows are in it.
func TestRowSets(t *testing.T) {
	for _, rows := range []int{0, 1, 63, 64, 65, 1000, 30_000} {
		for _, every := range []int{1, 2, 7, 9, 300, 20_000} {
			has := func(row int) bool { return row%every == every/2 }
			var want []int
			for row := range rows {
				if has(row) {
					want = append(want, row)
				}
			}
			s := newRowSet(rows, has)
			if got := slices.Collect(s.All()); !slices.Equal(got, want) || s.Count() != uint64(len(want)) {
				t.Fatalf("%d of %d rows came back as %d", len(want), rows, len(got))
			}
			for row := range s.All() { // which may end early
				if row != want[0] {
					t.Fatal(row)
				}
				break
			}
			if bytes := len(s.gaps) + 8*len(s.bits); bytes > (rows+63)/64*8 || bytes > 3*len(want) && s.bits == nil {
				t.Errorf("%d of %d rows take %d bytes", len(want), rows, bytes)
			}
		}
	}
}
