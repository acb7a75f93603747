// Package shardtable finds the shard of a vertex while edges are shared out.
package shardtable

// A Table finds the shard of a new id. For each range of 1<<shift ids it holds the
// shard of the first; most ranges lie in one shard.
type Table struct {
	First []uint32 // id of each shard, and the number of all ids
	begin []uint16
	shift uint
}

// New returns the table of shards that begin at these ids.
func New(first []uint32) *Table {
	t := &Table{First: first}
	total := first[len(first)-1]
	for total>>t.shift >= 1<<12 {
		t.shift++
	}
	t.begin = make([]uint16, total>>t.shift+1)
	shard := 0
	for i := range t.begin {
		for shard+2 < len(first) && first[shard+1] <= uint32(i)<<t.shift {
			shard++
		}
		t.begin[i] = uint16(shard)
	}
	return t
}

// Shard returns the shard of an id.
func (t *Table) Shard(id uint32) int {
	shard := int(t.begin[id>>t.shift])
	for t.First[shard+1] <= id {
		shard++
	}
	return shard
}
