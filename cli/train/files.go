package train

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// Predict returns `hopmesh predict`.
func Predict() *cobra.Command {
	var d daemon.Flags
	var out, dataset string
	var embeddings bool
	var pairs pairFlags
	cmd := &cobra.Command{
		Use:   "predict JOB --out FILE",
		Short: "Write predictions for every vertex, or for pairs",
		Long: "Runs the model of a job's best epoch on all vertices with all their neighbours, and writes a row for each\n" +
			"vertex: its logits, or with --embeddings the input of the last layer. Rows are in ascending order of the\n" +
			"vertex ids of the source. A .parquet file has a column with these ids, and for logits the class\n" +
			"with the largest, its name and its probability; a .npy file has the numbers alone. With --dataset the\n" +
			"vertices are those of another dataset, which has the same columns of features in the same order.\n" +
			"For a sweep it uses the best model, or the one of --model-index, as numbered by `hopmesh train show`. If\n" +
			"it is interrupted or fails, it leaves no file.\n\n" +
			"A model of --task link scores pairs: those of --pairs in the order of that file or, with --top, the best\n" +
			"partners of each vertex, which are found exactly and without those that it has an edge with already. A score\n" +
			"is the logit of an edge. The columns are source, target and score; .npy has the scores alone, of --pairs\n" +
			"only. Without --out they are printed as CSV, or with --json as a document.",
		Example: "  hopmesh predict j1 --out cora.parquet\n  hopmesh predict j1 --out cora.npy --embeddings\n" +
			"  hopmesh predict j1 --dataset august --out august.parquet\n" +
			"  hopmesh predict j2 --pairs candidates.csv --out scores.csv\n  hopmesh predict j2 --top 10 --vertices some.csv",
		Args:              usage.OneArg("JOB"),
		ValidArgsFunction: daemon.Suggest(&d, JobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := api.PredictRequest{Dataset: dataset, Format: strings.ToLower(filepath.Ext(out)), Embeddings: embeddings, Index: modelIndex(cmd)}
			if err := pairs.into(&r.PairOptions); err != nil {
				return err
			}
			formats := api.PredictFormats()
			if r.Paired() {
				formats = api.PairFormats()
			}
			printed := r.Paired() && out == ""
			if printed {
				r.Format = ".csv"
				if d.JSON {
					r.Format = ".json"
				}
			}
			if !slices.Contains(formats, r.Format) {
				return usage.Errorf(cmd, "--out %q must end in %s, which sets the format", out, usage.OneOf(formats))
			}
			if err := r.Check(); err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			if printed {
				return printFile(cmd, &d, func(ctx context.Context, c *api.Client, to io.Writer) error { return c.Predict(ctx, args[0], r, to) })
			}
			return save(cmd, &d, args[0], out, func(ctx context.Context, c *api.Client, to io.Writer) error { return c.Predict(ctx, args[0], r, to) })
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`FILE` to write, .npy or .parquet; of pairs also .csv, .tsv or .json")
	datasetFlag(cmd, &dataset)
	cmd.Flags().BoolVar(&embeddings, "embeddings", false, "write the input of the last layer instead of the logits")
	pairs.add(cmd)
	modelIndexFlag(cmd)
	d.Add(cmd)
	return cmd
}

// Export returns `hopmesh export`.
func Export() *cobra.Command {
	var d daemon.Flags
	var out string
	cmd := &cobra.Command{
		Use:   "export JOB --out FILE",
		Short: "Write the weights of a trained model",
		Long: "Writes the weights of a job's best epoch as .safetensors, for Python and others. The metadata of the file\n" +
			"describes the model. For a sweep it writes the best model, or the one of --model-index, as numbered by\n" +
			"`hopmesh train show`. If it is interrupted or fails, it leaves no file.",
		Example:           "  hopmesh export j1 --out model.safetensors",
		Args:              usage.OneArg("JOB"),
		ValidArgsFunction: daemon.Suggest(&d, JobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.ToLower(filepath.Ext(out)) != ".safetensors" {
				return usage.Errorf(cmd, "--out %q must end in .safetensors, the only format", out)
			}
			r := api.ExportRequest{Index: modelIndex(cmd)}
			return save(cmd, &d, args[0], out, func(ctx context.Context, c *api.Client, to io.Writer) error { return c.ExportJob(ctx, args[0], r, to) })
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`FILE` to write, .safetensors")
	modelIndexFlag(cmd)
	d.Add(cmd)
	return cmd
}

func modelIndexFlag(cmd *cobra.Command) {
	cmd.Flags().Int("model-index", 0, "model of a sweep, a `NUMBER` from 0 (default: the best)")
	usage.CompleteFlag(cmd, "model-index", nil)
}

// modelIndex returns nil if the flag was not given.
func modelIndex(cmd *cobra.Command) *int {
	return given(cmd.Flags(), "model-index", cmd.Flags().GetInt)
}

// saved is the JSON document about a written file.
type saved struct {
	ID    string `json:"id"`
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// beside creates a file that is to take the place of another. Who may read it is for the umask to
// say, as of a file that a shell creates: only the system can apply it without a race.
func beside(path string) (*os.File, error) {
	name := "." + filepath.Base(path) + "." + rand.Text()[:10] + ".tmp"
	return os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // as a shell would
}

// save writes a complete file or none.
func save(cmd *cobra.Command, d *daemon.Flags, id, path string, get func(context.Context, *api.Client, io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usage.Errorf(cmd, "--out %q is a folder: name the file to write", path)
	}
	file, err := beside(path)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return fmt.Errorf("%s can't be written: %w", path, err)
	}
	_, err = daemon.Ask(cmd, d, func(ctx context.Context, c *api.Client) (none struct{}, err error) { return none, get(ctx, c, file) })
	if err == nil {
		err = file.Sync()
	}
	info, statErr := file.Stat()
	err = errors.Join(err, statErr, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		if errors.Is(err, api.ErrGone) {
			err = fmt.Errorf("%w; no file was written", err)
		}
		if removeErr := os.Remove(file.Name()); removeErr != nil {
			err = errors.Join(err, removeErr)
		}
		return err
	}
	if d.JSON {
		return output.JSON(cmd.OutOrStdout(), saved{ID: id, File: path, Bytes: info.Size()})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s, %s.\n", output.Cell(path), output.Size(uint64(info.Size())))
	return err
}
