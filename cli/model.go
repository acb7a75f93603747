package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func predict() *cobra.Command {
	var d daemon
	var out string
	var embeddings bool
	cmd := &cobra.Command{
		Use:   "predict JOB --out FILE",
		Short: "Write what a trained model says of every vertex",
		Long: "Runs the model of a job, as it was in its best epoch, over all vertices with all their neighbours, and\n" +
			"writes a row for each: the classes' scores before softmax, or with --embeddings what the last layer is\n" +
			"given. Rows are in ascending order of what the source calls the vertices. A .parquet file holds that\n" +
			"name beside each row; a .npy file holds the numbers alone. Of a sweep it is the best model, or the one that\n" +
			"--model-index names, as `hopmesh train show` counts them. Interrupted or failed, it leaves no file.",
		Example:           "  hopmesh predict j1 --out cora.parquet\n  hopmesh predict j1 --out cora.npy --embeddings",
		Args:              oneArg("JOB"),
		ValidArgsFunction: suggest(&d, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			format := strings.ToLower(filepath.Ext(out))
			if !slices.Contains(api.PredictFormats(), format) {
				return wrongUsage(cmd, "--out %q must end in %s, which says what is written", out, oneOf(api.PredictFormats()))
			}
			r := api.PredictRequest{Format: format, Embeddings: embeddings, Index: modelIndex(cmd)}
			return save(cmd, &d, args[0], out, func(ctx context.Context, c *api.Client, to io.Writer) error { return c.Predict(ctx, args[0], r, to) })
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the `FILE` to write, .npy or .parquet")
	cmd.Flags().BoolVar(&embeddings, "embeddings", false, "write what the last layer is given instead of the classes' scores")
	modelIndexFlag(cmd)
	d.flags(cmd)
	return cmd
}

func export() *cobra.Command {
	var d daemon
	var out string
	cmd := &cobra.Command{
		Use:   "export JOB --out FILE",
		Short: "Write a trained model, for Python and others",
		Long: "Writes the weights of a job's model, as they were in its best epoch, as .safetensors; what the model is\n" +
			"stands in the file's metadata. Of a sweep it is the best model, or the one that --model-index names, as\n" +
			"`hopmesh train show` counts them. Interrupted or failed, it leaves no file.",
		Example:           "  hopmesh export j1 --out model.safetensors",
		Args:              oneArg("JOB"),
		ValidArgsFunction: suggest(&d, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.ToLower(filepath.Ext(out)) != ".safetensors" {
				return wrongUsage(cmd, "--out %q must end in .safetensors, which is what is written", out)
			}
			r := api.ExportRequest{Index: modelIndex(cmd)}
			return save(cmd, &d, args[0], out, func(ctx context.Context, c *api.Client, to io.Writer) error { return c.ExportJob(ctx, args[0], r, to) })
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the `FILE` to write, .safetensors")
	modelIndexFlag(cmd)
	d.flags(cmd)
	return cmd
}

func modelIndexFlag(cmd *cobra.Command) {
	cmd.Flags().Int("model-index", 0, "which model of a sweep, a `NUMBER` from 0 (default: the best)")
	completeFlag(cmd, "model-index", nil)
}

// modelIndex is nil if nobody said which.
func modelIndex(cmd *cobra.Command) *int { return said(cmd.Flags(), "model-index", cmd.Flags().GetInt) }

// saved is what is said of a file that was written.
type saved struct {
	ID    string `json:"id"`
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// save writes a file whole or not at all.
func save(cmd *cobra.Command, d *daemon, id, path string, get func(context.Context, *api.Client, io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return wrongUsage(cmd, "--out %q is a folder: name the file to write", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return fmt.Errorf("%s can't be written: %w", path, err)
	}
	_, err = ask(cmd, d, func(ctx context.Context, c *api.Client) (none struct{}, err error) { return none, get(ctx, c, file) })
	if err == nil {
		err = file.Chmod(0o644) // it is the user's, as if a shell had made it
	}
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
	if d.json {
		return printJSON(cmd.OutOrStdout(), saved{ID: id, File: path, Bytes: info.Size()})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s, %s.\n", cell(path), formatSize(uint64(info.Size())))
	return err
}
