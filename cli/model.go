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
			"name beside each row; a .npy file holds the numbers alone. Interrupted or failed, it leaves no file.",
		Example:           "  hopmesh predict j1 --out cora.parquet\n  hopmesh predict j1 --out cora.npy --embeddings",
		Args:              oneArg("JOB"),
		ValidArgsFunction: suggest(&d, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			format := strings.ToLower(filepath.Ext(out))
			if !slices.Contains(api.PredictFormats(), format) {
				return wrongUsage(cmd, "--out %q must end in %s, which says what is written", out, oneOf(api.PredictFormats()))
			}
			return save(cmd, &d, args[0], out, func(ctx context.Context, c *api.Client, to io.Writer) error {
				return c.Predict(ctx, args[0], api.PredictRequest{Format: format, Embeddings: embeddings}, to)
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the `FILE` to write, .npy or .parquet")
	cmd.Flags().BoolVar(&embeddings, "embeddings", false, "write what the last layer is given instead of the classes' scores")
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
			"stands in the file's metadata. Interrupted or failed, it leaves no file.",
		Example:           "  hopmesh export j1 --out model.safetensors",
		Args:              oneArg("JOB"),
		ValidArgsFunction: suggest(&d, jobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.ToLower(filepath.Ext(out)) != ".safetensors" {
				return wrongUsage(cmd, "--out %q must end in .safetensors, which is what is written", out)
			}
			return save(cmd, &d, args[0], out, func(ctx context.Context, c *api.Client, to io.Writer) error { return c.ExportJob(ctx, args[0], to) })
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the `FILE` to write, .safetensors")
	d.flags(cmd)
	return cmd
}

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
