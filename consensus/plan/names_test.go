package plan

import (
	"slices"
	"testing"
)

func TestNamesForPeople(t *testing.T) {
	s := &State{Members: map[string]Member{"a": {ID: "a", Name: "na"}, "b": {ID: "b", Name: "nb"}}, Gone: map[string]Gone{"c": {Name: "nc"}, "d": {}}}
	for id, want := range map[string]string{"a": "na", "c": "nc", "d": "d", "e": "e"} {
		if got := s.NameOf(id); got != want {
			t.Errorf("node %s is called %s, not %s", id, got, want)
		}
	}
	if got := s.NodesNamed([]string{"b", "a"}); got != "node na and node nb" {
		t.Errorf("got %s", got)
	}
}

func TestOwnersInTheOrderOfTheirShards(t *testing.T) {
	d := Dataset{Nodes: []string{"a", "b"}, Shards: []Shard{{Holders: []int{1}}, {}, {Holders: []int{0, 1}}, {Holders: []int{1}}}}
	if got := d.Owners(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("got %v", got)
	}
}
