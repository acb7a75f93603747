package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func dataset() *cobra.Command {
	return group(cobra.Command{
		Use:   "dataset",
		Short: "Bring graphs into the mesh, look at them, remove them",
		Long: "A dataset is a graph that was cut into shards once and is held by the nodes of the mesh, each shard by\n" +
			"its owner and by a number of others.",
		Example: "  hopmesh dataset import cora ./cora.npz\n  hopmesh dataset list",
	}, datasetImport(), datasetGenerate(), datasetList(), datasetShow(), datasetVerify(), datasetRemove())
}

func datasetList() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List the datasets of the mesh",
		Long:              "Lists the datasets of the mesh, as the asked node knows them. SIZE counts each shard once, however many\ncopies there are; PROBLEMS counts what `hopmesh dataset show` has to complain of.",
		Example:           "  hopmesh dataset list\n  hopmesh dataset list --json | jq -r '.[] | select(.stage == \"ready\") | .name'",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) ([]api.DatasetSummary, error) { return c.Datasets(ctx) })
			if err != nil {
				return err
			}
			slices.SortFunc(list, func(a, b api.DatasetSummary) int { return cmp.Compare(a.Name, b.Name) })
			if d.json {
				return printJSON(cmd.OutOrStdout(), list)
			}
			rows := [][]string{{"NAME", "STAGE", "VERTICES", "EDGES", "FEATURES", "CLASSES", "SHARDS", "SIZE", "PROBLEMS"}}
			for _, s := range list {
				rows = append(rows, []string{
					s.Name, s.Stage, thousands(s.Vertices), thousands(s.Edges), strconv.Itoa(s.Features), strconv.Itoa(s.Classes),
					strconv.Itoa(s.Shards), formatSize(s.Bytes), strconv.Itoa(s.Problems),
				})
			}
			return table(cmd.OutOrStdout(), rows...)
		},
	}
	d.flags(cmd)
	return cmd
}

func datasetShow() *cobra.Command {
	var d daemon
	var shards bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Describe a dataset: its size, its cut, who holds it",
		Long: "Describes a dataset as the asked node knows it: its size, how well it is cut, which nodes hold it, and\n" +
			"what is wrong with it. With --shards, each shard too; --json always holds them.",
		Example:           "  hopmesh dataset show cora\n  hopmesh dataset show cora --shards\n  hopmesh dataset show cora --json | jq .edge_cut_share",
		Args:              oneArg("NAME"),
		ValidArgsFunction: suggest(&d, datasetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Dataset, error) { return c.Dataset(ctx, args[0]) })
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if d.json {
				return printJSON(w, set)
			}
			if err := printDataset(w, set); err != nil || !shards {
				return err
			}
			return printShards(w, set.Shards)
		},
	}
	cmd.Flags().BoolVar(&shards, "shards", false, "list each shard")
	d.flags(cmd)
	return cmd
}

func datasetVerify() *cobra.Command {
	var d daemon
	cmd := &cobra.Command{
		Use:   "verify NAME",
		Short: "Read every copy of a dataset's shards through",
		Long: "Has every node read its copies of the dataset's shards through and compare them with their checksums.\n" +
			"A copy that is damaged or missing is named, and replaced from another one.",
		Example:           "  hopmesh dataset verify cora",
		Args:              oneArg("NAME"),
		ValidArgsFunction: suggest(&d, datasetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, p, noted := args[0], newProgress(cmd.ErrOrStderr(), d.json), false
			_, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.VerifyDataset(ctx, name, func(e api.DatasetEvent) {
					noted = noted || e.Note != ""
					p.tell(e)
				})
			})
			p.end(err == nil)
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), api.Done{Name: name, OK: true})
			}
			said := "Every copy of every shard of %s is whole.\n"
			if noted { // of nodes that could not be asked
				said = "Every shard of %s has a whole copy; not all copies could be read.\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), said, cell(name))
			return err
		},
	}
	d.flags(cmd)
	return cmd
}

func datasetRemove() *cobra.Command {
	var d daemon
	var force bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a dataset from the mesh",
		Long: "Removes a dataset from the mesh: every node deletes its shards of it. What it was imported from stays.\n" +
			"One that a job was trained on is removed only with --force: the job can then neither predict nor be\n" +
			"resumed, until the same is imported again, with the same options and under the same name.",
		Example:           "  hopmesh dataset remove cora\n  hopmesh dataset remove cora --force",
		Args:              oneArg("NAME"),
		ValidArgsFunction: suggest(&d, datasetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			_, err := ask(cmd, &d, func(ctx context.Context, c *api.Client) (none struct{}, err error) {
				return none, c.RemoveDataset(ctx, name, force)
			})
			if err != nil {
				return err
			}
			if d.json {
				return printJSON(cmd.OutOrStdout(), api.Done{Name: name, OK: true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is no longer in the mesh.\n", cell(name))
			return err
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove it though jobs that have ended need it, whose models are of no use without")
	d.flags(cmd)
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
