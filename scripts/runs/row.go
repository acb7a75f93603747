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
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/scripts/graphs"
)

// A Row is what is trained with several seeds.
type Row struct {
	Name   string
	Graph  string        // the name of its file, without .npz
	Cut    build.Options // how it is cut; where is not said
	Recipe train.Recipe
	Seeds  int
	Nodes  int // that share it; 0: one does it all
}

// A Mean is what the seeds of a row came to, as far as they are done.
type Mean struct {
	Done            int
	Test, Deviation float64 // percent
	Runs            []Run   // by seed
	Commits         []string
}

// Of is the mean of a row, as its recipe is now.
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
		}
	}
	slices.Sort(m.Commits)
	m.Done, m.Commits = len(tests), slices.Compact(m.Commits)
	m.Test, m.Deviation = Spread(tests)
	return m, nil
}

// done are the runs of a row, by their seeds.
func (k *Kept) done(r Row) (map[uint64]Run, error) {
	id, err := digest(r.Recipe)
	if err != nil {
		return nil, err
	}
	found := map[uint64]Run{}
	for _, one := range k.runs {
		if one.Row == r.Name && one.Recipe == id && one.Nodes == r.Nodes {
			found[one.Seed] = one
		}
	}
	return found, nil
}

// Finish does the runs of rows that are not kept yet, of graphs in a folder.
func (k *Kept) Finish(ctx context.Context, folder string, rows []Row) (err error) {
	commit, err := commit()
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
			if err := k.add(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut opens the graph of a row, cut as the row says, in a folder that does not exist.
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
	return Run{
		Row: r.Name, Recipe: id, Seed: seed, Nodes: r.Nodes, Epoch: best.Epoch, Val: 100 * best.Eval.Val.Accuracy, Test: 100 * best.Eval.Test.Accuracy,
		Seconds: time.Since(begun).Seconds(), Seen: result.Last.Seen, Hash: result.Last.Hash,
	}, nil
}
