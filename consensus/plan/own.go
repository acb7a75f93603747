package plan

import "reflect"

// Own returns about how many bytes a state takes that one before it does not share: its maps, and
// histories and shards that have changed.
func (s *State) Own(before *State) int {
	n := (len(s.Members)*size[Member]() + len(s.Gone)*size[Gone]() + len(s.Tokens)*size[Token]() +
		len(s.Datasets)*size[Dataset]() + len(s.Jobs)*size[Job]()) * 2 // a map has free places
	for id, j := range s.Jobs {
		n += others(j.History, before.Jobs[id].History) + others(j.Schedule, before.Jobs[id].Schedule)
	}
	for id, d := range s.Datasets {
		n += others(d.Shards, before.Datasets[id].Shards)
	}
	return n
}

func size[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// others returns the bytes of a list, or 0 if it is the same memory as another one.
func others[T any](list, before []T) int {
	if len(list) == 0 || len(before) >= len(list) && &list[0] == &before[0] {
		return 0
	}
	return len(list) * size[T]()
}
