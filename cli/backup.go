package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// backedUp is the JSON document about a backup.
type backedUp struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	api.Backup
}

func backup() *cobra.Command {
	var d daemon.Flags
	var r api.BackupRequest
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write what the mesh can be begun anew from",
		Long: "Writes a file from which `hopmesh restore` begins the mesh anew if all its nodes are lost: the plan\n" +
			"(members, digests of tokens, datasets, jobs), and the identity of the node that is asked with the keys of\n" +
			"the mesh. With --datasets it has all shards, too; those that the node lacks come from others. With --jobs\n" +
			"it has the checkpoints of jobs that the node keeps.\n\n" +
			"Ask a node that votes: others have no key of the mesh's CA. The file is a tar that only its owner can\n" +
			"read (mode 0600): who has it can enter the mesh as any node. It is replaced as a whole; if the command is\n" +
			"interrupted or fails, it leaves no file.",
		Example: "  hopmesh backup mesh.tar\n  hopmesh backup /backup/mesh.tar --datasets --jobs",
		Args:    usage.OneArg("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := args[0]
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				return usage.Errorf(cmd, "%q is a folder: name the file to write", path)
			}
			var b api.Backup
			bytes, err := whole(path, func(to io.Writer) (err error) {
				b, err = daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Backup, error) { return c.Backup(ctx, r, to) })
				return err
			})
			if err != nil {
				return err
			}
			return showBackup(cmd.OutOrStdout(), d.JSON, backedUp{path, bytes, b})
		},
	}
	cmd.Flags().BoolVar(&r.Datasets, "datasets", false, "with the shards of all datasets")
	cmd.Flags().BoolVar(&r.Jobs, "jobs", false, "with the checkpoints of jobs that the node keeps")
	d.Add(cmd)
	return cmd
}

func showBackup(w io.Writer, asJSON bool, b backedUp) error {
	if asJSON {
		return output.JSON(w, b)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Wrote %s, %s: plan %d of mesh %s, and node %s.\n", output.Cell(b.File), output.Size(uint64(b.Bytes)), b.Index, output.Cell(b.Mesh), output.Cell(b.Node))
	for _, l := range []struct {
		what string
		list []string
	}{{"Datasets", b.Datasets}, {"Jobs", b.Jobs}, {"Not in it", b.Missing}} {
		if len(l.list) > 0 {
			fmt.Fprintf(&text, "%s: %s.\n", l.what, output.Cell(strings.Join(l.list, "; ")))
		}
	}
	text.WriteString("It holds the keys of the mesh, so only its owner can read it (mode 0600): keep it so.\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// whole writes a whole file that only its owner can read, or none, and returns its length.
func whole(path string, write func(io.Writer) error) (int64, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp") // of mode 0600
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return 0, fmt.Errorf("%s can't be written: %w", path, err)
	}
	err = write(file)
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
		return 0, errors.Join(err, os.Remove(file.Name()))
	}
	// Without this, a crash of the machine could take the file's name with it.
	folder, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = errors.Join(folder.Sync(), folder.Close())
	}
	return info.Size(), err
}

func restore(run func(context.Context, RestoreConfig, io.Writer) error) *cobra.Command {
	var cfg RestoreConfig
	cmd := &cobra.Command{
		Use:   "restore FILE --data-dir DIR",
		Short: "Begin a lost mesh anew from a backup",
		Long: "Makes an empty or new directory the data directory of the node that a backup is of. The whole backup is\n" +
			"verified first. Then `hopmesh agent --data-dir DIR` starts the node: it is the only one that votes, has the\n" +
			"datasets and checkpoints that were in the backup, and admits new nodes by new tokens (`hopmesh token\n" +
			"create`). The other members don't answer. Those that still have their data directories come back when\n" +
			"they are started; remove the rest with `hopmesh force-leave`.\n\n" +
			"Restore a mesh only if all its nodes are lost or stopped. If some still run, there are two meshes with one\n" +
			"identity, and nodes that reach the restored one drop what they decided since the backup. If less than half\n" +
			"of the voters are lost, nothing has to be restored; if some are left, see `hopmesh recover`.",
		Example: "  hopmesh restore mesh.tar --data-dir /var/lib/hopmesh",
		Args:    usage.OneArg("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cfg.DataDir == "" {
				return usage.Errorf(cmd, "`hopmesh restore` needs --data-dir DIR, which is empty or does not exist")
			}
			cfg.File = args[0]
			return run(cmd.Context(), cfg, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&cfg.DataDir, "data-dir", "", "the `DIR` to make")
	return cmd
}
