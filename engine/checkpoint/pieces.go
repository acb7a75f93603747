package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// mostPiece is how many bytes of a file are asked for at a time. Tests ask for less.
var mostPiece uint64 = 32 << 20

// ReadPiece answers another node that asks for a piece of the last checkpoint in a folder or, if a byte of
// the question says so, of another one. The answer has at most limit bytes. Its errors wrap
// peer.ErrRefused.
func ReadPiece(dir string, question []byte, limit int) ([]byte, error) {
	which := Last
	if len(question) == 17 {
		which, question = Which(question[16]), question[:16]
	}
	if len(question) != 16 || dir == "" || int(which) >= len(files) {
		return nil, fmt.Errorf("%w: there is no such piece of a checkpoint", peer.ErrRefused)
	}
	at, n := binary.LittleEndian.Uint64(question), binary.LittleEndian.Uint64(question[8:])
	if n == 0 || n > mostPiece || n > uint64(max(limit, 0)) || at > 1<<62 {
		return nil, fmt.Errorf("%w: %d bytes of a checkpoint from %d on", peer.ErrRefused, n, at)
	}
	file, err := os.Open(filepath.Join(dir, files[which]))
	if err != nil {
		return nil, errors.Join(peer.ErrRefused, err)
	}
	piece := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(file, int64(at), int64(n)), piece); err != nil {
		return nil, errors.Join(peer.ErrRefused, fmt.Errorf("read %d bytes of the checkpoint from %d on: %w", n, at, err), file.Close())
	}
	return piece, file.Close()
}

// Ask sends a question, which ReadPiece answers there, to the node whose checkpoint is
// fetched. The answer has at most so many bytes, and may lie in the buffer.
type Ask func(question []byte, limit int, buffer []byte) (answer []byte, err error)

// Fetch writes another node's checkpoint of so many bytes, piece by piece. Where it can't be
// written, the error is an Unsaved.
func Fetch(to io.Writer, size uint64, ask Ask) error {
	var buffer []byte
	for at := uint64(0); at < size; {
		n := min(size-at, mostPiece)
		question := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, at), n)
		var err error
		buffer, err = ask(question, int(n), buffer)
		if err == nil && uint64(len(buffer)) != n {
			err = fmt.Errorf("%d bytes came of the %d that were asked for", len(buffer), n)
		}
		if err != nil {
			return err
		}
		if _, err := to.Write(buffer); err != nil {
			return &Unsaved{Err: err}
		}
		at += n
	}
	return nil
}

// Receive fetches another node's checkpoint into a temporary file of the folder, which
// replaces the last checkpoint once it has been accepted. If anything fails, the temporary
// file is removed and the last stays as it was. Where it can't be written, the error is an
// Unsaved.
func (f *Folder) Receive(size uint64, ask Ask, accept func(path string) error) error {
	path := f.Path() + ".tmp"
	if err := f.download(path, size, ask); err != nil {
		return err
	}
	err := accept(path)
	if err == nil {
		err = replace(f.Path())
	}
	if err != nil {
		return errors.Join(err, remove(path))
	}
	return nil
}

// Borrow fetches one of another node's checkpoints into a file that is removed when it was used.
func (f *Folder) Borrow(which Which, size uint64, ask Ask, use func(path string) error) error {
	path := f.Path() + ".tmp"
	if err := f.download(path, size, func(question []byte, limit int, buffer []byte) ([]byte, error) {
		return ask(append(question, byte(which)), limit, buffer)
	}); err != nil {
		return err
	}
	return errors.Join(use(path), remove(path))
}

func (f *Folder) download(path string, size uint64, ask Ask) error {
	if err := os.MkdirAll(f.options.Dir, 0o700); err != nil {
		return &Unsaved{Err: err}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return &Unsaved{Err: err}
	}
	if err := Fetch(file, size, ask); err != nil {
		return errors.Join(err, file.Close(), remove(path))
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return errors.Join(&Unsaved{Err: err}, remove(path))
	}
	return nil
}

// remove removes a file, if it is there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
