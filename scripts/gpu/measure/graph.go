//go:build cuda

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
)

// makeGraph generates a graph like ogbn-products and partitions it by the fastest
// partitioner, since nothing is sent between shards.
func makeGraph(ctx context.Context, m measure, folder string) error {
	begun := time.Now()
	src, err := generate.New(generate.Options{Preset: "products", Scale: m.scale, Seed: 1})
	if err != nil {
		return err
	}
	made, err := build.Run(ctx, src, build.Options{Dir: folder, Partitioner: "stream", DType: graph.F32, Seed: 1})
	if err := errors.Join(err, src.Close()); err != nil {
		return fmt.Errorf("make a graph in %s: %w", folder, err)
	}
	edges := uint64(0)
	for _, s := range made.Shards {
		edges += s.Edges
	}
	figure("graph, edges", float64(edges), "")
	figure("graph, made and cut", time.Since(begun).Seconds(), "s")
	return nil
}

// openGraph opens the shards of a folder.
func openGraph(folder string) ([]*graph.Shard, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.safetensors"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there are no shards in %s: measure graph makes them: %w", folder, err)
	}
	var shards []*graph.Shard
	for i := range files {
		s, err := graph.OpenShard(filepath.Join(folder, graph.ShardFile(i)))
		if err != nil {
			return nil, err
		}
		shards = append(shards, s)
	}
	return shards, nil
}
