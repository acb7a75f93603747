package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/scripts/graphs"
)

// Row is a recipe that is trained with several seeds.
type Row struct {
	Name   string
	Graph  string        // the name of its file, without .npz
	Cut    build.Options // how to partition it; the folder is not set
	Recipe recipe.Recipe
	Seeds  int
	Nodes  int // that share it; 0: one node alone
}

// Mean is the mean over the finished seeds of a row.
type Mean struct {
	Done            int
	Capped          int     // of them, runs that ended while validation still improved
	Test, Deviation float64 // percent
	Runs            []Run   // by seed
	Commits         []string
}

// Of returns the mean of a row, for its present recipe.
func (k *Kept) Of(r Row) (m Mean, err error) {
	done, err := k.done(r)
	if err != nil {
		return m, err
	}
	var tests []float64
	for seed := range uint64(r.Seeds) {
		if one, ok := done[seed]; ok {
			m.Runs = append(m.Runs, one)
			m.Commits = append(m.Commits, one.Commit)
			tests = append(tests, one.Test)
			if one.Capped {
				m.Capped++
			}
		}
	}
	slices.Sort(m.Commits)
	m.Done, m.Commits = len(tests), slices.Compact(m.Commits)
	m.Test, m.Deviation = stats.Spread(tests)
	return m, nil
}

// done returns the runs of a row, by seed.
func (k *Kept) done(r Row) (map[uint64]Run, error) {
	id, err := digest(r.Recipe)
	if err != nil {
		return nil, err
	}
	found := map[uint64]Run{}
	for _, one := range k.Items {
		if one.Row == r.Name && one.Recipe == id && one.Nodes == r.Nodes {
			found[one.Seed] = one
		}
	}
	return found, nil
}

// Finish does the runs of rows that are not kept yet. The graphs are in folder.
func (k *Kept) Finish(ctx context.Context, folder string, rows []Row) (err error) {
	commit, err := Commit()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "hopmesh-runs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	open := map[string]*graphs.Graph{}
	defer func() {
		for _, g := range open {
			err = errors.Join(err, g.Close())
		}
	}()
	for _, r := range rows {
		done, err := k.done(r)
		if err != nil {
			return err
		}
		for seed := range uint64(r.Seeds) {
			if _, ok := done[seed]; ok {
				continue
			}
			name := fmt.Sprintf("%s-%d-%s", r.Graph, r.Cut.Shards, r.Cut.Partitioner)
			if open[name] == nil {
				g, err := cut(ctx, r, folder, filepath.Join(scratch, name))
				if err != nil {
					return err
				}
				open[name] = g
			}
			one, err := r.train(ctx, open[name], seed)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", r.Name, seed, err)
			}
			one.Commit = commit
			fmt.Fprintf(os.Stderr, "%s, seed %d: %.2f (epoch %d, %.0f s)\n", one.Row, seed, one.Test, one.Epoch, one.Seconds)
			if err := k.Add(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut partitions the graph of a row into a folder that does not exist, and opens it.
func cut(ctx context.Context, r Row, from, to string) (*graphs.Graph, error) {
	file := filepath.Join(from, r.Graph+".npz")
	if r.Graph == "cora" {
		folder := to + ".file"
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
		var err error
		if file, err = cora.Write(folder); err != nil {
			return nil, err
		}
	}
	o := r.Cut
	o.Dir = to
	return graphs.ReadCut(ctx, file, o)
}

// train does one run.
func (r Row) train(ctx context.Context, g *graphs.Graph, seed uint64) (Run, error) {
	id, err := digest(r.Recipe)
	if err != nil {
		return Run{}, err
	}
	recipe := r.Recipe
	recipe.Seed = seed
	begun := time.Now()
	result, err := Share(ctx, recipe, g.Shards, r.Nodes)
	if err != nil {
		return Run{}, err
	}
	best := result.Best
	val, test := best.Scores.Val.Accuracy, best.Scores.Test.Accuracy
	if m := best.Scores.Metrics; m != nil { // the task has no accuracy
		val, test = m.Val[recipe.Metric], m.Test[recipe.Metric]
	}
	return Run{
		Row: r.Name, Recipe: id, Seed: seed, Nodes: r.Nodes, Epoch: best.Epoch, Capped: recipe.Patience > 0 && !result.Early, Val: 100 * val, Test: 100 * test,
		Seconds: time.Since(begun).Seconds(), Seen: result.Last.Seen, Hash: result.Last.Hash,
	}, nil
}
