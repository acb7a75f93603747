package recipe

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/task"
)

// LinkBatch is how many pairs a step of a job has that says nothing of it.
const LinkBatch = 512

// RankPairs has evaluations rank pairs among so many vertices as jobs do that say nothing of it,
// unless it was said: said lists keys of Set.
func (r *Recipe) RankPairs(said ...string) {
	if !slices.Contains(said, ranksKey) && r.links().Ranks >= link.All {
		of := *r.links()
		if of.Ranks = link.JobRanks; of.Relations > 0 {
			of.Ranks = link.All
		}
		r.Links = &of
	}
}

// LearnTriples sets what a recipe says of a dataset's given split, if it has one. Of triples that is
// also how many relations they have, and a decoder that knows relations, unless the recipe names one.
// split means that the request has asked for another split.
func (r *Recipe) LearnTriples(about dataset.About, split bool, said ...string) error {
	if !r.kind().Pairs || about.Given == nil {
		return nil
	}
	if split {
		what := "triples"
		if about.Pairs {
			what = "edges"
		}
		return fmt.Errorf("{edge-split} draws a split, and the %s of the dataset have one: leave it out", what)
	}
	of := *r.links()
	if !about.Pairs && of.Relations == 0 && !slices.Contains(said, decoderKey) { // else it was set, or taken over
		of.Decoder = link.OfTriples
	}
	if of.Relations, of.Given = about.Triples, about.Given; about.Pairs {
		of.Relations = 0
		if about.Against > 0 && of.Ranks == 0 && !slices.Contains(said, ranksKey) {
			of.Ranks = link.Given
		}
		if about.Against == 0 && of.Ranks < link.All {
			return errors.New("{link.ranks} is for pairs that a dataset has to compare its edges of validation and test with, and this one has none: give all, 0, or a number of vertices")
		}
	}
	all := float64(of.Given[0] + of.Given[1] + of.Given[2])
	for part, n := range of.Given {
		of.Split[part] = float64(n) / all
	}
	r.Links = &of
	return nil
}

// LearnRelation finds the relation that the recipe names among those of a dataset, nil if it has none.
func (r *Recipe) LearnRelation(types *graph.Types) error {
	if r.Links == nil || r.Links.Relation == nil || r.Links.Relations > 0 {
		return nil
	}
	name := r.Links.Relation.Name
	switch {
	case name == "":
		return errors.New("{link.relation} is empty: name a relation of the dataset, or leave it out")
	case types == nil:
		return fmt.Errorf("{link.relation} is %s, and the dataset has no relations: leave it out", name)
	}
	of, err := link.RelationOf(types, name)
	if err != nil {
		return fmt.Errorf("{link.relation}: %w", err)
	}
	return linked(r, func(s *link.Spec) error { s.Relation = of; return nil })
}

// negatives sets what FROM:N says, or a part of it.
func negatives(s *link.Spec, v string) error {
	from, n, both := strings.Cut(v, ":")
	if !both {
		if integer(v, &s.Negatives) == nil {
			return nil
		}
	} else if err := integer(n, &s.Negatives); err != nil {
		return err
	}
	return word(from, func(from string) {
		if s.From = from; from == link.Froms[0] {
			s.From = "" // as in recipes of programs that knew no other
		}
	}, link.Froms...)
}

// ranks sets among how many vertices pairs are ranked.
func ranks(s *link.Spec, v string) error {
	named := map[string]int{"all": link.All, "given": link.Given, "given-source": link.GivenOfSource}
	if n, is := named[v]; is {
		s.Ranks = n
		return nil
	}
	n := 0
	if err := integer(v, &n); err != nil || n < 0 {
		return fmt.Errorf("%q is neither all nor a number of vertices, nor given or given-source", v)
	}
	s.Ranks = n
	return nil
}

// hits sets up to which ranks a pair is a hit: in a list of its own, as sweeps copy recipes.
func hits(s *link.Spec, v string) error {
	s.Hits = nil
	for one := range strings.SplitSeq(v, ",") {
		most := 0
		if err := integer(strings.TrimSpace(one), &most); err != nil {
			return err
		}
		s.Hits = append(s.Hits, most)
	}
	if slices.Equal(s.Hits, link.UsualHits) {
		s.Hits = nil // as in recipes of programs that knew no others
	}
	return nil
}

// checkLinks is checkGraph for a recipe that learns pairs of vertices. The dataset needs neither
// targets nor a split.
func (r *Recipe) checkLinks(about dataset.About) error {
	if r.Links == nil {
		return errors.New("{task} is link, and the recipe does not say how edges are split: give {edge-split}")
	}
	if err := r.Links.Check(); err != nil {
		return err
	}
	switch {
	case r.Links.Triples() != about.Triples && r.Links.Divided():
		return errors.New("the recipe learns edges with a given split, and those of the dataset have none: choose the dataset that it was made for")
	case r.Links.Given == nil && about.Pairs:
		return errors.New("the edges of the dataset have a given split, and the recipe draws one: choose the dataset that it was made for")
	case about.Pairs && !r.Links.Divided():
		return errors.New("the recipe learns triples, and the edges of the dataset are pairs with a given split: upgrade the node that began the job, and begin it anew")
	case r.Model.Related() && r.Links.Divided():
		return fmt.Errorf("%s sees edges by relation, and those of the dataset have none: choose another {model}", r.Model.Named())
	case r.Links.Triples() != about.Triples && about.Triples == 0:
		return errors.New("the recipe learns triples with relations, and the dataset has none with a given split: choose a dataset of the format triples")
	case r.Links.Triples() != about.Triples:
		return fmt.Errorf("the recipe learns triples with %s, and those of the dataset have %d: choose the dataset that it was made for", Count(r.Links.Relations, "relation"), about.Triples)
	case r.Links.Relation != nil && r.Links.Relation.Number >= about.Relations:
		return fmt.Errorf("{link.relation} is %s, the relation %d, and the dataset has %d: name one of its own", r.Links.Relation.Name, r.Links.Relation.Number, about.Relations)
	case r.Model.Related() && about.Triples == 0 && r.Links.Relation == nil:
		return fmt.Errorf("%s sees edges by relation, and {task} link learns those of one: name it with {link.relation}", r.Model.Named())
	case about.Edges == 0 || about.Vertices < 2:
		return errors.New("the dataset has no edges to learn: import it again from a source that has some")
	case r.Split != 0 && r.Links.Given != nil:
		return fmt.Errorf("{split} is %d, and the edges of the dataset have a split of their own: leave it out", r.Split)
	case r.Split != 0:
		return fmt.Errorf("{split} is %d, and {task} link splits edges and not vertices: leave it out, and give {edge-split}", r.Split)
	case r.Weights != nil || r.Balanced:
		return errors.New("{train.class_weights} weighs classes, and the task is link: leave it out")
	case r.Batch == 0:
		return fmt.Errorf("{batch} is full, and no messages pass along the edges of a step of {task} link, so that none would be left: give a number, such as %d", LinkBatch)
	case r.Sees(about).Splits[0].Train < 2 && r.Links.Relation != nil:
		return fmt.Errorf("of the %s of %s {edge-split} leaves fewer than 2 for training: give a larger first share, or another {link.relation}", Count(int(r.Links.Relation.Edges), "edge"), r.Links.Relation.Name)
	case r.Sees(about).Splits[0].Train < 2:
		return fmt.Errorf("of the dataset's %s {edge-split} leaves fewer than 2 for training: give a larger first share, or import a graph with more edges", Count(int(about.Edges), "edge"))
	case uint64(r.Batch) >= r.Sees(about).Splits[0].Train:
		return fmt.Errorf("{batch} is %d, and the dataset has about %d edges for training at most: no messages pass along the edges of a step, so give a smaller number", r.Batch, r.Sees(about).Splits[0].Train)
	case r.Links.Split[1] == 0 && (r.Patience > 0 || r.Schedule.Kind == Plateau):
		return errors.New("{patience} and {train.schedule}=plateau need validation edges to compare epochs by, and {edge-split} leaves none: leave them out, or give a second share above 0")
	case r.Links.Ranks == 0 && (r.Metric == task.MRR || task.IsHits(r.Metric)):
		return fmt.Errorf("{train.metric} is %s, and {link.ranks} is 0, so that no pair has a rank: give the number of vertices to rank each pair among, such as %d", r.Metric, link.JobRanks)
	case r.Sharing.Topology() == strategy.Sharded:
		return errors.New("{topology} is sharded, and {task} link is learnt where each node has all edges: leave it out")
	}
	return nil
}

// CheckPairs returns an error unless a step of the recipe leaves pairs for messages, and epochs can
// be compared, of a graph with so many pairs for training and validation: how many these are is
// known once all edges are.
func (r *Recipe) CheckPairs(train, val int) error {
	switch {
	case train < 2:
		return fmt.Errorf("the dataset has %s for training, and no messages pass along the edges of a step: give a larger first share to {edge-split}, or import a graph with more edges", Count(train, "pair"))
	case r.Batch >= train:
		return fmt.Errorf("{batch} is %d, and the dataset has %d pairs for training: no messages pass along the edges of a step, so give a smaller number", r.Batch, train)
	case val == 0 && (r.Patience > 0 || r.Schedule.Kind == Plateau):
		return errors.New("{patience} and {train.schedule}=plateau need validation edges to compare epochs by, and none was drawn: leave them out, or give a larger second share to {edge-split}")
	}
	return nil
}
