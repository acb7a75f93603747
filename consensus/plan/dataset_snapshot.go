package plan

import (
	"fmt"
	"reflect"
	"slices"
)

// checkDatasets returns an error if no sequence of commands leads to these datasets.
func (s *State) checkDatasets() error {
	if len(s.Datasets) > MaxDatasets || s.rows() > MaxRows {
		return fmt.Errorf("%w: %d datasets with %d shards and splits", ErrInvalid, len(s.Datasets), s.rows())
	}
	names := map[string]bool{}
	for id, d := range s.Datasets {
		if id != d.ID || names[d.Name] {
			return fmt.Errorf("%w: dataset %.40q (%.80q) under the id %.40q, or two of its name", ErrInvalid, d.ID, d.Name, id)
		}
		names[d.Name] = true
		if err := d.checkHead(); err != nil {
			return err
		}
		var err error
		if d.Stage == Importing {
			err = s.checkReserved(d)
		} else {
			err = s.checkDefined(d)
		}
		if err != nil {
			return fmt.Errorf("dataset %s: %w", d.Name, err)
		}
	}
	return nil
}

func (s *State) checkReserved(d Dataset) error {
	if _, in := s.Members[d.Importer]; !in {
		return fmt.Errorf("%w: its importer %.40q is no member", ErrInvalid, d.Importer)
	}
	if len(d.Nodes)+len(d.Shards) > 0 || !reflect.DeepEqual(d.About, About{}) {
		return fmt.Errorf("%w: it is defined before its import has ended", ErrInvalid)
	}
	return nil
}

func (s *State) checkDefined(d Dataset) error {
	if d.Stage != Placing && d.Stage != Ready {
		return fmt.Errorf("%w: it is at the stage %.40q", ErrInvalid, d.Stage)
	}
	if err := d.checkBody(); err != nil {
		return err
	}
	for i, id := range d.Nodes {
		if _, in := s.Members[id]; !in || i > 0 && d.Nodes[i-1] >= id {
			return fmt.Errorf("%w: node %.40q is no member, or not in order", ErrInvalid, id)
		}
	}
	used := make([]bool, len(d.Nodes))
	settled := true
	for i, sh := range d.Shards {
		if err := d.checkPlaces(i); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		for _, n := range slices.Concat(sh.Holders, sh.Wanted) {
			used[n] = true
		}
		settled = settled && d.Settled(i) && !d.Lost(i)
	}
	if slices.Contains(used, false) {
		return fmt.Errorf("%w: it names a node that has no part in it", ErrInvalid)
	}
	if d.Stage == Placing && settled && (len(d.Nodes) != 1 || d.Nodes[0] != d.Importer) {
		return fmt.Errorf("%w: all is in place, but it is not ready", ErrInvalid)
	}
	return nil
}

// checkPlaces returns an error unless one shard's places are in canonical form.
func (d Dataset) checkPlaces(shard int) error {
	s := d.Shards[shard]
	for _, list := range [][]int{s.Holders, s.Wanted} {
		if err := checkIndices("node", list, len(d.Nodes)); err != nil {
			return err
		}
	}
	if len(s.Wanted) > MaxReplicas+1 {
		return fmt.Errorf("%w: wanted on %d nodes", ErrInvalid, len(s.Wanted))
	}
	p := places{holders: d.HoldersOf(shard), wanted: d.named(s.Wanted)}.settle()
	if !slices.Equal(p.holders, d.HoldersOf(shard)) || len(p.wanted) != len(s.Wanted) {
		return fmt.Errorf("%w: it is where it is wanted, and says otherwise", ErrInvalid)
	}
	return nil
}
