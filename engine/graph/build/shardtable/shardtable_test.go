package shardtable

import "testing"

// Each id is in the last shard that begins at or before it, among shards that are small, empty, or
// larger than a range of the table.
func TestShard(t *testing.T) {
	for _, first := range [][]uint32{
		{0, 1}, {0, 3, 3, 7}, {0, 1, 2, 3, 4}, {0, 5000, 5001, 5003, 1 << 20}, {0, 1 << 13, 1<<13 + 1, 1 << 14},
	} {
		table, shard := New(first), 0
		for id := range first[len(first)-1] {
			for first[shard+1] <= id {
				shard++
			}
			if got := table.Shard(id); got != shard {
				t.Fatalf("%v: %d is in shard %d, and not in %d", first, id, got, shard)
			}
		}
	}
}
