package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
)

func printForecast(w io.Writer, f api.Forecast) error {
	if _, err := fmt.Fprintln(w, "Forecast"); err != nil {
		return err
	}
	err := table(w,
		[]string{"  Graph", fmt.Sprintf("%s vertices, at most %s edges", thousands(f.Vertices), thousands(f.Edges))},
		[]string{"  Peak memory", formatSize(f.PeakMemory)},
		[]string{"  Scratch on disk", formatSize(f.Scratch)},
		[]string{"  Shards", fmt.Sprintf("%d of at most %s on average, %s beside each", f.Shards, formatSize(f.ShardBytes), plural(f.Replicas, "copy", "copies"))},
		[]string{"  Partitioner", f.Partitioner},
		[]string{"  Edge cut", "at most " + percent(f.CutAtMost)},
	)
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

func printDataset(w io.Writer, d api.Dataset) error {
	rows := [][]string{{"Name", d.Name}, {"Stage", d.Stage}}
	// Until it is cut there is nothing to tell.
	if len(d.Shards) > 0 {
		rows = slices.Concat(rows, described(d), holding(d.Shards))
	}
	if err := table(w, rows...); err != nil {
		return err
	}
	for i, p := range d.Problems {
		p = sentence(p)
		if i == 0 {
			p = "\n" + p
		}
		if _, err := fmt.Fprintln(w, p); err != nil {
			return err
		}
	}
	return nil
}

func described(d api.Dataset) [][]string {
	return [][]string{
		{"Vertices", thousands(d.Vertices)},
		{"Edges", thousands(d.Edges)},
		{"Features", fmt.Sprintf("%d as %s", d.Features, d.DType)},
		{"Classes", strconv.Itoa(d.Classes)},
		{"Splits", splits(d)},
		{"Partitioner", fmt.Sprintf("%s, seed %d", d.Partitioner, d.Seed)},
		{"Edge cut", fmt.Sprintf("%s edges, %s", thousands(d.EdgeCut), percent(d.EdgeCutShare))},
		{"Balance", fmt.Sprintf("%.2f by vertices, %.2f by edges, %.2f by training vertices", d.Balance, d.BalanceEdges, d.BalanceTraining)},
	}
}

func splits(d api.Dataset) string {
	if len(d.SplitSizes) == 0 {
		return strconv.Itoa(d.Splits)
	}
	s := d.SplitSizes[0]
	text := fmt.Sprintf("%s to train, %s to validate, %s to test", thousands(s.Train), thousands(s.Val), thousands(s.Test))
	if d.Splits > 1 {
		return fmt.Sprintf("%d, the first: %s", d.Splits, text)
	}
	return text
}

// holding sums up the shards, of which there is one at least: their size, and who
// has them.
func holding(shards []api.DatasetShard) [][]string {
	var bytes uint64
	var halos []uint64
	var owners []string
	owned := map[string][]int{}
	fewest, most := len(shards[0].Replicas), 0
	for _, s := range shards {
		bytes += s.Bytes
		halos = append(halos, s.Halo)
		if owned[s.Owner] == nil {
			owners = append(owners, s.Owner)
		}
		owned[s.Owner] = append(owned[s.Owner], s.ID)
		fewest, most = min(fewest, len(s.Replicas)), max(most, len(s.Replicas))
	}
	slices.Sort(halos)
	copies := plural(fewest, "copy", "copies")
	if fewest != most {
		copies = fmt.Sprintf("%d to %s", fewest, plural(most, "copy", "copies"))
	}
	rows := [][]string{
		{"Halo", fmt.Sprintf("%s to %s vertices a shard, median %s", thousands(halos[0]), thousands(halos[len(halos)-1]), thousands(halos[(len(halos)-1)/2]))},
		{"Shards", fmt.Sprintf("%d, %s in all, %s beside each", len(shards), formatSize(bytes), copies)},
	}
	slices.Sort(owners)
	for _, o := range owners {
		who := "On " + o
		if o == "" {
			who = "On no node"
		}
		rows = append(rows, []string{who, runs(owned[o])})
	}
	return rows
}

// runs names numbers by their runs: "shards 0-21, 40".
func runs(ids []int) string {
	slices.Sort(ids)
	var list []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if i == j {
			list = append(list, strconv.Itoa(ids[i]))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", ids[i], ids[j]))
		}
		i = j + 1
	}
	word := "shards "
	if len(ids) == 1 {
		word = "shard "
	}
	return word + strings.Join(list, ", ")
}

func printShards(w io.Writer, shards []api.DatasetShard) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	rows := [][]string{{"SHARD", "VERTICES", "EDGES", "HALO", "SIZE", "OWNER", "REPLICAS", "SHA256"}}
	for _, s := range shards {
		rows = append(rows, []string{
			strconv.Itoa(s.ID), thousands(s.Vertices), thousands(s.Edges), thousands(s.Halo), formatSize(s.Bytes),
			s.Owner, strings.Join(s.Replicas, ","), s.SHA256,
		})
	}
	return table(w, rows...)
}

// thousands shows a number with its digits in groups: 1,166,243.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
