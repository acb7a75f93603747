package plan

import "slices"

// places is one shard's current and wanted holders, by node id.
type places struct{ holders, wanted []string }

// settle brings a shard's places into canonical form. If the wanted owner holds the
// shard, it comes first among the holders. Wanted is kept only as long as one of its
// nodes is missing; after that, holders that are not wanted are dropped.
func (p places) settle() places {
	if len(p.wanted) == 0 {
		return places{holders: p.holders}
	}
	if at := slices.Index(p.holders, p.wanted[0]); at > 0 {
		p.holders = slices.Insert(slices.Delete(p.holders, at, at+1), 0, p.wanted[0])
	}
	for _, id := range p.wanted {
		if !slices.Contains(p.holders, id) {
			return p
		}
	}
	return places{holders: p.wanted}
}

// rewrite stores a dataset with the places of its shards changed. The old dataset is
// not modified: change gets slices of its own. It reports whether the change matters to
// running work and so needs a new generation: the dataset becomes ready, or it is ready
// and a shard has another owner.
func (s *State) rewrite(before Dataset, change func(shard int, p places) places) (news bool) {
	after := before
	after.Shards = slices.Clone(before.Shards)
	rows := make([]places, len(before.Shards))
	ids := map[string]int{}
	for i := range rows {
		p := places{holders: before.HoldersOf(i), wanted: before.named(before.Shards[i].Wanted)}
		rows[i] = change(i, p).settle()
		for _, id := range rows[i].holders {
			ids[id] = 0
		}
		for _, id := range rows[i].wanted {
			ids[id] = 0
		}
	}
	after.Nodes = make([]string, 0, len(ids))
	for id := range ids {
		after.Nodes = append(after.Nodes, id)
	}
	slices.Sort(after.Nodes)
	for i, id := range after.Nodes {
		ids[id] = i
	}
	settled, moved := true, false
	for i, p := range rows {
		after.Shards[i].Holders, after.Shards[i].Wanted = indices(p.holders, ids), indices(p.wanted, ids)
		settled = settled && after.Settled(i) && !after.Lost(i)
		moved = moved || after.Owner(i) != before.Owner(i)
	}
	if settled {
		after.Stage = Ready
	}
	s.Datasets[after.ID] = after
	return after.Stage == Ready && (moved || before.Stage != Ready)
}

// indices returns nil for an empty list, as decoding a snapshot does.
func indices(list []string, of map[string]int) []int {
	if len(list) == 0 {
		return nil
	}
	at := make([]int, len(list))
	for i, id := range list {
		at[i] = of[id]
	}
	return at
}
