package nodetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/hopmesh/hopmesh/node/api"
)

// Crash is like Kill, but also freezes the node's datasets on disk, as kill -9 does: what
// the node does to them while it ends has no effect.
func (i *Instance) Crash() {
	t := i.cluster.T
	t.Helper()
	if i.done == nil {
		return
	}
	_ = i.conn.Close()
	datasets, aside := filepath.Join(i.Options.DataDir, "datasets"), filepath.Join(i.cluster.dir, i.Name+".crashed")
	err := os.CopyFS(aside, os.DirFS(datasets))
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(aside, 0o700) // it has only just begun
	}
	if err != nil {
		t.Fatal(err)
	}
	i.Kill()
	if err := os.RemoveAll(datasets); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, datasets); err != nil {
		t.Fatal(err)
	}
}

// Files lists the files of all datasets on the node's disk, by their paths in its folder
// of datasets. These are shards and leftovers of those being made or fetched.
func (i *Instance) Files() []string {
	root := filepath.Join(i.Options.DataDir, "datasets")
	var list []string
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(root, path)
			list = append(list, name)
		}
		return nil // files come and go meanwhile
	})
	return list
}

// Datasets lists the datasets that the node knows.
func (i *Instance) Datasets() []api.DatasetSummary {
	if i.node == nil {
		return nil
	}
	list, err := i.API().Datasets(context.Background())
	if err != nil {
		return nil
	}
	return list
}

// Dataset returns a dataset as the node knows it, or a zero one.
func (i *Instance) Dataset(name string) api.Dataset {
	if i.node == nil {
		return api.Dataset{}
	}
	d, err := i.API().Dataset(context.Background(), name)
	if err != nil {
		return api.Dataset{}
	}
	return d
}

// CheckHolders verifies the file of every shard that a running node holds by the newest
// plan that any of them knows. It returns an error if a file differs from the plan.
func (c *Cluster) CheckHolders() error {
	for {
		newest := c.newest()
		if newest == nil {
			return nil
		}
		index := newest.Plan().Index
		err := c.checkHolders(newest)
		// A newer plan may have had the files removed meanwhile.
		if err == nil || c.newest().Plan().Index == index {
			return err
		}
	}
}

// newest returns the running node with the newest plan, or nil if none runs.
func (c *Cluster) newest() *Instance {
	var best *Instance
	for _, i := range c.Nodes {
		if ended, _ := i.Ended(); i.Running() && !ended && (best == nil || i.Plan().Index > best.Plan().Index) {
			best = i
		}
	}
	return best
}

func (c *Cluster) checkHolders(seenBy *Instance) error {
	running := map[string]*Instance{}
	for _, i := range c.Nodes {
		if ended, _ := i.Ended(); i.Running() && !ended {
			running[i.Name] = i
		}
	}
	for _, sum := range seenBy.Datasets() {
		for _, s := range seenBy.Dataset(sum.Name).Shards {
			for _, holder := range append([]string{s.Owner}, s.Replicas...) {
				if at := running[holder]; at != nil && !at.has(s) {
					return fmt.Errorf("%s says that %s holds shard %d of %s, and it does not", seenBy.Name, holder, s.ID, sum.Name)
				}
			}
		}
	}
	return nil
}

// CheckFiles returns an error unless a node's folder of datasets has the files of the shards that it
// holds, by its own plan, and no others.
func (i *Instance) CheckFiles() error {
	want := 0
	for _, sum := range i.Datasets() {
		for _, s := range i.Dataset(sum.Name).Shards {
			if s.Owner == i.Name || slices.Contains(s.Replicas, i.Name) {
				want++
			}
		}
	}
	if has := i.Files(); len(has) != want {
		return fmt.Errorf("%s holds %d shards, and has the files %v", i.Name, want, has)
	}
	return nil
}

// has reports whether the file on the node's disk is that shard.
func (i *Instance) has(s api.DatasetShard) bool {
	return slices.ContainsFunc(i.Files(), func(name string) bool {
		if filepath.Base(name) != fmt.Sprintf("%04d.safetensors", s.ID) || filepath.Ext(filepath.Dir(name)) != "" {
			return false
		}
		b, err := os.ReadFile(filepath.Join(i.Options.DataDir, "datasets", name))
		sum := sha256.Sum256(b)
		return err == nil && hex.EncodeToString(sum[:]) == s.SHA256
	})
}
