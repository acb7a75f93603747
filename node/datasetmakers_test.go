package node_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// A generated graph has the same bits whoever makes it.
func TestGeneratedByAllNodes(t *testing.T) {
	nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
		for _, kind := range []string{"rmat", "sbm"} {
			var got []api.Dataset
			for _, makers := range []string{"one", "all"} {
				d, err := c.Nodes[0].API().GenerateDataset(t.Context(), api.GenerateRequest{
					Name: kind + "-" + makers, Kind: kind, Vertices: 2000, Edges: 20000, Features: 9, Classes: 4,
					DatasetOptions: api.DatasetOptions{Shards: 6, Makers: makers, Seed: 1},
				}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, d)
			}
			if !slices.Equal(hashes(got[0]), hashes(got[1])) || got[0].Edges != got[1].Edges || got[0].EdgeCut != got[1].EdgeCut {
				t.Errorf("%s: other shards", kind)
			}
		}
		if err := c.CheckHolders(); err != nil {
			t.Error(err)
		}
	})
}

// A node that dies while it makes shards ends the import, in a sentence, and nothing is
// left on any node. If who conducts dies, nothing is left either.
func TestMakerDies(t *testing.T) {
	for _, stage := range []string{"reading edges", "sorting edges", "cutting", "sharing out edges", "sorting edges into shards", "writing features", "syncing"} {
		for _, who := range []int{0, 2} {
			nodetest.Virtual(t, 3, func(t *testing.T, c *nodetest.Cluster) {
				dies := c.Nodes[who]
				killed := false
				var over sync.WaitGroup
				_, err := c.Nodes[0].API().GenerateDataset(t.Context(), api.GenerateRequest{
					Name: "g", Kind: "sbm", Vertices: 2000, Edges: 20000, Features: 9, Classes: 4,
					DatasetOptions: api.DatasetOptions{Shards: 6, Makers: "all", Partitioner: "stream"},
				}, func(e api.DatasetEvent) {
					if e.Progress != nil && e.Progress.Stage == stage && !killed {
						killed = true
						over.Go(dies.Kill) // which waits for the import, if it is this node's
					}
				})
				over.Wait()
				if !killed || err == nil || who != 0 && !strings.Contains(err.Error(), dies.Name) {
					t.Errorf("%s: killed %v: %v", stage, killed, err)
				}
				dies.Restart()
				absent(t, c)
			})
		}
	}
}
