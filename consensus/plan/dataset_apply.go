package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

func (c ReserveDataset) apply(s *State, _ uint64) error {
	d := Dataset{ID: c.ID, Name: c.Name, Stage: Importing, Importer: c.Importer, Replicas: c.Replicas}
	if err := d.checkHead(); err != nil {
		return err
	}
	if old, ok := s.Datasets[d.ID]; ok {
		if old.Stage == Importing && old.Name == d.Name && old.Importer == d.Importer && old.Replicas == d.Replicas {
			return nil
		}
		return fmt.Errorf("%s: %w: it is %q", d.ID, ErrDatasetTaken, old.Name)
	}
	if old, taken := s.DatasetByName(d.Name); taken {
		return fmt.Errorf("%s (%s): %w", d.Name, old.Stage, ErrDatasetTaken)
	}
	if _, in := s.Members[d.Importer]; !in {
		return fmt.Errorf("%s: %w", d.Importer, ErrNoMember)
	}
	if len(s.Datasets) >= MaxDatasets {
		return ErrDatasetsFull
	}
	s.Datasets[d.ID] = d
	return nil
}

func (c DefineDataset) apply(s *State, _ uint64) error {
	d, ok := s.Datasets[c.ID]
	if !ok {
		return fmt.Errorf("%.40q: %w", c.ID, ErrNoDataset)
	}
	if d.Importer != c.Importer {
		return fmt.Errorf("%s: %w", d.Name, ErrNotImporting)
	}
	if d.Stage != Importing {
		if d.about(c) {
			return nil
		}
		return fmt.Errorf("%s (%s): %w", d.Name, d.Stage, ErrNotImporting)
	}
	d.Stage, d.About = Placing, c.About
	d.About.Splits, d.About.ClassNames = slices.Clone(c.About.Splits), slices.Clone(c.About.ClassNames)
	makers, by, err := c.holders(s)
	if err != nil {
		return err
	}
	d.Nodes = makers
	d.Shards = make([]Shard, len(c.Shards))
	for i, about := range c.Shards {
		d.Shards[i] = Shard{ShardAbout: about, Holders: []int{by[i]}}
	}
	if err := d.checkBody(); err != nil {
		return err
	}
	if s.rows()+d.rows() > MaxRows {
		return ErrDatasetsFull
	}
	s.Datasets[d.ID] = d
	return nil
}

// holders returns who holds the shards, sorted, and the index of each shard's holder.
func (c DefineDataset) holders(s *State) (nodes []string, by []int, err error) {
	by = make([]int, len(c.Shards))
	if len(c.Makers) == 0 && len(c.MadeBy) == 0 {
		return []string{c.Importer}, by, nil
	}
	if err := s.checkMembers(c.Makers); err != nil {
		return nil, nil, err
	}
	if len(c.MadeBy) != len(c.Shards) {
		return nil, nil, fmt.Errorf("%w: makers of %d shards of %d", ErrInvalid, len(c.MadeBy), len(c.Shards))
	}
	for _, m := range c.MadeBy {
		if m < 0 || m >= len(c.Makers) {
			return nil, nil, fmt.Errorf("%w: maker %d of %d", ErrInvalid, m, len(c.Makers))
		}
		if !slices.Contains(nodes, c.Makers[m]) {
			nodes = append(nodes, c.Makers[m])
		}
	}
	slices.Sort(nodes)
	for i, m := range c.MadeBy {
		by[i], _ = slices.BinarySearch(nodes, c.Makers[m])
	}
	return nodes, by, nil
}

// about reports whether the dataset is the result of this command.
func (d Dataset) about(c DefineDataset) bool {
	mine, its := d.About, c.About
	if len(mine.Splits) == 0 && len(its.Splits) == 0 {
		mine.Splits, its.Splits = nil, nil
	}
	if len(mine.ClassNames) == 0 && len(its.ClassNames) == 0 {
		mine.ClassNames, its.ClassNames = nil, nil
	}
	return reflect.DeepEqual(mine, its) &&
		slices.EqualFunc(d.Shards, c.Shards, func(s Shard, a ShardAbout) bool { return s.ShardAbout == a })
}

// rows counts the parts that make a dataset large in the plan.
func (d Dataset) rows() int { return len(d.Shards) + len(d.About.Splits) }

func (s *State) rows() int {
	n := 0
	for _, d := range s.Datasets {
		n += d.rows()
	}
	return n
}

// defined returns a dataset that has shards. It returns an error unless the given
// shards are distinct and belong to it.
func (s *State) defined(id string, shards []int) (Dataset, error) {
	d, ok := s.Datasets[id]
	if !ok {
		return d, fmt.Errorf("%.40q: %w", id, ErrNoDataset)
	}
	if d.Stage == Importing {
		return d, fmt.Errorf("%s: %w", d.Name, ErrUndefined)
	}
	return d, checkIndices("shard", shards, len(d.Shards))
}

func (c PlaceShards) apply(s *State, index uint64) error {
	d, err := s.defined(c.ID, nil)
	if err != nil {
		return err
	}
	if len(c.Wanted) != len(d.Shards) {
		return fmt.Errorf("%w: places for %d shards of %d", ErrInvalid, len(c.Wanted), len(d.Shards))
	}
	if err := cmp.Or(s.checkMembers(c.Nodes), s.checkMembers(c.Away)); err != nil {
		return err
	}
	for i, row := range c.Wanted {
		if len(row) == 0 && !d.Lost(i) || len(row) > MaxReplicas+1 {
			return fmt.Errorf("%w: %d nodes for shard %d", ErrInvalid, len(row), i)
		}
		if err := checkIndices("node", row, len(c.Nodes)); err != nil {
			return err
		}
	}
	away := func(id string) bool { return slices.Contains(c.Away, id) }
	s.change(d, index, func(i int, p places) places {
		slices.SortStableFunc(p.holders, func(a, b string) int { return compareBool(away(b), away(a)) })
		p.wanted = nil
		for _, n := range c.Wanted[i] {
			p.wanted = append(p.wanted, c.Nodes[n])
		}
		return p
	})
	return nil
}

// checkMembers returns an error unless the ids are distinct members.
func (s *State) checkMembers(ids []string) error {
	if len(ids) > len(s.Members) {
		return fmt.Errorf("%w: %d nodes of %d", ErrInvalid, len(ids), len(s.Members))
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if _, in := s.Members[id]; !in {
			return fmt.Errorf("%.40q: %w", id, ErrNoMember)
		}
		if seen[id] {
			return fmt.Errorf("%w: %s is named twice", ErrInvalid, id)
		}
		seen[id] = true
	}
	return nil
}

func (c HoldShards) apply(s *State, index uint64) error {
	d, err := s.defined(c.ID, c.Shards)
	if err != nil {
		return err
	}
	if _, in := s.Members[c.Node]; !in {
		return fmt.Errorf("%.40q: %w", c.Node, ErrNoMember)
	}
	news := d.only(c.Shards, func(i int) bool { return !d.Holds(c.Node, i) && (d.Wants(c.Node, i) || d.Lost(i)) })
	if news == nil {
		return nil
	}
	s.change(d, index, func(i int, p places) places {
		if news[i] {
			p.holders = append(p.holders, c.Node)
		}
		return p
	})
	return nil
}

func (c LoseShards) apply(s *State, index uint64) error {
	d, err := s.defined(c.ID, c.Shards)
	if err != nil {
		return err
	}
	news := d.only(c.Shards, func(i int) bool { return d.Holds(c.Node, i) })
	if news == nil {
		return nil
	}
	s.change(d, index, func(i int, p places) places {
		if !news[i] {
			return p
		}
		if len(p.wanted) == 0 {
			p.wanted = slices.Clone(p.holders)
		}
		p.holders = without(p.holders, c.Node)
		return p
	})
	return nil
}

func (c RemoveDataset) apply(s *State, index uint64) error {
	d, ok := s.Datasets[c.ID]
	if !ok {
		return fmt.Errorf("%.40q: %w", c.ID, ErrNoDataset)
	}
	if jobs := s.JobsOf(d.ID); len(jobs) > 0 {
		return fmt.Errorf("%s (%s): %w", d.Name, jobs[0], ErrDatasetInUse)
	}
	delete(s.Datasets, d.ID)
	if d.Stage == Ready {
		s.turn(index)
	}
	return nil
}

// change calls rewrite, and begins a new generation if that requires one.
func (s *State) change(d Dataset, index uint64, to func(shard int, p places) places) {
	if s.rewrite(d, to) {
		s.turn(index)
	}
}

// strike removes a node that is no longer a member from all datasets, and drops those
// it was importing. The removal itself begins a new generation.
func (s *State) strike(node string) {
	for id, d := range s.Datasets {
		switch {
		case d.Stage == Importing && d.Importer == node:
			delete(s.Datasets, id)
		case slices.Contains(d.Nodes, node):
			s.rewrite(d, func(_ int, p places) places {
				return places{without(p.holders, node), without(p.wanted, node)}
			})
		}
	}
}

// only marks those of the shards for which so returns true. It returns nil if there are
// none.
func (d Dataset) only(shards []int, so func(shard int) bool) []bool {
	var marks []bool
	for _, i := range shards {
		if so(i) {
			if marks == nil {
				marks = make([]bool, len(d.Shards))
			}
			marks[i] = true
		}
	}
	return marks
}

func without[T comparable](list []T, node T) []T {
	return slices.DeleteFunc(list, func(n T) bool { return n == node })
}
