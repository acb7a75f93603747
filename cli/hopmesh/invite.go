package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hopmesh/hopmesh/node"
	"github.com/hopmesh/hopmesh/node/member"
	"golang.org/x/sys/unix"
)

// firstToken is how long the join command of --bootstrap is valid.
const firstToken = 24 * time.Hour

// beside is what a second node on a machine needs: a directory and a port of its own.
const beside = "--data-dir DIR --listen :0"

// invite makes a token and prints the command that brings the next machine in.
func invite(ctx context.Context, n *node.Node, dir string, stdout io.Writer, log *slog.Logger) {
	t, err := n.Backend().CreateToken(ctx, firstToken, 0)
	if err == nil {
		err = announce(t.Join, dir, stdout, log)
	}
	if err != nil {
		log.Warn("could not make a join command; `hopmesh token create` does", "err", err)
	}
}

// announce prints the join command, or puts it into a file if what is printed goes to the
// system's journal: that is kept, and more people may read it than may join machines.
func announce(join, dir string, stdout io.Writer, log *slog.Logger) error {
	hours := int(firstToken.Hours())
	if !inJournal(stdout) {
		_, _ = fmt.Fprintf(stdout, "On the next machine, within %d hours:\n\n  %s\n\nFor another node on this machine, add %s.\n`hopmesh token create` prints another.\n", hours, join, beside)
		return nil
	}
	path := filepath.Join(dir, member.JoinFile)
	if err := writeSecret(path, join+"\n"); err != nil {
		return err
	}
	log.Info("the join command for the next machine is in a file, to keep its token out of the journal", "file", path, "hours", hours)
	return nil
}

// inJournal reports whether w is the connection to the system's journal that its service
// manager names in $JOURNAL_STREAM, as DEVICE:INODE.
func inJournal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return false
	}
	return os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}

// writeSecret replaces a file that only its owner may read.
func writeSecret(path, text string) error {
	temp := path + ".tmp"
	_ = os.Remove(temp) // else it would keep the mode that it has
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
