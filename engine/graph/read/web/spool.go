package web

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyWhole copies the file to this machine, since its server sends it only from the
// beginning. If the connection is cut, it begins anew. The copy has no name, so that it
// goes with the process.
func (f *File) copyWhole() error {
	spool, err := os.CreateTemp("", "hopmesh-")
	if err != nil {
		return fmt.Errorf("copy %s to this machine: %w", f.name, err)
	}
	if err := os.Remove(spool.Name()); err != nil {
		return errors.Join(err, spool.Close())
	}
	noteIn(f.during, "%s is copied to this machine first, since its server does not send parts of a file", f.name)
	times, tries := 0, 0
	err = f.persist(func() (bool, error) {
		if times++; times > 1 {
			noteIn(f.during, "the connection was cut, and as the server does not send parts of a file, the copy of %s begins anew", f.name)
		}
		// What is copied is lost with the connection, so progress does not count.
		if tries++; tries > len(pauses) {
			return false, finally("%s was cut off %d times and its server sends it only from the beginning: copy it by other means, and import the copy", f.name, len(pauses))
		}
		return false, f.copyOnce(spool)
	})
	if err != nil {
		return errors.Join(err, spool.Close())
	}
	f.spool = spool
	return nil
}

func (f *File) copyOnce(spool *os.File) error {
	a, err := f.from.fetch(f.during, 0, -1, "")
	if err != nil {
		return err
	}
	defer a.body.Close()
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(spool.Fd()), &disk); err != nil {
		return finally("look at the disk of %s: %w", os.TempDir(), err)
	}
	most := int64(disk.Bavail * uint64(disk.Bsize) / 2)
	tooLarge := finally("%s does not fit in half of what is free at %s, %d bytes, and its server does not send parts of a file: copy it elsewhere, and import the copy", f.name, os.TempDir(), most)
	if a.total > most {
		return tooLarge
	}
	if err := spool.Truncate(0); err != nil {
		return finally("copy %s: %w", f.name, err)
	}
	n, err := io.Copy(io.NewOffsetWriter(spool, 0), io.LimitReader(watched(f.during, a.body), most+1))
	switch {
	case n > most:
		return tooLarge
	case err != nil:
		if _, ok := errors.AsType[*os.PathError](err); ok {
			return finally("copy %s to this machine: %w", f.name, err)
		}
		return err
	case a.total >= 0 && n != a.total:
		return io.ErrUnexpectedEOF
	}
	if f.size = n; a.endless {
		noteIn(f.during, "the server does not say how long %s is, and sent %d bytes: if the connection was cut, that could not be noticed, so compare that with the original", f.name, n)
	}
	return nil
}
