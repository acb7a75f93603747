package main

import (
	"slices"
	"testing"
)

// Rows differ in name, and a run counts for its row, program, protocol and seed alone.
func TestRunsOfRows(t *testing.T) {
	var ids []string
	for _, r := range rows() {
		ids = append(ids, r.id())
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n == 0 || n != len(ids) {
		t.Fatalf("%d rows have %d names", len(ids), n)
	}
	r := rows()[0]
	one := run{Row: r.id(), By: ours, Protocol: r.protocol}
	beyond, other, changed := one, one, one
	beyond.Seed, other.By, changed.Protocol = uint64(r.Seeds), theirs, protocol{}
	if some := of([]run{one, beyond, other, changed}, r, ours); len(some) != 1 {
		t.Errorf("%d of four runs count", len(some))
	}
}
