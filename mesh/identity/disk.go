package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The names are explained in the package comment.
const (
	nodeFile    = "node.json"
	caFile      = "ca.pem"
	caKeyFile   = CAKeyFile
	nextKeyFile = "ca.next"
	leafFile    = "node.pem"
	resetFile   = "reset.key"
	keyringFile = "keyring.json"

	pendingSuffix = ".pending"
	newSuffix     = ".new"
	goneSuffix    = ".gone"
	tempSuffix    = ".tmp"
)

// CAKeyFile is the name of the file that only a node has that may have to admit others.
const CAKeyFile = "ca.key"

// maxFile bounds the bytes read of any file here; real files are far smaller.
const maxFile = 64 << 10

// createDir creates dir with these files atomically.
func createDir(dir string, files map[string][]byte) error {
	dir = filepath.Clean(dir)
	parent, temp := filepath.Dir(dir), dir+newSuffix
	if err := makeParent(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	for name, b := range files {
		if err := writeFile(filepath.Join(temp, name), b); err != nil {
			return errors.Join(err, os.RemoveAll(temp))
		}
	}
	if err := syncDir(temp); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	// Renaming onto a directory fails in Go, even if it is an empty one that an
	// operator made. A directory that is not empty stays, and the rename fails.
	_ = os.Remove(dir)
	if err := os.Rename(temp, dir); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return syncDir(parent)
}

func makeParent(path string) error { return os.MkdirAll(filepath.Dir(path), 0o700) }

// replaceFile replaces a file's content with b atomically.
func replaceFile(path string, b []byte) error {
	temp := path + tempSuffix
	if err := writeFile(temp, b); err != nil {
		return errors.Join(err, remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, remove(temp))
	}
	return syncDir(filepath.Dir(path))
}

// writeFile returns once b is synced to disk.
func writeFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("it is no regular file of at most %d bytes", maxFile)
	}
	return os.ReadFile(path)
}

// occupied reports whether there is anything in dir. An empty directory counts as none.
func occupied(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return len(entries) > 0, nil
}

// Erase returns dir to the state of a node that never joined, after a leave, so that it
// may join again. It also removes the secrets. The remains of an interrupted erasure
// are never loaded, and the next one removes them.
func Erase(dir string) error {
	dir = filepath.Clean(dir)
	gone := dir + goneSuffix
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("erase the identity: %w", err)
	}
	switch err := os.Rename(dir, gone); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("erase the identity: %w", err)
	}
	err := errors.Join(remove(dir+pendingSuffix), os.RemoveAll(dir+newSuffix), os.RemoveAll(gone))
	if err != nil {
		return fmt.Errorf("erase the identity: %w", err)
	}
	return nil
}
