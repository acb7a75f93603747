package node_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// shop writes a graph of users who buy and view items, as a folder of files.
func shop(t *testing.T) string {
	t.Helper()
	users, items, buys, views := new(strings.Builder), new(strings.Builder), new(strings.Builder), new(strings.Builder)
	fmt.Fprintln(users, "id,age")
	fmt.Fprintln(items, "id,price,weight")
	fmt.Fprintln(buys, "src,dst")
	fmt.Fprintln(views, "src,dst")
	for i := range 30 {
		fmt.Fprintf(users, "u%d,%d\n", i, i%2)
		fmt.Fprintf(items, "i%d,%d,%d\n", i, i%2, i%3)
		for k := range 5 {
			item := (i + 2*k) % 30
			fmt.Fprintf(buys, "u%d,i%d\n", i, item)
			fmt.Fprintf(views, "u%d,i%d\n", i, (item+1)%30)
		}
	}
	return tables(t, map[string]string{
		"nodes/user.csv": users.String(), "nodes/item.csv": items.String(),
		"edges/user-buys-item.csv": buys.String(), "edges/user-views-item.csv": views.String(),
	})
}

// What one relation of a graph with types teaches is the same on any number of nodes: the scores that
// evaluations see, and the items that are recommended to each user.
func TestARelationOfATypedGraphIsLearnt(t *testing.T) {
	folder := shop(t)
	var want []string
	for _, nodes := range []int{1, 3} {
		nodetest.Virtual(t, nodes, func(t *testing.T, c *nodetest.Cluster) {
			n := c.Nodes[0]
			r := api.ImportRequest{Name: "shop", Source: folder, DatasetOptions: api.DatasetOptions{Shards: 3, Undirected: true}}
			if _, err := n.API().ImportDataset(t.Context(), r, func(api.DatasetEvent) {}); err != nil {
				t.Fatal(err)
			}
			epochs, batch := 3, 40
			start := func(set ...api.Setting) (string, error) {
				return n.API().StartJob(t.Context(), api.TrainRequest{Dataset: "shop", Task: "link", Model: "rgcn", EdgeSplit: []float64{0.6, 0.2, 0.2}, Epochs: &epochs, Batch: &batch, Deterministic: true, Set: set})
			}
			_, err := start()
			refused(t, "no relation", err, "name it with --set link.relation")
			_, err = start(api.Setting{Key: "link.relation", Value: "sells"})
			refused(t, "an unknown one", err, "no relation is called sells: the dataset has buys, views, rev-buys, rev-views")
			id, err := start(api.Setting{Key: "link.relation", Value: "buys"})
			if err != nil {
				t.Fatal(err)
			}
			j := waitState(c, n, id, "done")
			var out bytes.Buffer
			if err := n.API().Predict(t.Context(), id, api.PredictRequest{Format: ".csv", PairOptions: api.PairOptions{Top: 3}}, &out); err != nil {
				t.Fatal(err)
			}
			got := []string{fmt.Sprint(j.Best.Metrics), out.String()}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
			if len(lines) != 90 {
				t.Errorf("30 users have %d partners", len(lines))
			}
			for _, line := range lines {
				if of := strings.Split(line, ","); !strings.HasPrefix(of[0], "user/") || !strings.HasPrefix(of[1], "item/") {
					t.Errorf("a partner that no edge of the relation can lead to: %s", line)
				}
			}
			if want == nil {
				want = got
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%d nodes learn otherwise than one:\n%v\nand\n%v", nodes, got, want)
			}
		})
	}
}
