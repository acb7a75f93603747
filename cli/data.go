package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func dataset() *cobra.Command {
	return usage.Group(cobra.Command{
		Use:   "dataset",
		Short: "Import, generate, inspect and remove graphs",
		Long: "A dataset is a graph that was partitioned into shards. Each shard is stored by its owner and, as a\n" +
			"replica, by other nodes.",
		Example: "  hopmesh dataset import cora ./cora.npz\n  hopmesh dataset list",
	}, datasetImport(), datasetGenerate(), datasetList(), datasetShow(), datasetVerify(), datasetRemove())
}

func datasetList() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List the datasets of the mesh",
		Long:              "Lists the datasets of the mesh, as the asked node knows them. SIZE counts each shard once, without\nreplicas. PROBLEMS is the number of problems that `hopmesh dataset show` lists.",
		Example:           "  hopmesh dataset list\n  hopmesh dataset list --json | jq -r '.[] | select(.stage == \"ready\") | .name'",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) ([]api.DatasetSummary, error) { return c.Datasets(ctx) })
			if err != nil {
				return err
			}
			slices.SortFunc(list, func(a, b api.DatasetSummary) int { return cmp.Compare(a.Name, b.Name) })
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), list)
			}
			rows := [][]string{{"NAME", "STAGE", "VERTICES", "EDGES", "FEATURES", "CLASSES", "SHARDS", "SIZE", "PROBLEMS"}}
			for _, s := range list {
				rows = append(rows, []string{
					s.Name, s.Stage, output.Thousands(s.Vertices), output.Thousands(s.Edges), strconv.Itoa(s.Features), strconv.Itoa(s.Classes),
					strconv.Itoa(s.Shards), output.Size(s.Bytes), strconv.Itoa(s.Problems),
				})
			}
			return output.Table(cmd.OutOrStdout(), rows...)
		},
	}
	d.Add(cmd)
	return cmd
}

func datasetShow() *cobra.Command {
	var d daemon.Flags
	var shards bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Describe a dataset: its size, its edge cut, its nodes",
		Long: "Describes a dataset as the asked node knows it: its size, its edge cut, the nodes that store it, the folder\n" +
			"of its shards on the asked node, and its problems. --shards adds each shard; --json always has them.",
		Example:           "  hopmesh dataset show cora\n  hopmesh dataset show cora --shards\n  hopmesh dataset show cora --json | jq .edge_cut_share",
		Args:              usage.OneArg("NAME"),
		ValidArgsFunction: daemon.Suggest(&d, datasetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Dataset, error) { return c.Dataset(ctx, args[0]) })
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if d.JSON {
				return output.JSON(w, set)
			}
			if err := printDataset(w, set); err != nil || !shards {
				return err
			}
			return printShards(w, set.Shards)
		},
	}
	cmd.Flags().BoolVar(&shards, "shards", false, "list each shard")
	d.Add(cmd)
	return cmd
}

func datasetVerify() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "verify NAME",
		Short: "Check every copy of a dataset's shards",
		Long: "Makes every node read its copies of the dataset's shards and compare them with their checksums. Damaged\n" +
			"and missing copies are listed, and replaced from another copy.",
		Example:           "  hopmesh dataset verify cora",
		Args:              usage.OneArg("NAME"),
		ValidArgsFunction: daemon.Suggest(&d, datasetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, p, noted := args[0], newProgress(cmd.ErrOrStderr(), d.JSON), false
			_, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.VerifyDataset(ctx, name, func(e api.DatasetEvent) {
					noted = noted || e.Note != ""
					p.show(e)
				})
			})
			p.end(err == nil)
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), api.Done{Name: name, OK: true})
			}
			text := "Every copy of every shard of %s is intact.\n"
			if noted { // some nodes could not be asked
				text = "Every shard of %s has an intact copy; not all copies could be read.\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), text, output.Cell(name))
			return err
		},
	}
	d.Add(cmd)
	return cmd
}

func datasetRemove() *cobra.Command {
	var d daemon.Flags
	var force bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a dataset from the mesh",
		Long: "Removes a dataset from the mesh: every node deletes its shards. The source it was imported from stays. A\n" +
			"dataset that a job was trained on is removed only with --force. The job can then neither predict nor be\n" +
			"resumed until the same graph is imported again, with the same options and name.",
		Example:           "  hopmesh dataset remove cora\n  hopmesh dataset remove cora --force",
		Args:              usage.OneArg("NAME"),
		ValidArgsFunction: daemon.Suggest(&d, datasetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			_, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.RemoveDataset(ctx, name, force)
			})
			if err != nil {
				return err
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), api.Done{Name: name, OK: true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is no longer in the mesh.\n", output.Cell(name))
			return err
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove it although the models of finished jobs need it")
	d.Add(cmd)
	return cmd
}

func datasetNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Datasets(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names, nil
}

func printForecast(w io.Writer, f api.Forecast) error {
	if _, err := fmt.Fprintln(w, "Forecast"); err != nil {
		return err
	}
	rows := [][]string{
		{"  Graph", fmt.Sprintf("%s vertices, at most %s edges", output.Thousands(f.Vertices), output.Thousands(f.Edges))},
		{"  Peak memory", output.Size(f.PeakMemory)},
		{"  Scratch on disk", output.Size(f.Scratch)},
		{"  Shards", fmt.Sprintf("%d of at most %s on average, %s beside each", f.Shards, output.Size(f.ShardBytes), output.Plural(f.Replicas, "copy", "copies"))},
		{"  Partitioner", f.Partitioner},
	}
	// What the other partitioners cut depends on the graph: nobody knows before they have.
	if f.Partitioner == "random" {
		rows = append(rows, []string{"  Edge cut", "about " + output.Percent(f.CutAtMost)})
	}
	err := output.Table(w, rows...)
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

func printDataset(w io.Writer, d api.Dataset) error {
	rows := [][]string{{"Name", d.Name}, {"Stage", d.Stage}}
	// Before it is partitioned there is nothing to describe.
	if len(d.Shards) > 0 {
		rows = slices.Concat(rows, described(d), holding(d.Shards))
	}
	if d.Folder != "" {
		rows = append(rows, []string{"Folder here", d.Folder})
	}
	if err := output.Table(w, rows...); err != nil {
		return err
	}
	for i, p := range d.Problems {
		p = output.Sentence(p)
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
	rows := [][]string{
		{"Vertices", output.Thousands(d.Vertices)},
		{"Edges", output.Thousands(d.Edges)},
		{"Features", fmt.Sprintf("%d as %s", d.Features, d.DType)},
		{"Classes", classes(d)},
		{"Splits", splits(d)},
		{"Partitioner", fmt.Sprintf("%s, seed %d", d.Partitioner, d.Seed)},
		{"Edge cut", fmt.Sprintf("%s edges, %s", output.Thousands(d.EdgeCut), output.Percent(d.EdgeCutShare))},
		{"Balance", fmt.Sprintf("%.2f by vertices, %.2f by edges, %.2f by training vertices", d.Balance, d.BalanceEdges, d.BalanceTraining)},
	}
	if d.EdgeFeatures > 0 {
		rows = append(rows, []string{"Edge features", fmt.Sprintf("%d as %s", d.EdgeFeatures, d.DType)})
	}
	for _, t := range d.Types {
		rows = append(rows, []string{"Type " + t.Name, fmt.Sprintf("%s, %s", output.Plural(int(t.Vertices), "vertex", "vertices"), output.Plural(t.Features, "feature", "features"))})
	}
	for _, r := range d.Relations {
		rows = append(rows, []string{"Relation " + r.Name, fmt.Sprintf("from %s to %s, %s", r.Source, r.Target, output.Plural(int(r.Edges), "edge", "edges"))})
	}
	return rows
}

// classes returns how many there are, and their names.
func classes(d api.Dataset) string {
	const most = 12
	text := strconv.Itoa(d.Classes)
	switch d.Task {
	case "multilabel":
		text = "none, and " + output.Plural(d.Targets, "label", "labels") + " each of which a vertex may have"
	case "regression":
		text = "none, and " + output.Plural(d.Targets, "number", "numbers") + " of each vertex"
	}
	if len(d.ClassNames) > 0 {
		text += ": " + strings.Join(d.ClassNames[:min(len(d.ClassNames), most)], ", ")
	}
	if more := len(d.ClassNames) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func splits(d api.Dataset) string {
	if len(d.SplitSizes) == 0 {
		return strconv.Itoa(d.Splits)
	}
	s := d.SplitSizes[0]
	text := fmt.Sprintf("%s to train, %s to validate, %s to test", output.Thousands(s.Train), output.Thousands(s.Val), output.Thousands(s.Test))
	if d.Splits > 1 {
		return fmt.Sprintf("%d, the first: %s", d.Splits, text)
	}
	return text
}

// holding summarizes the shards, of which there must be one: their sizes and owners.
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
	copies := output.Plural(fewest, "copy", "copies")
	if fewest != most {
		copies = fmt.Sprintf("%d to %s", fewest, output.Plural(most, "copy", "copies"))
	}
	rows := [][]string{
		{"Halo", fmt.Sprintf("%s to %s vertices a shard, median %s", output.Thousands(halos[0]), output.Thousands(halos[len(halos)-1]), output.Thousands(halos[(len(halos)-1)/2]))},
		{"Shards", fmt.Sprintf("%d, %s in all, %s beside each", len(shards), output.Size(bytes), copies)},
	}
	slices.Sort(owners)
	for _, o := range owners {
		who := "On " + o
		if o == "" {
			who = "On no node"
		}
		rows = append(rows, []string{who, output.ShardList(owned[o])})
	}
	return rows
}

func printShards(w io.Writer, shards []api.DatasetShard) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	rows := [][]string{{"SHARD", "VERTICES", "EDGES", "HALO", "SIZE", "OWNER", "REPLICAS", "SHA256"}}
	for _, s := range shards {
		rows = append(rows, []string{
			strconv.Itoa(s.ID), output.Thousands(s.Vertices), output.Thousands(s.Edges), output.Thousands(s.Halo), output.Size(s.Bytes),
			s.Owner, strings.Join(s.Replicas, ","), s.SHA256,
		})
	}
	return output.Table(w, rows...)
}
