package data

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/lead"
)

// List lists all datasets that the plan knows, those being imported included.
func (d *Datasets) List() []api.DatasetSummary {
	s := d.plan.State()
	list := []api.DatasetSummary{}
	for _, one := range s.Datasets {
		sum := api.DatasetSummary{
			Name: one.Name, Stage: string(one.Stage), Vertices: one.About.Vertices, Edges: one.About.Edges, Features: one.About.Features,
			Classes: one.About.Classes, Shards: len(one.Shards), Problems: len(lacks{d.answers}.ofOne(s, one)),
		}
		if one.About.Targets != "" {
			sum.Classes = 0 // there they count targets
		}
		for _, shard := range one.Shards {
			sum.Bytes += shard.Bytes
		}
		list = append(list, sum)
	}
	slices.SortFunc(list, func(a, b api.DatasetSummary) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Show describes one dataset, as this node knows it.
func (d *Datasets) Show(name string) (api.Dataset, error) {
	s := d.plan.State()
	one, ok := s.DatasetByName(name)
	if !ok {
		return api.Dataset{}, api.NotFound("%s", api.NoDataset(name))
	}
	a := described(s, one)
	a.Folder = folder(d.dir, d.self, one)
	a.Problems = append(a.Problems, lacks{d.answers}.ofOne(s, one)...)
	return a, nil
}

// Problems returns sentences on what the datasets lack, and what to do: the worst first.
func (d *Datasets) Problems(s *plan.State) []string { return lacks{d.answers}.ofAll(s) }

// Remove returns when this node's plan has no such dataset any more. Each node removes its
// files soon after.
func (d *Datasets) Remove(ctx context.Context, name string, force bool) error {
	return lead.APIError(lead.Commit(ctx, d.orders.remove, removal{Name: name, Force: force}))
}

// described converts a dataset to what the API shows.
func described(s *plan.State, d plan.Dataset) api.Dataset {
	a := api.Dataset{
		Name: d.Name, Stage: string(d.Stage), Vertices: d.About.Vertices, Edges: d.About.Edges, Features: d.About.Features,
		EdgeFeatures: d.About.EdgeFeatures, Classes: d.About.Classes, ClassNames: d.About.ClassNames, Splits: len(d.About.Splits), SplitSizes: []api.SplitSizes{}, DType: d.About.DType,
		Shards: []api.DatasetShard{}, EdgeCut: d.About.EdgeCut, Balance: d.About.Balance, BalanceEdges: d.About.BalanceEdges,
		BalanceTraining: d.About.BalanceTraining, Partitioner: d.About.Partitioner, Seed: d.About.Seed, Problems: []string{},
	}
	if a.Task = "class"; d.About.Targets != "" {
		a.Task, a.Targets, a.Classes = d.About.Targets, a.Classes, 0
	}
	if t, err := graph.ParseTypes(d.About.Types, d.About.Vertices, d.About.Features); err == nil && t != nil {
		for _, of := range t.Vertices {
			a.Types = append(a.Types, api.VertexType{Name: of.Name, Vertices: of.Vertices, Features: of.Own()})
		}
		for _, r := range t.Relations {
			a.Relations = append(a.Relations, api.Relation(r))
		}
	}
	if d.About.Edges > 0 {
		a.EdgeCutShare = float64(d.About.EdgeCut) / float64(d.About.Edges)
	}
	for _, split := range d.About.Splits {
		a.SplitSizes = append(a.SplitSizes, api.SplitSizes{Train: split.Train, Val: split.Val, Test: split.Test})
	}
	for i, shard := range d.Shards {
		x := api.DatasetShard{
			ID: i, Vertices: shard.Vertices, Edges: shard.Edges, Halo: shard.Halo, Bytes: shard.Bytes, SHA256: shard.SHA256, Replicas: []string{},
		}
		for n, id := range d.HoldersOf(i) {
			if n == 0 {
				x.Owner = s.NameOf(id)
			} else {
				x.Replicas = append(x.Replicas, s.NameOf(id))
			}
		}
		a.Shards = append(a.Shards, x)
	}
	return a
}

// folder returns the absolute path of the folder of a dataset's shards on this node; "" if
// the node holds none of them.
func folder(dir, self string, d plan.Dataset) string {
	for i := range d.Shards {
		if d.Holds(self, i) {
			path, err := filepath.Abs(filepath.Join(dir, d.ID))
			if err != nil { // the working directory was removed
				return ""
			}
			return path
		}
	}
	return ""
}

func shardCount(n int) string {
	if n == 1 {
		return "1 shard"
	}
	return fmt.Sprintf("%d shards", n)
}
