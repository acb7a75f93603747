package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
)

func noDataset(name string) string {
	return fmt.Sprintf("there is no dataset %s: `hopmesh dataset list` shows those there are", name)
}

// Datasets lists all that the plan knows, those being imported included.
func (b backend) Datasets(context.Context) ([]api.DatasetSummary, error) {
	m, err := b.in()
	if err != nil {
		return nil, err
	}
	s := m.plan.State()
	list := []api.DatasetSummary{}
	for _, d := range s.Datasets {
		sum := api.DatasetSummary{
			Name: d.Name, Stage: string(d.Stage), Vertices: d.About.Vertices, Edges: d.About.Edges, Features: d.About.Features,
			Classes: d.About.Classes, Shards: len(d.Shards), Problems: len(m.datasetProblems(s, d)),
		}
		for _, shard := range d.Shards {
			sum.Bytes += shard.Bytes
		}
		list = append(list, sum)
	}
	slices.SortFunc(list, func(a, b api.DatasetSummary) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Dataset shows one dataset, as this node knows it.
func (b backend) Dataset(_ context.Context, name string) (api.Dataset, error) {
	m, err := b.in()
	if err != nil {
		return api.Dataset{}, err
	}
	s := m.plan.State()
	d, ok := s.DatasetByName(name)
	if !ok {
		return api.Dataset{}, api.NotFound("%s", noDataset(name))
	}
	a := apiDataset(s, d)
	a.Problems = append(a.Problems, m.datasetProblems(s, d)...)
	return a, nil
}

// RemoveDataset returns when this node knows that the dataset is gone; the files
// go soon after, on each node that has some.
func (b backend) RemoveDataset(ctx context.Context, name string, force bool) error {
	m, err := b.in()
	if err != nil {
		return err
	}
	return apiError(m.order(ctx, opRemoveDataset, removeOrder{Name: name, Force: force}))
}

func apiDataset(s *plan.State, d plan.Dataset) api.Dataset {
	a := api.Dataset{
		Name: d.Name, Stage: string(d.Stage), Vertices: d.About.Vertices, Edges: d.About.Edges, Features: d.About.Features,
		Classes: d.About.Classes, Splits: len(d.About.Splits), SplitSizes: []api.SplitSizes{}, DType: d.About.DType,
		Shards: []api.DatasetShard{}, EdgeCut: d.About.EdgeCut, Balance: d.About.Balance, BalanceEdges: d.About.BalanceEdges,
		BalanceTraining: d.About.BalanceTraining, Partitioner: d.About.Partitioner, Seed: d.About.Seed, Problems: []string{},
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
				x.Owner = nameOf(s, id)
			} else {
				x.Replicas = append(x.Replicas, nameOf(s, id))
			}
		}
		a.Shards = append(a.Shards, x)
	}
	return a
}

// datasetProblems says in sentences what a dataset lacks, and what to do.
func (m *member) datasetProblems(s *plan.State, d plan.Dataset) []string {
	if d.Stage == plan.Importing {
		return []string{fmt.Sprintf("dataset %s is being imported by node %s", d.Name, nameOf(s, d.Importer))}
	}
	var list []string
	lacks := d.Lacks(func(id string) bool { alive, _ := m.health(id); return alive })
	lost := 0
	for i := range d.Shards {
		if d.Lost(i) {
			lost++
		}
	}
	if lost > 0 {
		list = append(list, fmt.Sprintf("dataset %s has lost %s, of which no copy was left whole: remove it and import it anew", d.Name, shardCount(lost)))
	}
	lacks.Unserved -= lost
	if lacks.Unserved > 0 {
		list = append(list, fmt.Sprintf("no node that answers holds %s of dataset %s: start the nodes that do again, or remove it and import it anew",
			shardCount(lacks.Unserved), d.Name))
	}
	if lacks.Waiting > 0 {
		list = append(list, fmt.Sprintf("%s of dataset %s are about to get another owner, as theirs does not answer", shardCount(lacks.Waiting), d.Name))
	}
	if lacks.Thin > 0 {
		staying := 0
		for _, p := range s.Members {
			if !p.Leaving {
				staying++
			}
		}
		if staying <= d.Replicas {
			list = append(list, fmt.Sprintf("%s of dataset %s lack copies, with %d wanted beside the owner's: that takes %d nodes and the mesh has %d, so add some",
				shardCount(lacks.Thin), d.Name, d.Replicas, d.Replicas+1, staying))
		} else {
			list = append(list, fmt.Sprintf("%s of dataset %s lack copies, with %d wanted beside the owner's: they are on their way, or wait for nodes that do not answer",
				shardCount(lacks.Thin), d.Name, d.Replicas))
		}
	}
	return list
}

func shardCount(n int) string {
	if n == 1 {
		return "1 shard"
	}
	return fmt.Sprintf("%d shards", n)
}
