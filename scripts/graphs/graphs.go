// Package graphs partitions a graph into shards in a folder and opens them, for scripts
// that train without a daemon.
package graphs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
)

// Graph is a partitioned graph with its shards open.
type Graph struct {
	Folder string
	Shards []*graph.Shard
}

// Read partitions a graph's file into the folder, which must not exist.
func Read(ctx context.Context, file, folder string) (*Graph, error) {
	return ReadCut(ctx, file, build.Options{Dir: folder})
}

// ReadCut is Read with options for partitioning, into o.Dir.
func ReadCut(ctx context.Context, file string, o build.Options) (*Graph, error) {
	src, err := read.Open(ctx, file, read.Options{})
	if err != nil {
		return nil, err
	}
	return cut(ctx, src, o)
}

// Generate generates and partitions a graph, with mirrored edges if it is to be
// undirected.
func Generate(ctx context.Context, o generate.Options, undirected bool, folder string) (*Graph, error) {
	src, err := generate.New(o)
	if err != nil {
		return nil, err
	}
	if t, ok := src.(interface{ Mirror() error }); ok && undirected {
		if err := t.Mirror(); err != nil {
			return nil, errors.Join(err, src.Close())
		}
		undirected = false
	}
	return cut(ctx, src, build.Options{Dir: folder, Undirected: undirected})
}

func cut(ctx context.Context, src graph.Source, o build.Options) (*Graph, error) {
	folder := o.Dir
	o.Scratch, o.DType = folder+".scratch", graph.F32
	m, err := build.Run(ctx, src, o)
	if err := errors.Join(err, src.Close(), os.RemoveAll(o.Scratch)); err != nil {
		return nil, fmt.Errorf("cut a graph into %s: %w", folder, err)
	}
	g := &Graph{Folder: folder}
	for i := range m.Shards {
		s, err := graph.OpenShard(filepath.Join(folder, graph.ShardFile(i)))
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.Shards = append(g.Shards, s)
	}
	return g, nil
}

// Close unmaps the shards; the files stay.
func (g *Graph) Close() error {
	var all error
	for _, s := range g.Shards {
		all = errors.Join(all, s.Close())
	}
	return all
}
