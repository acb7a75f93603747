package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// bring imports the built-in graph from a file.
func (s *show) bring(ctx context.Context, r *Report) error {
	path, err := cora.Write(s.dir)
	if err != nil {
		return err
	}
	begin := time.Now()
	r.Dataset, err = s.fleet.Nodes[0].API().ImportDataset(ctx, api.ImportRequest{
		Name: "cora", Source: path,
	}, func(api.DatasetEvent) {})
	if err != nil {
		return fmt.Errorf("import the graph: %w", err)
	}
	r.ImportSeconds = time.Since(begin).Seconds()
	d := r.Dataset
	s.say("")
	s.note("cora is in: %d papers, %d citations, cut into %d shards with %.0f %% of the edges between them",
		d.Vertices, d.Edges/2, len(d.Shards), 100*d.EdgeCutShare)
	s.owners(d)
	return nil
}

// owners prints which node owns which shards.
func (s *show) owners(d api.Dataset) {
	owned, copies := map[string][]string{}, map[string]int{}
	var names []string
	for _, shard := range d.Shards {
		if !slices.Contains(names, shard.Owner) {
			names = append(names, shard.Owner)
		}
		owned[shard.Owner] = append(owned[shard.Owner], fmt.Sprint(shard.ID))
		for _, name := range shard.Replicas {
			copies[name]++
		}
	}
	slices.Sort(names)
	for _, name := range names {
		s.say("         %s owns shards %s, and keeps copies of %d others", name, strings.Join(owned[name], " "), copies[name])
	}
}

// served waits until living nodes own all shards, and verifies every copy.
func (s *show) served(ctx context.Context, r *Report, survivor *fleet.Node) error {
	err := s.fleet.Until(ctx, "living nodes own all shards", func() bool {
		d, err := survivor.API().Dataset(ctx, "cora")
		if err != nil || slices.ContainsFunc(d.Shards, func(shard api.DatasetShard) bool { return shard.Owner == r.Leader }) {
			return false
		}
		r.Dataset = d
		return true
	})
	if err != nil {
		return err
	}
	r.ServedSeconds = time.Since(s.killedAt()).Seconds()
	if err := survivor.API().VerifyDataset(ctx, "cora", func(api.DatasetEvent) {}); err != nil {
		return fmt.Errorf("verify the graph: %w", err)
	}
	s.note("the copies took over %s's shards, %.1f s after the kill; every one has been read through, and is whole", r.Leader, r.ServedSeconds)
	s.owners(r.Dataset)
	s.say("\nOn three machines: `hopmesh agent --bootstrap` on one, then the line it prints on the others.")
	return nil
}
