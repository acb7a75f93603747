package plan

import (
	"slices"
	"strings"
)

// NameOf returns the name of a node, or its id if the plan knows no name.
func (s *State) NameOf(id string) string {
	if m, in := s.Members[id]; in {
		return m.Name
	}
	if g, gone := s.Gone[id]; gone && g.Name != "" {
		return g.Name
	}
	return id
}

// NodesNamed lists nodes in words: "node a", or "node a and node b".
func (s *State) NodesNamed(ids []string) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = "node " + s.NameOf(id)
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

// Owners lists the nodes that own shards, in the order of the first shard each owns.
func (d Dataset) Owners() []string {
	var list []string
	for i := range d.Shards {
		if owner := d.Owner(i); owner != "" && !slices.Contains(list, owner) {
			list = append(list, owner)
		}
	}
	return list
}
