package consensus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Files of this package are one line, a magic and the hex SHA-256 of the rest, and the rest.

// writeSummed replaces a file as a whole, or not at all.
func writeSummed(path, magic string, rest ...[]byte) (err error) {
	h := sha256.New()
	for _, b := range rest {
		h.Write(b)
	}
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %x\n", magic, h.Sum(nil))
	for _, b := range rest {
		if err == nil {
			_, err = f.Write(b)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readSummed returns the rest of a file of at most most bytes.
func readSummed(path, magic string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	rest, err := unsum(b, magic, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return rest, nil
}

// unsum takes the first line off what a file holds.
func unsum(b []byte, magic string, most int64) ([]byte, error) {
	if int64(len(b)) > most {
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	}
	head, rest, _ := bytes.Cut(b, []byte("\n"))
	sum := sha256.Sum256(rest)
	if want := magic + " " + hex.EncodeToString(sum[:]); string(head) != want {
		if !bytes.HasPrefix(head, []byte(magic+" ")) {
			return nil, errors.New("it does not begin as one that hopmesh wrote")
		}
		return nil, errSum
	}
	return rest, nil
}
